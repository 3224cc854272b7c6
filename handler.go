package longshore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Handler works on one delivery. Its result is the verdict: nil acks, an error
// follows the container's redelivery policy, and [Retry], [Reject], [Discard]
// and [Release] say explicitly what to do.
//
// A container calls Handle from several goroutines at once, with different
// deliveries. ctx is d.Context().
type Handler interface {
	Handle(ctx context.Context, d *Delivery) error
}

// HandlerFunc adapts a function to a [Handler].
type HandlerFunc func(ctx context.Context, d *Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, d *Delivery) error { return f(ctx, d) }

// BatchHandler works on several deliveries at once. The result is nil (all
// acked), a [BatchError] (those it names failed, the others are acked), or one
// error for all. The slice is the container's again after the return.
type BatchHandler interface {
	HandleBatch(ctx context.Context, ds []*Delivery) error
}

// BatchHandlerFunc adapts a function to a [BatchHandler].
type BatchHandlerFunc func(ctx context.Context, ds []*Delivery) error

// HandleBatch calls f.
func (f BatchHandlerFunc) HandleBatch(ctx context.Context, ds []*Delivery) error { return f(ctx, ds) }

// BatchError maps the index of a failed delivery to its error. Absent means
// acked and an empty one is success, so returning it is always right.
type BatchError map[int]error

// Error lists the failed indexes, at most three with their text.
func (e BatchError) Error() string {
	idx := make([]int, 0, len(e))
	for i := range e {
		idx = append(idx, i)
	}
	slices.Sort(idx)
	var b strings.Builder
	fmt.Fprintf(&b, "longshore: %d of a batch failed", len(e))
	for n, i := range idx {
		if n == 3 {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; [%d] %v", i, e[i])
	}
	return b.String()
}

// Unwrap returns the errors of the failed deliveries in no particular order.
func (e BatchError) Unwrap() []error {
	errs := make([]error, 0, len(e))
	for _, err := range e {
		errs = append(errs, err)
	}
	return errs
}

// Middleware wraps a handler. The first in a list is the outermost.
//
// Besides Wrap a middleware may implement [Named], [Checker], [BatchWrapper],
// [Watcher], [OutcomeObserver] and [OperationObserver].
type Middleware interface {
	Wrap(next Handler) Handler
}

// MiddlewareFunc adapts a function to a [Middleware].
type MiddlewareFunc func(next Handler) Handler

// Wrap calls f.
func (f MiddlewareFunc) Wrap(next Handler) Handler { return f(next) }

// Chain wraps h so that the first middleware is the outermost.
func Chain(h Handler, mws ...Middleware) Handler {
	for _, m := range slices.Backward(mws) {
		h = m.Wrap(h)
	}
	return h
}

// Named is a middleware that has a name for logs and errors.
type Named interface {
	Name() string
}

// Checker is a middleware that is asked at Start whether it can work in this
// container. An error fails the start.
type Checker interface {
	Check(ctx context.Context, f Facts) error
}

// BatchWrapper is a middleware that also works in a container with a batch
// handler. One without it is refused there, by name.
type BatchWrapper interface {
	WrapBatch(next BatchHandler) BatchHandler
}

// Watcher is a middleware that can hold the container back: while held, the
// container cancels its consumer so that the broker sees none (a breaker does
// this), or pauses one that has a place to lose (Capabilities.KeepsPlace). Watch registers the callback and returns a function that ends it;
// callbacks may come from any goroutine and must not be called after stop
// returned.
type Watcher interface {
	Watch(changed func(held bool, reason string)) (stop func())
}

// Doubter is a [Watcher] that also lets a few messages through to find out whether the
// rest may follow, as a breaker does in its trial. While it doubts, a container that
// is not held accepts no more work than that: more processes would bring nothing.
// Doubts is asked often and under the container's lock: it must not block, and must not
// call the container.
type Doubter interface {
	Doubts() bool
}

// OutcomeObserver is a middleware that hears of every verdict with the one pair
// of clock readings that the container takes. It is called on the worker, after
// the handler returned; it must be quick and must not settle.
type OutcomeObserver interface {
	Outcome(d *Delivery, o Outcome)
}

// Outcome is what became of one call of a handler.
type Outcome struct {
	Verdict Verdict
	Err     error         // the handler's result
	Started time.Time     // when the handler was called
	Took    time.Duration // without time spent in [Delivery.Wait]
}

// OperationObserver is a middleware that hears of the calls which a subscription makes
// at its broker. It is called by several goroutines of the transport; it must be quick
// and must not call the container.
type OperationObserver interface {
	Operation(o Operation)
}

// Operation is a call at a broker, or what was written to it together where the
// protocol has no answer. One may be about several messages.
type Operation struct {
	Transport, Source string // as [Subscription] names them; the container fills them in
	Kind              OperationKind
	Took              time.Duration
	Code              Code // of its failure, or of one of its messages'; empty: it was carried out
}

// OperationKind is what a call was for, a label of metrics.
type OperationKind string

// The kinds. Not every broker has each: RabbitMQ pushes and is never asked to receive,
// Kafka knows nothing but positions and has no nack.
const (
	OperationReceive OperationKind = "receive" // waiting for messages included
	OperationAck     OperationKind = "ack"
	OperationNack    OperationKind = "nack"   // give back, at once or after a delay
	OperationReject  OperationKind = "reject" // to the broker's own dead-letter destination
	OperationExtend  OperationKind = "extend" // of leases
)

// Facts is what a [Checker] may need to know of its container.
type Facts struct {
	Container    string // name
	WorkersMax   int
	Order        string // "none", "key", "partition", "func"
	Batch        int    // batch size; 0 = single deliveries
	Manual       bool   // settled by the handler
	DrainTimeout time.Duration
	Capabilities Capabilities // of the consumer as opened
}

// Clock is time as a container sees it. The zero choice everywhere is the
// system's; tests inject their own.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is the handle of a [Clock.AfterFunc].
type Timer interface {
	// Stop prevents the call and reports whether it was still pending.
	Stop() bool
}
