package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// RequesterConfig is the configuration of a [Requester]. The zero value works.
type RequesterConfig struct {
	// Timeout bounds one request with its reply, in addition to the call's context. Zero: 5 s.
	Timeout time.Duration
}

const defaultRequestTimeout = 5 * time.Second

// Requester sends requests and waits for their replies, by RabbitMQ's direct
// reply-to: no queue is made, and a reply goes to the channel that asked. It is safe
// for concurrent use; all calls share one channel of the publishing connection.
type Requester struct {
	b   *Broker         // the connection
	cfg RequesterConfig // as given

	turn   chan struct{} // holds a token; who has it may connect
	closed bool          // guarded by turn
	sess   *conn.Session // guarded by turn
	pc     *pubChannel   // guarded by turn

	mu      sync.Mutex                         // guards what follows
	waiting map[string]chan *longshore.Message // by correlation id
	stats   RequesterStats                     // what Stats returns
	calls   sync.WaitGroup                     // open ones, which Close waits for
}

// RequesterStats counts since the requester was made.
type RequesterStats struct {
	Replied  uint64 // calls that got their reply
	TimedOut uint64 // calls that were given up while waiting
	Lost     uint64 // calls whose connection ended while waiting
	Late     uint64 // replies that arrived after their Request had returned
}

// Requester makes a requester. It connects when it first has to. The error is about
// the configuration, the broker's included.
func (b *Broker) Requester(cfg RequesterConfig) (*Requester, error) {
	err := b.set.problem
	if cfg.Timeout < 0 {
		err = errors.Join(err, problem.Range("Timeout", cfg.Timeout, "positive, or 0 for the default, 5s").Of("rabbitmq requester", ""))
	}
	if err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultRequestTimeout
	}
	r := &Requester{b: b, cfg: cfg, turn: make(chan struct{}, 1), waiting: map[string]chan *longshore.Message{}}
	r.turn <- struct{}{}
	return r, nil
}

