package sqs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// This file is the consumer's way out: from a verdict to the broker's answer.

// Ack accepts a delete.
func (c *consumer) Ack(_ context.Context, token uint64) error {
	return c.settle(token, op{kind: opDelete, verb: longshore.Settlement{Verb: longshore.VerbAck}}, nil)
}

// Nack accepts a return after the delay, in whole seconds rounded up.
func (c *consumer) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	o := op{kind: opReturn, seconds: seconds(max(delay, 0)), verb: longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt}}
	return c.settle(token, o, func(h *held, now time.Time) error {
		if delay > maxLease {
			return c.reports.unsupported(fmt.Errorf("a delay of %s: SQS holds a message back for 12 hours at most", delay))
		}
		// SQS counts the 12 hours from the receive. A longer delay takes two steps: the
		// message comes in between and is sent back here.
		if left := h.hideable(now); delay > left {
			h.own.seconds = seconds(left)
			c.src.attempts.wait(h.id, now.Add(delay))
		}
		c.src.attempts.next(h.id, h.receives, attempt)
		return nil
	})
}

// Reject accepts a move to the dead-letter queue of the redrive policy: a copy is sent
// there, then the message is deleted.
func (c *consumer) Reject(_ context.Context, token uint64, reason error) error {
	return c.settle(token, op{kind: opDead, verb: longshore.Settlement{Verb: longshore.VerbReject, Reason: reason}}, func(*held, time.Time) error {
		if c.calls.deadURL == "" {
			return c.reports.unsupported(errors.New("the queue has no redrive policy with a dead-letter queue that can be used"))
		}
		return nil
	})
}

