package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// consumer is an open subscription. Polls, and the batches of settling, run on
// goroutines of their own; one more, loop, decides when batches go and leases are
// extended. It settles the deliveries it made, and no others: a token is looked up
// in its own table.
type consumer struct {
	*link
	src      *queueSource
	opts     transport.OpenOptions
	sub      *longshore.Subscription
	linger   time.Duration
	maxPolls int

	life context.Context //nolint:containedctx // of all calls; ends with Close
	end  context.CancelFunc
	crew crew
	kick chan struct{} // the loop looks again
	slow atomic.Int64  // nanoseconds of a settlement, the longest of the last ones

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when somebody who waits should look
	intake  intake
	held    map[uint64]*held
	byID    map[string]*held // by message id; copies are not in it
	token   uint64
	leases  leaseHeap
	batches [kinds]batcher
	pending int // accepted and not carried out
	telling int // failures that the observer is about to hear of
	giving  int // of these, messages that go back unworked
	failed  int // since the last Flush
	flushes int // who waits for all batches to go now
	down    error
	closed  bool
	late    bool      // extensions are behind: no more messages for now
	garbled time.Time // when somebody was told of a message that was changed on its way
}

// Open finds the queue and starts to consume. Nothing is received before
// Receive asks for it.
func (s *queueSource) Open(ctx context.Context, opts transport.OpenOptions) (transport.Consumer, error) {
	if err := s.ValidateOpen(opts); err != nil {
		return nil, err
	}
	l, err := s.link(ctx, opts, true)
	if err != nil {
		return nil, err
	}
	if opts.Base == nil {
		opts.Base = context.Background()
	}
	c := &consumer{link: l, src: s, opts: opts, maxPolls: s.cfg.MaxPollers,
		held: map[uint64]*held{}, byID: map[string]*held{},
		crew: crew{work: make(chan func())}, kick: make(chan struct{}, 1), changed: make(chan struct{})}
	c.linger = s.cfg.SettleLinger
	if c.linger == 0 {
		c.linger = defaultLinger
	}
	c.linger = min(c.linger, l.lease/3)
	if c.maxPolls == 0 {
		c.maxPolls = defaultPollers
	}
	c.batches = [kinds]batcher{opDelete: {most: 16}, opReturn: {most: 8}, opDead: {most: 4}, opExtend: {most: 8}}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.intake.start(c.life)
	c.intake.paused = opts.Paused
	if l.fifo && opts.Ordered && opts.Batch == 0 {
		c.intake.lines.byGroup = map[string]*line{}
	}
	token := tokenOf(l)
	c.sub = &longshore.Subscription{Transport: "aws_sqs", Source: s.ref.name, Identify: func(d *longshore.Delivery) string {
		m, ok := d.Native().(*types.Message)
		if !ok || m.MessageId == nil {
			return ""
		}
		return "s." + token + "." + *m.MessageId
	}}
	c.crew.wg.Go(c.loop)
	if s.cfg.Declare.Attributes != nil && opts.Observer != nil {
		text := fmt.Sprintf("queue %q", s.ref.name)
		if d := opts.DeadLetter; d != "" && queueName(d) {
			text += fmt.Sprintf(", dead-letter queue %q", d)
		}
		opts.Observer.Event(transport.Event{Kind: transport.EventDeclared, Text: text})
	}
	if l.notice != "" && opts.Observer != nil {
		opts.Observer.Event(transport.Event{Kind: transport.EventNotice, Text: l.notice})
	}
	return c, nil
}

// tokenOf is a short name of a queue for identities: of its ARN, which is the
// same whatever address it was reached by.
func tokenOf(l *link) string {
	return strings.ToLower(hashed(first(l.arn, l.url))[1:13])
}

// Receive waits for messages that polls bring, and starts polls for them.
func (c *consumer) Receive(ctx context.Context, limit int) ([]*longshore.Delivery, error) {
	limit = max(limit, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch in := &c.intake; {
		case c.closed:
			return nil, longshore.ErrClosed
		case len(in.buffer) > 0:
			return c.hand(limit), nil
		case c.down != nil:
			return nil, c.down
		case in.canceled && in.polls == 0 && in.lines.count == 0:
			return nil, longshore.ErrCanceled
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default:
			in.granted, in.waiting, in.interrupted = limit, true, time.Time{}
			c.startPolls()
		}
		c.wait(ctx)
		c.intake.waiting = false
		if ctx.Err() != nil && len(c.intake.buffer) == 0 {
			c.intake.interrupted = time.Now()
			c.wake()
			if c.down == nil && !c.closed && (!c.intake.canceled || c.intake.polls > 0) {
				return nil, ctx.Err()
			}
		}
	}
}

// hand takes deliveries out of the buffer.
func (c *consumer) hand(limit int) []*longshore.Delivery {
	in := &c.intake
	n := min(limit, len(in.buffer))
	ds := make([]*longshore.Delivery, n)
	for i, h := range in.buffer[:n] {
		h.handed = true
		ds[i] = h.d
	}
	in.buffer = append(in.buffer[:0], in.buffer[n:]...)
	in.granted, in.interrupted = limit-n, time.Time{}
	c.startPolls()
	return ds
}

