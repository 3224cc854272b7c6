package longshore

// This file is for transports and containers. Handlers and middlewares need
// nothing of it.

import (
	"context"
	"errors"
	"time"
)

// Settler is the transport's end of a delivery: the channel, assignment or
// receipt set it came from. It is bound to the delivery at birth, and pointer
// identity is the generation: a settler whose connection is gone answers
// [ErrLost] for all of its tokens.
//
// nil means accepted, not confirmed. Implementations are safe for concurrent
// use; they are called at most once per token with a verb other than Extend,
// unless that call returned an error other than the sentinels.
type Settler interface {
	Ack(ctx context.Context, token uint64) error
	// Nack gives the message back, not before delay (0 = at once). attempt is the
	// Delivery.Attempt that the next delivery of it should carry: the delivery's own
	// when the return is not to count (a drain, a Release), one more when it is
	// (a failed attempt). A transport uses the broker's cheapest way that keeps it, or
	// writes it to its own header; where it can do neither the broker's count wins.
	Nack(ctx context.Context, token uint64, delay time.Duration, attempt int) error
	Reject(ctx context.Context, token uint64, reason error) error
	Extend(ctx context.Context, token uint64, lease time.Duration) error
}

// Owner is the container's end of a delivery: the verbs a handler calls pass
// through it, so that slot, lane and drain know.
type Owner interface {
	// Settle does the bookkeeping and calls d.Apply.
	Settle(ctx context.Context, d *Delivery, s Settlement) error
	// Wait runs fn and takes its time out of the busy time.
	Wait(ctx context.Context, d *Delivery, fn func(context.Context) error) error
}

// Sizer is an Owner that limits the bytes which deliveries keep alive together.
type Sizer interface {
	// Resize notes that a body of n bytes takes the place of what was received; 0: what
	// was received is all. With wait it returns when there is room for it, or with
	// [ErrNoRoom] or the cause of ctx; without it never fails.
	Resize(ctx context.Context, d *Delivery, n int64, wait bool) error
}

// Verb is one of the four things that can be done with a delivery.
type Verb uint8

// The verbs.
const (
	VerbAck Verb = iota + 1
	VerbNack
	VerbReject
	VerbExtend
)

// String returns "ack", "nack", "reject" or "extend".
func (v Verb) String() string {
	switch v {
	case VerbAck:
		return "ack"
	case VerbNack:
		return "nack"
	case VerbReject:
		return "reject"
	case VerbExtend:
		return "extend"
	}
	return ""
}

// Settlement is a verb with its arguments.
type Settlement struct {
	Verb    Verb
	Delay   time.Duration // of a nack; length of an extension
	Attempt int           // of a nack: what the next delivery should carry; see [Settler]
	Reason  error         // of a rejection
}

// The bits of a delivery's state. An open delivery has none.
const (
	stateClaimed    = 1 << iota // a verb was accepted
	stateLost                   // the broker took it back
	stateSuperseded             // a newer attempt holds the token
)

// NewDelivery makes a delivery. base ends when the consumer's deliveries must
// stop being worked on and carries [ErrStopping] as its cause then; settler and
// token are how it is settled. They cannot be changed later: a lost delivery
// must never reach another connection. The caller fills Message, Origin and
// Attempt before it hands the delivery out.
func NewDelivery(base context.Context, settler Settler, token uint64) *Delivery {
	d := &Delivery{Attempt: 1, settler: settler, token: token}
	d.ctx.base, d.ctx.of = base, d //nolint:fatcontext // set once, nothing grows
	return d
}

// NewDeliveries is [NewDelivery] for n tokens, from first on, in one allocation. Its
// memory is free when all of them are: ask for few at a time.
func NewDeliveries(base context.Context, settler Settler, first uint64, n int) []Delivery {
	ds := make([]Delivery, n)
	for i := range ds {
		d := &ds[i]
		d.Attempt, d.settler, d.token = 1, settler, first+uint64(i)
		d.ctx.base, d.ctx.of = base, d //nolint:fatcontext // set once, nothing grows
	}
	return ds
}

// SetNative sets what [Delivery.Native] returns. For transports, before the
// delivery is handed out.
func (d *Delivery) SetNative(v any) { d.native = v }

// Token returns the transport's token.
func (d *Delivery) Token() uint64 { return d.token }

// Root returns the delivery that the transport made, of which d is a later
// attempt; d itself if there was none before.
func (d *Delivery) Root() *Delivery {
	if d.root != nil {
		return d.root
	}
	return d
}