// Extend gives the message this lease from now, and waits for the answer.
func (c *consumer) Extend(ctx context.Context, token uint64, lease time.Duration) error {
	c.mu.Lock()
	now := time.Now()
	h, err := c.held.find(token, now, c.closed)
	if err == nil && (lease > maxLease || now.Sub(h.since)+lease > maxLease-time.Second) {
		err = c.reports.unsupported(fmt.Errorf("a lease of %s: SQS hides a message for 12 hours since it was received", lease))
	}
	if err != nil {
		c.mu.Unlock()
		return err
	}
	done := make(chan error, 1)
	if c.held.ask(h, time.Duration(seconds(max(lease, time.Second)))*time.Second, now, done) {
		c.wake()
	}
	c.mu.Unlock()
	select {
	case err := <-done:
		if gone(err) {
			c.mu.Lock() // the delivery is notified of its loss in the critical section that has sent this
			defer c.mu.Unlock()
			return longshore.ErrLost
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return longshore.ErrClosed
	}
}

// settle accepts a verdict. check may refuse it, or change the message's own; it runs
// under the lock.
func (c *consumer) settle(token uint64, verdict op, check func(*held, time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	h, err := c.held.find(token, now, c.closed)
	if err != nil {
		return err
	}
	h.own = verdict
	if check != nil {
		if err := check(h, now); err != nil {
			return err
		}
	}
	o := &h.own
	o.h, o.receipt = h, h.receipt
	h.settled = o
	if o.kind != opDead { // until the copy is sent the lease is kept
		c.held.unkeep(h)
	}
	switch {
	case !c.calls.fifo:
	case o.kind == opReturn:
		for _, f := range c.fifo.takeBehind(h) {
			c.giveBack(f, 0, now)
		}
	case c.fifo.settled(h):
		c.changed.announce()
	}
	c.send(o, now)
	switch o.kind {
	case opDelete:
		c.deleteCopies(h, now)
	case opReturn:
		c.held.forgetCopies(h)
	case opDead, opKinds:
	}
	return nil
}

// send puts an operation in line.
func (c *consumer) send(o *op, now time.Time) {
	c.settling.accept(o, now)
	if !c.held.postpone(o) && c.settling.put(o) {
		c.wake()
	}
}

// giveBack returns a message that no handler has worked on: visible after rest, and not
// counted as an attempt.
func (c *consumer) giveBack(h *held, rest time.Duration, now time.Time) {
	c.src.attempts.next(h.id, h.receives, h.d.Attempt)
	o := &op{kind: opReturn, h: h, receipt: h.receipt, seconds: seconds(min(rest, h.hideable(now))), quiet: true, unused: true}
	h.settled = o
	c.held.unkeep(h)
	c.held.forgetCopies(h)
	c.send(o, now)
}

// deleteCopies deletes a message by its other receipts too.
func (c *consumer) deleteCopies(h *held, now time.Time) {
	for _, x := range c.held.takeCopies(h) {
		x.settled = &op{kind: opDelete, h: x, receipt: x.receipt, quiet: true}
		c.send(x.settled, now)
	}
}

// carry sends a batch and takes the outcome of each entry.
func (c *consumer) carry(kind opKind, batch []*op) {
	ctx, cancel := context.WithTimeout(c.life, callTimeout)
	defer cancel()
	c.mu.Lock()
	changes := changesOf(batch, time.Now())
	c.mu.Unlock()
	var r result
	switch kind {
	case opDelete:
		r = c.calls.delete(ctx, changes)
	case opReturn:
		r = c.calls.hide(ctx, longshore.OperationNack, changes)
	case opDead:
		r = c.calls.copyDead(ctx, batch)
	case opKinds:
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, out := range c.settling.called(kind, batch, &r, now, c.life.Err() != nil) {
		if out.visible {
			c.src.attempts.waitFor(out.o, now)
		}
		c.finish(out.o, out.err, now)
	}
	c.wake()
}

// finish takes the outcome of an operation.
func (c *consumer) finish(o *op, err error, now time.Time) {
	h := o.h
	c.settling.ended(o)
	if o.kind == opDead && err == nil {
		c.held.unkeep(h)
		h.settled = &op{kind: opDelete, h: h, receipt: h.receipt, verb: o.verb}
		c.send(h.settled, now)
		c.deleteCopies(h, now)
		return
	}
	back := false
	if err != nil && !o.quiet {
		c.settling.failed++
		c.reports.settleFailed(o, err)
		if back = o.kind != opReturn && h.deadline.After(now) && !gone(err); back {
			c.held.unkeep(h)
			h.settled = &op{kind: opReturn, h: h, receipt: h.receipt, quiet: true}
			c.send(h.settled, now)
		}
	}
	if !back && (h.settled == o || h.settled == nil) {
		c.held.forget(h)
	}
	if err == nil && o.kind == opDelete {
		c.src.attempts.forget(h.id)
	}
	if c.settling.impatient > 0 { // no one else waits for it
		c.changed.announce()
	}
}

// extend sends one batch of extensions.
func (c *consumer) extend(batch []*held) {
	ctx, cancel := context.WithTimeout(c.life, callTimeout)
	defer cancel()
	sent := time.Now()
	c.mu.Lock()
	entries := c.held.extensions(batch, sent)
	c.mu.Unlock()
	changes, n := make([]change, len(entries)), 0
	for i, e := range entries {
		changes[i] = change{receipt: e.receipt, seconds: seconds(e.length), skip: !e.send}
		if e.send {
			n++
		}
	}
	r := c.calls.hide(ctx, longshore.OperationExtend, changes)
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.running--
	inCompany := r.inCompany(n)
	var lost []*held
	errs := make([]error, len(entries))
	for i := range entries {
		e := &entries[i]
		e.h.alone = e.h.alone || inCompany
		lost, errs[i] = c.extended(e, &r, i, sent, now, lost)
	}
	c.reports.leaseLost(lost, "the broker reports that it is not in flight any more")
	for i := range entries { // after the loss, so that a caller of Extend who hears of it does not own the delivery any more
		entries[i].h.answer(errs[i])
		if c.held.askMore(entries[i].h, now) {
			c.wake()
		}
	}
	c.wake()
}

// extended takes the outcome of one entry, number i of the call. It adds to those that are
// lost.
func (c *consumer) extended(e *extension, r *result, i int, sent, now time.Time, lost []*held) ([]*held, error) {
	err, _ := r.of(i)
	if e.length == 0 {
		e.h.extending = false
		err = c.reports.unsupported(errExhausted)
	}
	after, gone := c.held.extended(e, sent, now, err)
	if after != nil && c.settling.put(after) {
		c.wake()
	}
	if gone {
		lost = c.lose(e.h, lost, now)
	}
	switch {
	case !c.held.holds(e.h):
	case e.receipt != e.h.receipt: // it goes on with another one
		e.h.askAgain()
	case e.length == 0:
		c.held.exhaust(e.h)
	}
	return lost, err
}
