package amqp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// pubChannel is a channel in confirm mode. A goroutine of its own writes, so
// that a caller can give up on a socket that takes nothing; another one hears
// what the broker returns.
type pubChannel struct {
	sess *conn.Session // whose end ends it
	ch   conn.Channel  // in confirm mode

	work  chan *delivery     // calls in the order in which they are written
	syncs chan chan struct{} // waits until what came before was written
	quit  chan struct{}      // closed: the writer leaves
	left  chan struct{}      // closed: it has left
	once  sync.Once          // it is closed once
	done  chan struct{}      // closed when the channel is gone
	err   error              // why; nil if we closed it

	mu      sync.Mutex  // guards what follows
	pending []*outgoing // written or about to be, not resolved
}

// delivery is what one caller wants written.
type delivery struct {
	ctx       context.Context //nolint:containedctx // the caller's, to the writer
	outs      []*outgoing     // messages of one call
	mandatory bool            // a message that no queue takes comes back
	written   chan struct{}   // closed when the writer is done with it
	left      bool            // no caller waits any more; guarded by pubChannel.mu
	finished  bool            // written is, or is about to be, closed; likewise
}

// openPubChannel opens a channel in confirm mode for one exchange. An exchange that does not exist
// closes the channel, and takes only messages to that exchange along.
func openPubChannel(ctx context.Context, sess *conn.Session, exchange string) (*pubChannel, error) {
	pc := &pubChannel{sess: sess, work: make(chan *delivery), syncs: make(chan chan struct{}),
		quit: make(chan struct{}), left: make(chan struct{}), done: make(chan struct{})}
	ch, err := sess.Confirming(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening a channel for exchange %q: %w", exchange, err)
	}
	pc.ch = ch
	// Unbuffered: when the client goes on to the confirm, the return before it has
	// been taken.
	returns := pc.ch.NotifyReturn(make(chan amqp091.Return))
	closes := pc.ch.NotifyClose(make(chan *amqp091.Error, 1))
	sess.Go(func() { pc.listen(returns, closes) })
	sess.Go(pc.writer)
	return pc, nil
}

// over says that the channel takes no messages any more. The client may know that first.
func (pc *pubChannel) over() bool {
	select {
	case <-pc.done:
		return true
	default:
		return pc.ch.IsClosed()
	}
}

// idle says that no confirm is awaited, so that the channel can be closed without loss.
func (pc *pubChannel) idle() bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	return len(pc.pending) == 0
}

// close ends the channel without waiting for a write that hangs.
func (pc *pubChannel) close() { pc.once.Do(func() { close(pc.quit) }) }

// listen reads returns and the end of the channel. Each source is set to nil when it is closed, so
// that the other one is read to its end.
func (pc *pubChannel) listen(returns chan amqp091.Return, closes chan *amqp091.Error) {
	for {
		select {
		case r, ok := <-returns:
			if !ok {
				returns = nil
				continue
			}
			pc.match(&r)
		case s := <-pc.syncs:
			close(s)
		case e := <-closes:
			if e != nil {
				pc.err = e
			}
			close(pc.done)
			return
		}
	}
}

// match finds the message that came back. A return has no number; the oldest of
// equal messages is as good as any other of them.
func (pc *pubChannel) match(r *amqp091.Return) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	for _, o := range pc.pending {
		if o.returned == nil && o.exchange == r.Exchange && o.key == r.RoutingKey && o.pub.MessageId == r.MessageId &&
			o.pub.CorrelationId == r.CorrelationId && bytes.Equal(o.pub.Body, r.Body) && codec.SameTable(o.pub.Headers, r.Headers) {
			o.returned = r
			return
		}
	}
}

// writer writes what callers hand over.
func (pc *pubChannel) writer() {
	defer close(pc.left)
	for {
		select {
		case d := <-pc.work:
			pc.write(d)
			pc.mu.Lock()
			d.finished = true
			if d.left {
				pc.drop(d.outs)
			}
			pc.mu.Unlock()
			close(d.written)
		case <-pc.quit:
			_ = pc.ch.Close()
			return
		case <-pc.done:
			return
		}
	}
}

// write writes until the caller's time is over. While the broker says that it
// blocks publishers nothing is written: what lies in the socket then goes through
// later, long after its caller has given up and tried again.
func (pc *pubChannel) write(d *delivery) {
	for _, o := range d.outs {
		for wait := pc.sess.Unblocked(); wait != nil; wait = pc.sess.Unblocked() {
			select {
			case <-wait:
			case <-d.ctx.Done():
				return
			case <-pc.done:
				return
			}
		}
		if d.ctx.Err() != nil {
			return
		}
		if o.err = pc.tooLarge(o); o.err != nil {
			continue
		}
		pc.mu.Lock()
		pc.pending = append(pc.pending, o)
		pc.mu.Unlock()
		dc, err := pc.ch.PublishWithDeferredConfirm(o.exchange, o.key, d.mandatory, false, o.pub)
		if err != nil {
			o.err = err
			continue
		}
		o.dc = dc
	}
}

// tooLarge refuses what would end the connection or the channel.
func (pc *pubChannel) tooLarge(o *outgoing) error {
	if n := codec.FrameSize(&o.pub); pc.sess.Frame > 0 && n > pc.sess.Frame {
		return codec.Refuse(longshore.CodeTooLarge, fmt.Errorf("headers and properties take %d bytes; the connection's frame_max is %d", n, pc.sess.Frame))
	}
	if limit := pc.sess.MaxBytes(); limit > 0 && len(o.pub.Body) > limit {
		return codec.Refuse(longshore.CodeTooLarge, fmt.Errorf("the body has %d bytes; the broker takes %d", len(o.pub.Body), limit))
	}
	return nil
}