// Newest returns the attempt that is running now, or ran last, for the token of d. For
// transports that keep something for an attempt until it succeeds.
func (d *Delivery) Newest() *Delivery {
	root := d.Root()
	if cur := root.current.Load(); cur != nil {
		return cur
	}
	return root
}

// Lose says that the broker has taken the delivery back. For transports, on
// the delivery they made; it reaches the attempt that is running now. The
// handler's context ends with cause, which must wrap [ErrLost]. It reports
// whether the delivery was still open.
//
// It never reads what the container wrote: the container hears of the loss
// through its observer.
func (d *Delivery) Lose(cause error) bool {
	open := d.lose(cause)
	if cur := d.current.Load(); cur != nil {
		open = cur.lose(cause)
	}
	return open
}

// TakenBack reports whether the broker has taken the delivery back before a verb was
// accepted. The cause of the handler's context does not tell: it may have ended before.
// For containers.
func (d *Delivery) TakenBack() bool { return d.state.Load() == stateLost }

// LostSettling reports whether the broker has taken the delivery back while a verb was being
// carried out, so that only the verb's result shows whether it still counted. For containers.
func (d *Delivery) LostSettling() bool { return d.state.Load() == stateClaimed|stateLost }

func (d *Delivery) lose(cause error) bool {
	if old := d.state.Or(stateLost); old != 0 {
		return false
	}
	d.ctx.end(cause)
	return true
}

// Own makes the verbs pass through o and notes when the handler is called. For
// containers, before the first handler sees the attempt.
func (d *Delivery) Own(o Owner, now time.Time) {
	d.owner = o
	d.started = now
}

// Again returns a new delivery for the same token: a local retry. The old one
// answers [ErrSettled] from then on. For containers. Errors: [ErrSettled],
// [ErrLost].
func (d *Delivery) Again(attempt int) (*Delivery, error) {
	root := d.Root()
	next := &Delivery{Message: *d.Received(), Origin: d.Origin, Attempt: attempt,
		settler: d.settler, token: d.token, root: root, native: d.native}
	next.ctx.base, next.ctx.of = d.ctx.base, next //nolint:fatcontext // the same parent, nothing grows
	if err := d.claim(stateSuperseded); err != nil {
		return nil, err
	}
	root.current.Store(next)
	// A loss sets the root's bit first and looks for the current attempt
	// second; here it is the other way round, so one of the two sees the other.
	if root.state.Load()&stateLost != 0 {
		next.lose(ErrLost)
	}
	return next, nil
}

// Finish ends the handler's context: the handler has returned, or the delivery
// was settled by hand. For containers. cause nil means context.Canceled.
func (d *Delivery) Finish(cause error) {
	if cause == nil {
		cause = context.Canceled
	}
	d.ctx.end(cause)
}

// Apply claims the delivery and passes the settlement to the transport. For
// containers (the verbs call it where there is none). A refusal that is none of
// the sentinels opens the delivery again, so that it can be settled otherwise.
func (d *Delivery) Apply(ctx context.Context, s Settlement) error {
	if s.Verb == VerbExtend {
		if err := stateError(d.state.Load()); err != nil {
			return err
		}
		return d.settler.Extend(ctx, d.token, s.Delay)
	}
	if err := d.claim(stateClaimed); err != nil {
		return err
	}
	err := d.call(ctx, s)
	if err == nil || errors.Is(err, ErrSettled) || errors.Is(err, ErrClosed) {
		return err
	}
	if errors.Is(err, ErrLost) {
		d.state.Or(stateLost)
		d.ctx.end(err)
		return err
	}
	if d.state.And(^uint32(stateClaimed))&stateLost != 0 {
		d.ctx.end(ErrLost)
	}
	return err
}

func (d *Delivery) call(ctx context.Context, s Settlement) error {
	switch s.Verb {
	case VerbAck:
		return d.settler.Ack(ctx, d.token)
	case VerbNack:
		return d.settler.Nack(ctx, d.token, s.Delay, s.Attempt)
	case VerbReject:
		return d.settler.Reject(ctx, d.token, s.Reason)
	case VerbExtend:
	}
	return &Error{Code: CodeInternal, Op: "settle a delivery", Err: errors.New("unknown verb")}
}

// claim sets the bit if the delivery is open.
func (d *Delivery) claim(bit uint32) error {
	for {
		old := d.state.Load()
		if err := stateError(old); err != nil {
			return err
		}
		if d.state.CompareAndSwap(old, old|bit) {
			return nil
		}
	}
}

func stateError(state uint32) error {
	switch {
	case state&(stateClaimed|stateSuperseded) != 0:
		return ErrSettled
	case state&stateLost != 0:
		return ErrLost
	}
	return nil
}
