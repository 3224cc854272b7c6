package sqs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

type opKind int

const (
	opDelete opKind = iota
	opReturn        // change of visibility
	opDead          // copy to the dead-letter queue; a delete follows
	opExtend
	kinds
)

// operation is what metrics call it.
func (k opKind) operation() longshore.OperationKind {
	return [kinds]longshore.OperationKind{opDelete: longshore.OperationAck, opReturn: longshore.OperationNack,
		opDead: longshore.OperationReject, opExtend: longshore.OperationExtend}[k]
}

// op is a settlement on its way.
type op struct {
	kind    opKind
	h       *held
	receipt string
	seconds int32 // of a return
	verb    longshore.Settlement
	quiet   bool // nobody is told of a failure: our own return
	giving  bool // counts as given back unworked
	since   time.Time
	next    time.Time // not before; zero: at once
	tries   int
	alone   bool // was refused in company; goes by itself
	unsure  bool // a call for this receipt ended without an answer: it may have been carried out
}

// Ack accepts a delete.
func (c *consumer) Ack(_ context.Context, token uint64) error {
	return c.settle(token, op{kind: opDelete, verb: longshore.Settlement{Verb: longshore.VerbAck}}, nil)
}

// Nack accepts a return after the delay, in whole seconds rounded up.
func (c *consumer) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	o := op{kind: opReturn, seconds: seconds(max(delay, 0)), verb: longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt}}
	return c.settle(token, o, func(h *held) error {
		if delay > maxLease {
			return c.unsupported(fmt.Errorf("a delay of %s: SQS holds a message back for 12 hours at most", delay))
		}
		// SQS counts the 12 hours from the receive. What is longer is done in two
		// steps: the message comes in between and is sent back here.
		if left := hideable(h, time.Now()); delay > left {
			h.own.seconds = seconds(left)
			c.src.counts.wait(h.id, time.Now().Add(delay))
		}
		c.src.counts.next(h.id, h.receives, attempt)
		return nil
	})
}

// Reject accepts a move to the dead-letter queue of the redrive policy: a copy is
// sent there, then the message is deleted.
func (c *consumer) Reject(_ context.Context, token uint64, reason error) error {
	return c.settle(token, op{kind: opDead, verb: longshore.Settlement{Verb: longshore.VerbReject, Reason: reason}}, func(*held) error {
		if c.deadURL == "" {
			return c.unsupported(errors.New("the queue has no redrive policy with a dead-letter queue that can be used"))
		}
		return nil
	})
}

func (c *consumer) unsupported(err error) error {
	return &longshore.Error{Code: longshore.CodeUnsupported, Op: "settle a message of " + c.src.title(), Source: c.src.ref.name, Err: err}
}