// wait gives the lock away until something changes or ctx ends.
func (c *consumer) wait(ctx context.Context) {
	changed := c.changed
	c.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	c.mu.Lock()
}

// until waits for a condition, which is asked under the lock.
func (c *consumer) until(ctx context.Context, cond func() bool) error {
	for !cond() {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.wait(ctx)
	}
	return nil
}

// announce makes those who wait look again. The caller holds mu.
func (c *consumer) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// wake makes the loop look again.
func (c *consumer) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// fail ends the consumer: Receive returns err from now on. What is held can still
// be settled.
func (c *consumer) fail(err error) {
	c.mu.Lock()
	first := c.down == nil && !c.closed && !c.intake.canceled
	if first {
		c.down = err
		c.announce()
	}
	c.mu.Unlock()
	if first && c.opts.Observer != nil {
		c.opts.Observer.Down(err)
	}
}

func (c *consumer) tell(kind transport.EventKind, text string, err error) {
	if c.opts.Observer != nil {
		c.opts.Observer.Event(transport.Event{Kind: kind, Text: text, Err: err})
	}
}

// Buffered is how many messages wait here for Receive.
func (c *consumer) Buffered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.intake.buffer) + c.intake.lines.count
}

// Resize needs nothing: polls ask for what Receive has room for.
func (c *consumer) Resize(context.Context, int) error { return nil }

// Capabilities is what this queue can do.
func (c *consumer) Capabilities() longshore.Capabilities {
	caps := c.src.Capabilities()
	caps.DeadLetter = c.deadURL != ""
	caps.DeliveryLimit = c.maxReceives
	caps.CountsReturns = c.maxReceives > 0
	return caps
}

// Cancel stops polling. An answer on its way is waited for a moment; what it brings
// goes back, visible at once, or where the queue counts receives is handed out.
func (c *consumer) Cancel(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	c.intake.canceled = true
	c.announce()
	c.intake.ending = true
	err := c.endPolls(ctx)
	c.intake.ending = false
	// What waits behind heads is handed out like the rest: nothing comes that could
	// need its place, and heads that are not started any more never end.
	c.intake.buffer = append(c.intake.buffer, c.intake.lines.empty()...)
	c.announce()
	return err
}

// Release gives back what Receive has not handed out, and waits until the broker
// has it.
func (c *consumer) Release(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	c.releaseBuffer()
	c.announce()
	c.flushes++
	defer func() { c.flushes-- }()
	c.wake()
	return c.until(ctx, func() bool { return c.giving == 0 || c.closed })
}

// Flush sends everything that was accepted and waits for the answers.
func (c *consumer) Flush(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushes++
	defer func() { c.flushes-- }()
	c.wake()
	err := c.until(ctx, func() bool { return c.pending == 0 && c.telling == 0 || c.closed })
	n := c.failed
	c.failed = 0
	switch {
	case n > 0:
		return &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.src.title(), Source: c.src.ref.name,
			Err: fmt.Errorf("%d not carried out", n), Hint: "their messages are delivered again"}
	case err != nil:
		return &longshore.Error{Code: longshore.CodeTimeout, Op: "flush settlements of " + c.src.title(), Source: c.src.ref.name,
			Err: fmt.Errorf("%d not confirmed: %w", c.pending, err)}
	case c.closed:
		return longshore.ErrClosed
	}
	return nil
}

// Close gives back what is unsettled, sends what was accepted and ends. When ctx
// ends first, the rest is reported and given up.
func (c *consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.crew.wg.Wait()
		return nil
	}
	c.closed = true
	c.intake.canceled = true
	c.announce()
	// Polls first: one that is open would take what goes back. Those that are left
	// end with life.
	_ = c.endPolls(ctx)
	lost := c.surrender()
	c.mu.Unlock()
	c.reportLost(lost, longshore.ErrLost)
	c.mu.Lock()
	c.flushes++
	c.wake()
	err := c.until(ctx, func() bool { return c.pending == 0 })
	unsent := c.abandon()
	c.mu.Unlock()
	c.end()
	c.crew.wg.Wait()
	c.reportFailed(unsent, errors.New("the consumer was closed before it was sent"))
	c.link.close()
	if err != nil {
		return &longshore.Error{Code: longshore.CodeTimeout, Op: "close the consumer of " + c.src.title(), Source: c.src.ref.name, Err: err,
			Hint: "what was not given back comes again when its visibility timeout ends"}
	}
	return nil
}

// surrender gives back all that is unsettled. The caller holds mu.
func (c *consumer) surrender() []*longshore.Delivery {
	var lost []*longshore.Delivery
	c.intake.buffer = nil
	c.intake.lines.empty()
	for _, h := range c.inOrder() {
		if h.settled != nil || c.held[h.token] != h { // settled, or a copy that went with its message
			continue
		}
		if h.handed {
			lost = append(lost, h.d)
		}
		c.giveBack(h)
	}
	return lost
}
