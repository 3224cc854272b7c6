package sqs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// consumer is an open subscription. It wires its parts together: poller decides about
// polls, fifo holds what waits for Receive, visibility what is held and its leases, batcher
// the settlements. The parts make no calls and know nothing of each other; one lock guards
// them all. Polls and batches run on goroutines of their own, and one more, loop, does
// due work.
type consumer struct {
	src      *queueSource // what it was opened from
	calls    calls        // to this queue
	arrivals arrivals     // reads what is received
	crew     crew         // runs polls and batches

	life context.Context    //nolint:containedctx // of all calls; ends with Close
	end  context.CancelFunc // ends its goroutines
	kick chan struct{}      // makes the loop look again; holds one

	mu       sync.Mutex // guards the parts below, which have no lock of their own
	changed  broadcast  // wakes those who wait for a change
	poller   poller     // when and how much to ask for
	fifo     fifo       // which group has a message in hand
	held     visibility // what is in hand, and until when
	settling batcher    // deletes and visibility changes in batches
	reports  reports    // what the observer hears
	down     error      // why it ended by itself; nil while it lives
	closed   bool       // Close was called
}

// Open finds the queue and starts to consume. Nothing is received before Receive asks for
// it.
func (s *queueSource) Open(ctx context.Context, opts transport.OpenOptions) (transport.Consumer, error) {
	if err := s.ValidateOpen(opts); err != nil {
		return nil, err
	}
	h, err := s.handle(ctx, opts, true)
	if err != nil {
		return nil, err
	}
	c := s.consume(ctx, h, opts)
	c.crew.wg.Go(c.loop)
	c.reports.opened(h, opts)
	return c, nil
}

// consume makes a consumer of a queue that was found. Its loop does not run yet.
func (s *queueSource) consume(ctx context.Context, h *queueHandle, opts transport.OpenOptions) *consumer {
	if opts.Base == nil {
		opts.Base = context.Background()
	}
	c := &consumer{src: s, calls: calls{queueHandle: h, metrics: opts.Operations}, held: newVisibility(h.lease),
		crew: crew{work: make(chan func())}, kick: make(chan struct{}, 1), changed: newBroadcast(),
		reports: reports{Notifier: notify.New(opts.Observer), src: s}}
	c.arrivals.src, c.arrivals.fifo, c.arrivals.base = s, h.fifo, opts.Base
	c.arrivals.sub, c.arrivals.settler = subscription(h, s.ref.name), c
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.poller = newPoller(c.life, orDefault(s.cfg.MaxPollers, defaultPollers), opts.Paused)
	c.settling.linger = min(orDefault(s.cfg.SettleLinger, defaultLinger), h.lease/3)
	if h.fifo && opts.Ordered && opts.Batch == 0 {
		c.fifo.groups = map[string]*group{}
	}
	return c
}

// orDefault is a setting, or its default if it is zero.
func orDefault[T int | time.Duration](v, zero T) T {
	if v == 0 {
		return zero
	}
	return v
}

// loop extends leases, finds those that ended and sends batches, each at its time.
func (c *consumer) loop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(max(time.Until(c.turn(time.Now())), 0))
		select {
		case <-c.kick:
		case <-timer.C:
		case <-c.life.Done():
			return
		}
	}
}

// wake makes the loop look again.
func (c *consumer) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// turn does due work and returns when to come again.
func (c *consumer) turn(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	extend, ended := c.held.due(now)
	c.endLeases(ended, now)
	for _, batch := range extend {
		c.crew.run(c.life, func() { c.extend(batch) })
	}
	next := earlier(now.Add(time.Hour), c.held.next(now))
	for kind := range opKinds {
		for {
			batch, at := c.settling.take(kind, now)
			next = earlier(next, at)
			if batch == nil {
				break
			}
			c.crew.run(c.life, func() { c.carry(kind, batch) })
		}
	}
	at, drop := c.poller.leftover(now, c.calls.grace(), c.fifo.len())
	if drop {
		c.returnUnused(now)
	}
	next = earlier(earlier(next, at), c.poller.cutLate(now))
	c.startPolls()
	return next
}

// endLeases ends messages whose visibility timeout is over.
func (c *consumer) endLeases(ended []*held, now time.Time) {
	var lost []*held
	for _, h := range ended {
		switch {
		case h.phase() == phaseOpen:
			lost = c.lose(h, lost, now)
		case !c.held.survives(h, now) && c.settling.drop(h.settled): // a rejection that did not come through in time
			c.finish(h.settled, fmt.Errorf("its lease ended before the copy in the dead-letter queue was confirmed: %w", errGone), now)
		}
	}
	c.reports.leaseLost(lost, "its visibility timeout ended")
}

// fail ends the consumer: Receive returns err from now on. What is held can still be
// settled.
func (c *consumer) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != nil || c.closed || c.poller.canceled {
		return
	}
	c.down = err
	c.changed.announce()
	c.reports.Down(err)
}