// Extend gives the message this lease from now, and waits for the answer.
func (c *consumer) Extend(ctx context.Context, token uint64, lease time.Duration) error {
	c.mu.Lock()
	h, err := c.find(token)
	if err == nil && (lease > maxLease || time.Since(h.since)+lease > maxLease-time.Second) {
		err = c.unsupported(fmt.Errorf("a lease of %s: SQS hides a message for 12 hours since it was received", lease))
	}
	if err != nil {
		c.mu.Unlock()
		return err
	}
	h.asked = time.Duration(seconds(max(lease, time.Second))) * time.Second
	h.capped = false // what is asked for may be less than what was left
	done := make(chan error, 1)
	h.more = append(h.more, done)
	c.askMore(h) // or when the one on its way is back
	c.mu.Unlock()
	select {
	case err := <-done:
		if gone(err) {
			return c.wasLost(ctx, h)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return longshore.ErrClosed
	}
}

// wasLost waits until the delivery was told, so that who hears of a loss here does
// not own it any more.
func (c *consumer) wasLost(ctx context.Context, h *held) error {
	c.mu.Lock()
	settled := h.settled != nil
	c.mu.Unlock()
	if settled {
		return longshore.ErrLost
	}
	select {
	case <-h.d.Context().Done():
	case <-ctx.Done():
	case <-c.life.Done():
	}
	return longshore.ErrLost
}

// find returns an open message. The caller holds mu.
func (c *consumer) find(token uint64) (*held, error) {
	h := c.held[token]
	switch {
	case c.closed:
		return nil, longshore.ErrClosed
	case h == nil:
		return nil, longshore.ErrLost
	case h.settled != nil:
		return nil, longshore.ErrSettled
	case !h.deadline.After(time.Now()):
		return nil, longshore.ErrLost // the loop is about to say so
	}
	return h, nil
}

// settle accepts a verb. check may refuse it, or change the message's own; it runs
// under the lock.
func (c *consumer) settle(token uint64, verb op, check func(*held) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, err := c.find(token)
	if err != nil {
		return err
	}
	h.own = verb
	if check != nil {
		if err := check(h); err != nil {
			return err
		}
	}
	o := &h.own
	o.h, o.receipt = h, h.receipt
	h.settled = o
	if o.kind != opDead { // until the copy is sent the lease is kept
		c.unkeep(h)
	}
	switch {
	case !c.fifo:
	case o.kind == opReturn:
		c.releaseBehind(h)
	default:
		c.advance(h)
	}
	c.send(o)
	switch o.kind {
	case opDelete:
		c.deleteCopies(h)
	case opReturn:
		c.forgetCopies(h)
	case opDead, opExtend, kinds:
	}
	return nil
}

// send puts an operation in line, behind an extension of the same receipt that is
// on its way: an extension that arrives later would undo a return. The caller
// holds mu.
func (c *consumer) send(o *op) {
	c.pending++
	if o.giving {
		c.giving++
	}
	o.since = time.Now()
	if o.h.extending && o.kind != opDead {
		o.h.after = o
		return
	}
	c.put(o)
}

// enqueue is send for an operation that was counted already or waits for nothing.
func (c *consumer) enqueue(o *op) {
	if o.since.IsZero() {
		c.pending++
		o.since = time.Now()
	}
	c.put(o)
}

func (c *consumer) put(o *op) {
	b := &c.batches[o.kind]
	b.queue = append(b.queue, o)
	if len(b.queue) == 1 || len(b.queue) >= maxBatch || c.flushes > 0 {
		c.wake()
	}
}

// hideable is how long SQS can still hide a message.
func hideable(h *held, now time.Time) time.Duration {
	return max((maxLease - now.Sub(h.since) - 2*time.Second).Truncate(time.Second), 0)
}

// giveBack returns a message that nobody worked on: visible at once, not counted.
// The caller holds mu.
func (c *consumer) giveBack(h *held) { c.giveBackFor(h, 0) }

// giveBackFor returns a message that must not be worked on for a while. The caller
// holds mu.
func (c *consumer) giveBackFor(h *held, rest time.Duration) {
	c.src.counts.next(h.id, h.receives, h.d.Attempt)
	o := &op{kind: opReturn, h: h, receipt: h.receipt, seconds: seconds(min(rest, hideable(h, time.Now()))), quiet: true, giving: true}
	h.settled = o
	c.unkeep(h)
	c.forgetCopies(h)
	c.send(o)
}

// finish takes the outcome of an operation. It returns it if somebody has to be
// told. The caller holds mu.
func (c *consumer) finish(o *op, err error) *op {
	h := o.h
	if o.kind == opDead && err == nil {
		c.unkeep(h)
		h.settled = &op{kind: opDelete, h: h, receipt: h.receipt, verb: o.verb}
		c.pending--
		c.send(h.settled)
		c.deleteCopies(h)
		return nil
	}
	c.pending--
	if o.giving {
		c.giving--
	}
	tell := err != nil && !o.quiet
	if tell {
		c.failed++
		if o.kind != opReturn && h.deadline.After(time.Now()) && !gone(err) {
			c.unkeep(h)
			back := &op{kind: opReturn, h: h, receipt: h.receipt, quiet: true}
			h.settled = back
			c.send(back)
			h = nil
		}
	}
	if h != nil && (h.settled == o || h.settled == nil) {
		c.forget(h)
	}
	if err == nil && o.kind == opDelete {
		c.src.counts.forget(o.h.id)
	}
	if c.flushes > 0 { // nobody else waits for it
		c.announce()
	}
	if tell {
		c.telling++
		return o
	}
	return nil
}

// tellFailed is reportFailed for what finish returned. Flush waits for it: who asked
// hears first what failed.
func (c *consumer) tellFailed(ops []*op, err error) {
	if len(ops) == 0 {
		return
	}
	c.reportFailed(ops, err)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.telling -= len(ops)
	c.announce()
}

// abandon takes everything that was accepted and not carried out. The caller
// holds mu.
func (c *consumer) abandon() []*op {
	var unsent []*op
	for _, h := range c.inOrder() {
		if o := h.settled; o != nil && !o.quiet {
			unsent = append(unsent, o)
			o.quiet = true // told now
		}
	}
	c.held, c.byID, c.leases = map[uint64]*held{}, map[string]*held{}, nil
	return unsent
}

// reportLost tells handlers and observer; not those who have settled meanwhile.
func (c *consumer) reportLost(ds []*longshore.Delivery, cause error) {
	open := ds[:0]
	for _, d := range ds {
		if d.Lose(cause) {
			open = append(open, d)
		}
	}
	if len(open) > 0 && c.opts.Observer != nil {
		c.opts.Observer.Lost(open, cause)
	}
}

func (c *consumer) reportLeases(ds []*longshore.Delivery, why string) {
	if len(ds) > 0 {
		c.reportLost(ds, c.leaseLost(ds, why))
	}
}

func (c *consumer) reportFailed(ops []*op, err error) {
	if c.opts.Observer == nil {
		return
	}
	var where []longshore.Field
	if p, unknown := c.src.place(); unknown == nil {
		where = p.where()
	}
	for _, o := range ops {
		c.opts.Observer.SettleFailed(o.h.d, o.verb, &longshore.Error{Code: longshore.CodeSettle, Fields: where,
			Op: fmt.Sprintf("%s message %s of %s", o.verb.Verb, o.h.id, c.src.title()), Source: c.src.ref.name, Err: err, Hint: "it is delivered again"})
	}
}
