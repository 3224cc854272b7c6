package container

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
)

var errNacked = errors.New("given back by the handler")

// Settle implements longshore.Owner: the verbs that a handler calls.
func (c *caller) Settle(ctx context.Context, d *longshore.Delivery, s longshore.Settlement) error {
	if s.Verb == longshore.VerbExtend {
		return d.Apply(ctx, s)
	}
	if !c.s.manual {
		return c.settler.early(ctx, d, c.notesOf(d), s)
	}
	it := c.takeManual(d)
	if it == nil {
		return d.Apply(ctx, s)
	}
	still, err := c.settler.byHand(ctx, it, s)
	if still {
		c.locked(func() { c.held.manual[d] = it })
	}
	return err
}

// notesOf returns the notes of a delivery whose handler runs, locked; nil: it has
// returned.
func (c *caller) notesOf(d *longshore.Delivery) (n *notes) {
	c.locked(func() {
		if _, it := c.pool.find(d); it != nil {
			n = it.write()
		}
	})
	return n
}

// takeManual takes an unsettled delivery off those that handlers settle; nil: it is none
// of them any more.
func (c *caller) takeManual(d *longshore.Delivery) (it *item) {
	c.locked(func() {
		it = c.held.manual[d]
		delete(c.held.manual, d)
	})
	return it
}

// early is a verb in a handler whose result settles. An ack is carried out at once,
// unless a middleware has something to commit first. The others wait for the handler's
// return: carried out now, the message could be handled again beside this handler, or
// overtaken by its followers. n are its notes, locked; nil: the handler has returned.
func (t *settler) early(ctx context.Context, d *longshore.Delivery, n *notes, s longshore.Settlement) error {
	if n == nil { // its result counts
		if d.Owned() {
			return longshore.ErrSettled
		}
		return d.Apply(ctx, s)
	}
	defer n.mu.Unlock()
	switch {
	case n.acked && s.Verb == longshore.VerbAck: // a middleware may call the handler again
		return nil
	case n.explicit != nil, n.acked:
		return longshore.ErrSettled
	case s.Verb == longshore.VerbAck && d.Owned() && d.AckHeld(): // the chain's result says it
		n.acked = true
		return nil
	case s.Verb == longshore.VerbAck || !d.Owned():
		return d.Apply(ctx, s)
	}
	n.explicit = asVerdict(s)
	t.asked.note(d, n.explicit)
	return nil
}

// asVerdict is what a handler would have returned in place of a nack or a reject.
func asVerdict(s longshore.Settlement) error {
	if s.Verb == longshore.VerbNack {
		return longshore.Retry(errNacked, max(s.Delay, 1))
	}
	return longshore.Reject(s.Reason)
}

// byHand is a verb where the handler settles: place, lane and context of the delivery
// end with it. still says that the broker refused it, and the delivery is open still.
func (t *settler) byHand(ctx context.Context, it *item, s longshore.Settlement) (still bool, err error) {
	d, now := it.d, t.clock.now()
	j := judgement{verdict: longshore.VerdictAck, end: now, took: now.Sub(it.started)}
	if s.Verb != longshore.VerbAck && d.Owned() {
		d.Finish(nil)
		//nolint:contextcheck // what follows a settlement does not end with the handler's context
		t.carryOut(nil, it, asVerdict(s), j.end, j.took)
		return false, nil
	}
	err = d.Apply(ctx, s)
	switch {
	case err == nil, errors.Is(err, longshore.ErrSettled):
	case errors.Is(err, longshore.ErrLost), errors.Is(err, longshore.ErrClosed):
		j.verdict = longshore.VerdictLost
	default:
		return true, err
	}
	d.Finish(nil)
	t.end(nil, it, j)
	return false, err
}

// handleManual calls a handler that settles by hand.
func (c *caller) handleManual(w *worker, it *item) {
	d, start := it.d, c.now()
	d.Own(c, start)
	c.locked(func() { it.started = start }) // which Stats may read at any time
	w.busy.Store(start.UnixNano())
	err := c.settler.handlers.call(d)
	c.manualReturn(w, d, start, err, c.now())
}

// manualReturn ends the call of a handler that settles by hand. That changes nothing for
// the delivery, unless the handler failed with it still open, or lost it.
func (c *caller) manualReturn(w *worker, d *longshore.Delivery, start time.Time, err error, end time.Time) {
	var it *item
	take := false
	c.locked(func() {
		c.done.endCall(w, end, end.Sub(start), err != nil)
		if it = c.held.manual[d]; it != nil {
			it.returned = true
		}
		if take = it != nil && (err != nil || !d.Owned()); take {
			delete(c.held.manual, d)
		}
	})
	switch {
	case take:
		d.Finish(nil)
		c.settler.carryOut(nil, it, err, end, end.Sub(start))
	case err != nil:
		c.notice(err, ignored)
	}
}

// Wait implements longshore.Owner: the time of fn is neither busy nor latency.
func (c *caller) Wait(ctx context.Context, d *longshore.Delivery, fn func(context.Context) error) error {
	start := c.now()
	var w *worker
	var it *item
	c.locked(func() {
		if w, it = c.pool.find(d); w != nil {
			if w.waits++; w.waits == 1 {
				w.waitAt = start
			}
		}
	})
	if w == nil {
		return fn(ctx)
	}
	defer func() {
		now := c.now()
		c.locked(func() { c.waitedLocked(w, it, d, start, now) })
	}()
	return fn(ctx)
}

// waitedLocked takes the time off that a handler has spent in Delivery.Wait.
func (c *caller) waitedLocked(w *worker, it *item, d *longshore.Delivery, start, now time.Time) {
	if now2, _ := c.pool.find(d); now2 != w || w.waits == 0 {
		return // the handler has returned
	}
	if w.waits--; w.waits == 0 {
		c.calls.waited(w.waitAt, now)
	}
	if it == nil {
		return
	}
	if n := it.write(); n != nil {
		n.waited += now.Sub(start)
		n.mu.Unlock()
	}
}