// publish hands the messages to the writer, waits for their confirms and returns
// one result for each.
func (pc *pubChannel) publish(ctx context.Context, outs []*outgoing, mandatory bool) []error {
	d := &delivery{ctx: ctx, outs: outs, mandatory: mandatory, written: make(chan struct{})}
	select {
	case pc.work <- d:
	case <-pc.done:
		return each(outs, func(o *outgoing) error { return pc.endError(o) })
	case <-pc.quit:
		return each(outs, func(*outgoing) error { return longshore.ErrClosed })
	case <-ctx.Done():
		return each(outs, func(*outgoing) error { return pc.timeout(ctx) })
	}
	select {
	case <-d.written:
	case <-ctx.Done():
		if pc.leave(d) { // the write hangs; the writer owns the messages
			return each(outs, func(*outgoing) error { return maybeSent(pc.timeout(ctx)) })
		}
		<-d.written
	}
	defer pc.forget(outs)
	errs := each(outs, func(o *outgoing) error { return pc.await(ctx, o) })
	pc.returned(ctx, outs, errs)
	return errs
}

// each collects the errors of a function by place.
func each(outs []*outgoing, f func(*outgoing) error) []error {
	errs := make([]error, len(outs))
	for i, o := range outs {
		errs[i] = f(o)
	}
	return errs
}

// leave notifies the writer that no caller waits for d any more; false if it is done.
func (pc *pubChannel) leave(d *delivery) bool {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	d.left = true
	return !d.finished
}

// forget drops messages whose callers no longer wait; their confirms find nothing.
func (pc *pubChannel) forget(outs []*outgoing) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.drop(outs)
}

// drop removes messages from pending. mu is held.
func (pc *pubChannel) drop(outs []*outgoing) {
	pc.pending = slices.DeleteFunc(pc.pending, func(o *outgoing) bool { return slices.Contains(outs, o) })
}

// await returns the broker's answer to a message.
func (pc *pubChannel) await(ctx context.Context, o *outgoing) error {
	switch {
	case o.err != nil && pc.over(): // some of it may have been written
		<-pc.done
		return pc.unanswered(o)
	case o.err != nil:
		return o.err
	case o.dc == nil && pc.over():
		return pc.endError(o)
	case o.dc == nil:
		return pc.timeout(ctx)
	}
	select {
	case <-o.dc.Done():
	case <-ctx.Done():
		return maybeSent(pc.timeout(ctx))
	}
	switch {
	case o.dc.Acked():
		return nil
	case pc.ch.IsClosed(): // the client answers for the broker
		<-pc.done
		return pc.unanswered(o)
	}
	return &longshore.Error{Code: longshore.CodeRefused, Op: "publish to rabbitmq",
		Err:  errors.New("the broker refused the message (basic.nack)"),
		Hint: "the queue is full (x-max-length with reject-publish) or has failed"}
}

// returned turns the confirm of a message that no queue took into an error. The
// broker returns it before it confirms it, so one exchange with the listener
// makes sure that what was returned is known.
func (pc *pubChannel) returned(ctx context.Context, outs []*outgoing, errs []error) {
	s := make(chan struct{})
	select {
	case pc.syncs <- s:
		<-s
	case <-pc.done:
	case <-ctx.Done():
	}
	pc.mu.Lock()
	defer pc.mu.Unlock()
	for i, o := range outs {
		if r := o.returned; r != nil && errs[i] == nil {
			errs[i] = &longshore.Error{Code: longshore.CodeUnroutable, Op: "publish to rabbitmq",
				Err:  fmt.Errorf("returned as unroutable (%d %s)", r.ReplyCode, r.ReplyText),
				Hint: "create the queue, bind it to the exchange or correct the destination"}
		}
	}
}

// timeout says why there is no answer.
func (pc *pubChannel) timeout(ctx context.Context) error {
	if err := pc.sess.BlockedError(); err != nil {
		return err
	}
	return &longshore.Error{Code: longshore.CodeTimeout, Op: "publish to rabbitmq",
		Err: fmt.Errorf("no answer in time: %w", ctx.Err()), Hint: "the broker or the network is slow or stuck"}
}

// maybeSent marks the error of a message that was written; the publisher names it.
func maybeSent(why error) error { return transport.MaybeSent("a message to rabbitmq", "", why) }

// unanswered is the error of a message that was written when the channel ended. The
// broker's own reason is its answer; the end of the connection is none.
func (pc *pubChannel) unanswered(o *outgoing) error {
	err := pc.endError(o)
	if errors.Is(err, longshore.CodeConnLost) || errors.Is(err, longshore.ErrClosed) {
		return maybeSent(err)
	}
	return err
}

// errOverAnother is the outcome of a message whose channel the broker closed for the sake of
// another one.
var errOverAnother = errors.New("the channel was closed over another message")

var sizeLimit = regexp.MustCompile(`message size (\d+) is larger than configured max size (\d+)`)

// endError is what the end of the channel means for a message on it. A limit on
// the size concerns only those beyond it, and is known from then on.
func (pc *pubChannel) endError(o *outgoing) error {
	if pc.err == nil {
		return longshore.ErrClosed
	}
	if m := sizeLimit.FindStringSubmatch(pc.err.Error()); m != nil {
		limit, _ := strconv.Atoi(m[2])
		pc.sess.LearnMaxBytes(limit)
		if len(o.pub.Body) <= limit {
			return &longshore.Error{Code: longshore.CodeConnLost, Op: "publish to rabbitmq", Err: errOverAnother, Hint: "publish it again"}
		}
	}
	return pc.err
}