// Capabilities is what this queue can do.
func (c *consumer) Capabilities() longshore.Capabilities {
	caps := c.src.Capabilities()
	caps.DeadLetter = c.calls.deadURL != ""
	caps.DeliveryLimit = c.calls.maxReceives
	caps.CountsReturns = c.calls.maxReceives > 0
	caps.LimitDeadLetters = c.calls.deadURL != ""
	return caps
}

// Release gives back what Receive has not handed out, and waits until the broker has it.
func (c *consumer) Release(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	c.returnUnused(time.Now())
	c.changed.announce()
	defer c.hurry()()
	return c.changed.until(ctx, &c.mu, func() bool { return c.settling.unused == 0 || c.closed })
}

// hurry makes everything that was accepted go now, until the result is called.
func (c *consumer) hurry() (end func()) {
	c.settling.impatient++
	c.wake()
	return func() { c.settling.impatient-- }
}

// Flush sends everything that was accepted and waits for the answers. The observer has
// heard of each failure when it returns.
func (c *consumer) Flush(ctx context.Context) error {
	c.mu.Lock()
	end := c.hurry()
	err := c.changed.until(ctx, &c.mu, func() bool { return c.settling.accepted == 0 || c.closed })
	end()
	failed, accepted, closed := c.settling.takeFailed(), c.settling.accepted, c.closed
	c.mu.Unlock()
	if err == nil {
		err = c.reports.Wait(ctx)
	}
	e := &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.src.title(), Source: c.src.ref.name}
	switch {
	case failed > 0:
		e.Err, e.Hint = fmt.Errorf("%d not carried out", failed), "their messages will be redelivered"
	case err != nil:
		e.Code, e.Err = longshore.CodeTimeout, fmt.Errorf("%d not confirmed: %w", accepted, err)
	case closed:
		return longshore.ErrClosed
	default:
		return nil
	}
	return e
}

// Close gives back unsettled deliveries, sends what was accepted and ends. When ctx ends
// first, the rest is reported and given up.
func (c *consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.crew.wg.Wait()
		return nil
	}
	c.closed = true
	c.poller.canceled = true
	c.changed.announce()
	// Polls first: one that is open would take what goes back. Those that are left end
	// with life.
	_ = c.endPolls(ctx)
	c.surrender(time.Now())
	end := c.hurry()
	err := c.changed.until(ctx, &c.mu, func() bool { return c.settling.accepted == 0 })
	end()
	unsent := c.abandon()
	c.mu.Unlock()
	c.end()
	c.crew.wg.Wait()
	for _, o := range unsent {
		c.reports.settleFailed(o, errUnsent)
	}
	_ = c.reports.Wait(context.WithoutCancel(ctx)) // an observer does not block
	c.calls.close()
	if err != nil {
		return &longshore.Error{Code: longshore.CodeTimeout, Op: "close the consumer of " + c.src.title(), Source: c.src.ref.name, Err: err,
			Hint: "messages that were not given back will be redelivered when their visibility timeout ends"}
	}
	return nil
}

// surrender gives back all that is unsettled.
func (c *consumer) surrender(now time.Time) {
	var lost []*longshore.Delivery
	c.fifo.takeAll()
	for _, h := range c.held.inOrder() {
		if h.settled != nil || !c.held.holds(h) { // settled, or a copy that went with its message
			continue
		}
		if h.handed {
			lost = append(lost, h.d)
		}
		c.giveBack(h, 0, now)
	}
	c.reports.lost(lost, longshore.ErrLost)
}

// abandon takes everything that was accepted and not carried out.
func (c *consumer) abandon() []*op {
	var unsent []*op
	for _, h := range c.held.inOrder() {
		if o := h.settled; o != nil && !o.quiet {
			unsent = append(unsent, o)
			o.quiet = true // reported now
		}
	}
	c.held.forgetAll()
	return unsent
}

// broadcast wakes everyone who waits for a change under a lock.
type broadcast struct {
	changed chan struct{} // closed and replaced with each change
}

func newBroadcast() broadcast { return broadcast{changed: make(chan struct{})} }

// announce wakes everything that waits for a change of the consumer.
func (b *broadcast) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// wait gives the lock away until something changes or ctx ends.
func (b *broadcast) wait(ctx context.Context, mu *sync.Mutex) {
	changed := b.changed
	mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	mu.Lock()
}

// until waits for a condition, which is checked under the lock. Errors: ctx's.
func (b *broadcast) until(ctx context.Context, mu *sync.Mutex, cond func() bool) error {
	for !cond() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.wait(ctx, mu)
	}
	return nil
}

// opened reports what an operator should know about the queue.
func (r *reports) opened(h *queueHandle, opts transport.OpenOptions) {
	if r.src.cfg.Declare.Attributes != nil {
		text := fmt.Sprintf("queue %q", r.src.ref.name)
		if d := opts.DeadLetter; d != "" && queueName(d) {
			text += fmt.Sprintf(", dead-letter queue %q", d)
		}
		r.Event(transport.Event{Kind: transport.EventDeclared, Text: text})
	}
	if h.notice != "" {
		r.notice(h.notice, nil)
	}
	if p, err := r.src.place(); err == nil {
		if text := p.clearNotice(); text != "" {
			r.notice(text, nil)
		}
	}
}
