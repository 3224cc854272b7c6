package container

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
)

var errNacked = errors.New("given back by the handler")

// Settle implements longshore.Owner: the verbs that a handler calls.
func (r *engine) Settle(ctx context.Context, d *longshore.Delivery, s longshore.Settlement) error {
	switch {
	case s.Verb == longshore.VerbExtend:
		return d.Apply(ctx, s)
	case r.s.manual:
		return r.settleByHand(ctx, d, s)
	}
	return r.settleEarly(ctx, d, s)
}

// settleEarly is a verb in a handler whose result settles. An ack is carried out
// at once, unless a middleware has something to commit first. The others wait for the
// handler's return: carried out now, the message could be handled again beside this
// handler, or overtaken by its followers.
func (r *engine) settleEarly(ctx context.Context, d *longshore.Delivery, s longshore.Settlement) error {
	r.mu.Lock()
	_, it := r.pool.find(d)
	var n *notes
	if it != nil {
		n = it.write()
	}
	r.mu.Unlock()
	if n == nil { // the handler has returned: its result counts
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
	r.c.asked.note(d, n.explicit)
	return nil
}

// asVerdict is what a handler would have returned in place of a nack or a reject.
func asVerdict(s longshore.Settlement) error {
	if s.Verb == longshore.VerbNack {
		return longshore.Retry(errNacked, max(s.Delay, 1))
	}
	return longshore.Reject(s.Reason)
}

// settleByHand is a verb where the handler settles: slot, lane and context end
// here.
func (r *engine) settleByHand(ctx context.Context, d *longshore.Delivery, s longshore.Settlement) error {
	r.mu.Lock()
	it := r.manual[d]
	delete(r.manual, d)
	r.mu.Unlock()
	if it == nil {
		return d.Apply(ctx, s)
	}
	now := r.now()
	took := now.Sub(it.started)
	if s.Verb == longshore.VerbAck || !d.Owned() {
		return r.applyByHand(ctx, it, s, now, took)
	}
	d.Finish(nil)
	//nolint:contextcheck // what follows a settlement does not end with the handler's context
	r.carryOut(nil, it, asVerdict(s), now, took)
	return nil
}

func (r *engine) applyByHand(ctx context.Context, it *item, s longshore.Settlement, now time.Time, took time.Duration) error {
	d := it.d
	err := d.Apply(ctx, s)
	j := judgement{verdict: longshore.VerdictAck, end: now, took: took}
	switch {
	case err == nil, errors.Is(err, longshore.ErrSettled):
	case errors.Is(err, longshore.ErrLost), errors.Is(err, longshore.ErrClosed):
		j.verdict = longshore.VerdictLost
	default: // refused: it is open still
		r.mu.Lock()
		r.manual[d] = it
		r.mu.Unlock()
		return err
	}
	d.Finish(nil)
	r.done(nil, it, j)
	return err
}

// manualReturn is the return of a handler that settles by hand: nothing, unless it
// failed with the delivery still open, or lost it.
func (r *engine) manualReturn(w *worker, d *longshore.Delivery, start time.Time, err error, end time.Time) {
	r.mu.Lock()
	r.endCall(w, end, end.Sub(start), err != nil)
	it := r.manual[d]
	if it != nil {
		it.returned = true
	}
	take := it != nil && (err != nil || !d.Owned())
	if take {
		delete(r.manual, d)
	}
	r.mu.Unlock()
	switch {
	case take:
		d.Finish(nil)
		r.carryOut(nil, it, err, end, end.Sub(start))
	case err != nil:
		r.notice(err, ignored)
	}
}

// Wait implements longshore.Owner: the time of fn is neither busy nor latency.
func (r *engine) Wait(ctx context.Context, d *longshore.Delivery, fn func(context.Context) error) error {
	start := r.now()
	r.mu.Lock()
	w, it := r.pool.find(d)
	if w != nil {
		if w.waits++; w.waits == 1 {
			w.waitAt = start
		}
	}
	r.mu.Unlock()
	if w == nil {
		return fn(ctx)
	}
	defer r.waited(w, it, d, start)
	return fn(ctx)
}

func (r *engine) waited(w *worker, it *item, d *longshore.Delivery, start time.Time) {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now2, _ := r.pool.find(d); now2 != w || w.waits == 0 {
		return // the handler has returned
	}
	if w.waits--; w.waits == 0 {
		r.load.calls.waited(w.waitAt, now)
	}
	if it == nil {
		return
	}
	if n := it.write(); n != nil {
		n.waited += now.Sub(start)
		n.mu.Unlock()
	}
}