// Request publishes m to a destination as [Publisher] does and waits for its reply.
// ReplyTo is ours; so is the correlation id on the wire, and the reply carries that
// of m again. A request that its time is over for expires in its queue, unless m has
// an expiration of its own.
//
// Errors: [longshore.CodeTimeout] when no reply came in time, [longshore.CodeUnroutable]
// when no queue takes the request, [longshore.CodeConnLost] when the connection ended
// while it waited (the request may have been handled; it is not sent again),
// [longshore.ErrClosed], and those of connecting and publishing.
func (r *Requester) Request(ctx context.Context, dest string, m *longshore.Message) (*longshore.Message, error) {
	exchange, key := parseDest(dest)
	op := fmt.Sprintf("request to rabbitmq %q", dest)
	pub, err := codec.Encode(m, r.b.login())
	if err == nil && key == "" && exchange == "" {
		err = codec.Refuse(longshore.CodeConfig, errEmptyDest)
	}
	if err == nil && len(exchange) > codec.MaxShort || len(key) > codec.MaxShort {
		err = codec.Refuse(longshore.CodeConfig, errors.New("exchange and routing key are 255 bytes at the most"))
	}
	if err != nil {
		return nil, r.wrap(op, dest, err)
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	id := codec.NewID()
	pub.ReplyTo, pub.CorrelationId = codec.DirectReply, id
	if deadline, ok := ctx.Deadline(); ok && pub.Expiration == "" {
		pub.Expiration = fmt.Sprint(max(time.Until(deadline).Milliseconds(), 1))
	}
	pc, err := r.channel(ctx)
	if err != nil {
		return nil, r.wrap(op, dest, err)
	}
	defer r.calls.Done()
	got := r.wait(id)
	defer r.forget(id)
	if err := pc.publish(ctx, []*outgoing{{exchange: exchange, key: key, pub: pub}}, true)[0]; err != nil {
		return nil, r.failed(op, dest, err)
	}
	return r.reply(ctx, pc, got, op, dest, m.CorrelationID)
}

// reply waits for the answer. One that is there wins over an end.
func (r *Requester) reply(ctx context.Context, pc *pubChannel, got chan *longshore.Message, op, dest, correlation string) (*longshore.Message, error) {
	var answer *longshore.Message
	select {
	case answer = <-got:
	case <-pc.done:
	case <-ctx.Done():
	}
	if answer == nil {
		select {
		case answer = <-got:
		default:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case answer != nil:
		r.stats.Replied++
		answer.CorrelationID = correlation
		return answer, nil
	case ctx.Err() != nil:
		r.stats.TimedOut++
		return nil, &longshore.Error{Code: longshore.CodeTimeout, Op: op, Source: dest, Err: fmt.Errorf("no reply: %w", ctx.Err()),
			Hint: "see that a consumer answers to ReplyTo; the request may still be handled"}
	}
	r.stats.Lost++
	cause := error(longshore.ErrClosed)
	if pc.err != nil {
		cause = pc.err
	}
	return nil, &longshore.Error{Code: longshore.CodeConnLost, Op: op, Source: dest, Err: fmt.Errorf("the connection ended before the reply: %w", cause),
		Hint: "the request may have been handled; send it again only if that does no harm"}
}

// wait makes room for the reply to a request. The channel holds one, so that a reply whose
// request is over blocks nothing.
func (r *Requester) wait(id string) chan *longshore.Message {
	got := make(chan *longshore.Message, 1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[id] = got
	return got
}

// forget drops a request that is over; a late reply finds nothing.
func (r *Requester) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, id)
}

// failed counts a request whose confirmation did not come.
func (r *Requester) failed(op, dest string, err error) error {
	out := r.wrap(op, dest, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(out, longshore.CodeTimeout):
		r.stats.TimedOut++
	case errors.Is(out, longshore.CodeConnLost):
		r.stats.Lost++
	}
	return out
}

// wrap names operation and destination in an error of the broker. ErrClosed stays as it is.
func (r *Requester) wrap(op, dest string, err error) error {
	if errors.Is(err, longshore.ErrClosed) {
		return err
	}
	out := *r.b.set.brokerError(op, dest, err)
	out.Op, out.Source = op, dest
	return &out
}

// Stats returns what was counted.
func (r *Requester) Stats() RequesterStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// channel returns an open channel that hears replies; the caller is counted in calls
// if there is no error.
func (r *Requester) channel(ctx context.Context) (*pubChannel, error) {
	select {
	case <-r.turn:
		defer func() { r.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the connection: %w", ctx.Err())
	}
	if r.closed {
		return nil, longshore.ErrClosed
	}
	if r.pc == nil || r.pc.over() || r.sess.Ended() {
		if err := r.open(ctx); err != nil {
			return nil, err
		}
	}
	r.calls.Add(1)
	return r.pc, nil
}

// open replaces a channel that ended, and its connection if that ended too. turn is
// held.
func (r *Requester) open(ctx context.Context) error {
	if r.pc != nil {
		r.pc.close()
		r.pc = nil
	}
	if r.sess != nil && r.sess.Ended() {
		_ = r.b.publish.Release(ctx, r.sess)
		r.sess = nil
	}
	if r.sess == nil {
		sess, err := r.b.publish.Acquire(ctx)
		if err != nil {
			return err
		}
		r.sess = sess
	}
	pc, err := openPubChannel(ctx, r.sess, "")
	if err != nil {
		return err
	}
	replies := make(chan (<-chan amqp091.Delivery), 1)
	err = r.sess.Within(ctx, func() error {
		ds, err := pc.ch.Consume(codec.DirectReply, "", true, false, false, false, nil)
		replies <- ds
		return err
	})
	if err != nil {
		pc.close()
		return fmt.Errorf("consuming replies: %w", err)
	}
	ds := <-replies
	r.sess.Go(func() { r.listen(ds) }) //nolint:contextcheck // outlives the call
	r.pc = pc
	return nil
}

// listen hands replies to those who wait, until the channel ends.
func (r *Requester) listen(ds <-chan amqp091.Delivery) {
	for raw := range ds {
		d := longshore.NewDelivery(context.Background(), browsed{}, 0)
		codec.Decode(d, &raw, "")
		r.mu.Lock()
		got := r.waiting[raw.CorrelationId]
		delete(r.waiting, raw.CorrelationId)
		if got == nil {
			r.stats.Late++
		} else {
			got <- &d.Message // there is room: an id is found once
		}
		r.mu.Unlock()
	}
}

// Close ends the requester; calls that still wait then fail with
// [longshore.CodeConnLost]. Idempotent.
func (r *Requester) Close(ctx context.Context) error {
	select {
	case <-r.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.turn <- struct{}{} }()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.pc != nil {
		r.pc.close()
		select {
		case <-r.pc.left:
		case <-ctx.Done(): // its write hangs; the end of the connection ends it
		}
	}
	gone := make(chan struct{})
	go func() { r.calls.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-ctx.Done():
	}
	if r.sess == nil {
		return ctx.Err()
	}
	sess := r.sess
	r.sess, r.pc = nil, nil
	return r.b.publish.Release(ctx, sess)
}
