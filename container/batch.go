package container

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
)

// batchReady says whether a batch should be taken now: it is full, its time is
// over, or waiting would bring nothing more. The caller holds mu and knows that
// something is ready.
func (r *engine) batchReady() bool {
	return r.sched.Ready() >= r.s.batch || r.linger.due || r.s.linger == 0 || r.axes.Stopping() ||
		r.sched.Front().Of.alone() || r.free() <= 0
}

// alone says that the item cannot share a batch.
func (it *item) alone() bool { return it.solo || it.fail != nil }

// armBatch lets the time of a batch begin with its first delivery. The caller
// holds mu.
func (r *engine) armBatch() {
	if r.s.batch == 0 || r.s.linger == 0 || r.sched.Ready() == 0 || r.linger.due || r.linger.armed {
		return
	}
	r.linger.armed = true
	r.linger.timer = r.s.clock.AfterFunc(r.s.linger, func() {
		r.mu.Lock()
		r.linger.armed = false
		r.linger.due = r.sched.Ready() > 0 && !r.gateShut
		r.wakeOne()
		r.mu.Unlock()
	})
}

// nextBatch gives the worker up to a batch: ready items, each with the followers
// in its lane. The caller holds mu.
func (r *engine) nextBatch(w *worker) bool {
	if !r.startable() {
		return false
	}
	w.batch = w.batch[:0]
	for r.sched.Ready() > 0 && len(w.batch) < r.s.batch {
		it := r.sched.Front().Of
		if !it.d.Owned() {
			r.loseFront()
			continue
		}
		if len(w.batch) > 0 && it.alone() {
			break
		}
		// A batch is one call and needs one permit.
		if len(w.batch) == 0 && r.s.gate != nil && !r.acquire(it) {
			r.linger.due = false // its time begins when it may start: until then more can come
			return false
		}
		w.taken = r.sched.Next(r.s.batch-len(w.batch), w.taken[:0])
		for _, t := range w.taken {
			r.begin(t.Of)
		}
		if it.fail != nil {
			w.it, w.d = it, it.d
			return true
		}
		for _, t := range w.taken {
			w.batch = append(w.batch, t.Of)
		}
		if it.solo {
			break
		}
	}
	r.linger.due = false
	if r.linger.armed {
		r.linger.timer.Stop()
		r.linger.armed = false
	}
	r.armBatch()
	return len(w.batch) > 0
}

// processBatch calls the batch handler and carries out a verdict for each.
func (r *engine) processBatch(w *worker) {
	start := r.now()
	w.began = start
	w.ds = w.ds[:0]
	torn := false
	for _, it := range w.batch {
		switch {
		case !it.d.Owned(): // the last moment to notice a loss
			torn = true
			r.markLost(it)
		case torn && r.isTorn(it): // it comes behind that one again
		default:
			it.d.Own(r, start)
			it.started = start
			w.ds = append(w.ds, it.d)
		}
	}
	w.busy.Store(start.UnixNano())
	var err error
	if len(w.ds) > 0 {
		err = r.callBatch(w.ds)
	}
	r.batchEnd(w, err, r.now())
}

func (r *engine) callBatch(ds []*longshore.Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return r.c.batch.HandleBatch(r.life.base, ds)
}

// batchEnd carries the verdicts out. An error for the whole batch does not tell
// which of them is at fault: next time each comes alone, so that a bad one does
// not take its neighbours with it.
func (r *engine) batchEnd(w *worker, err error, end time.Time) {
	start := w.began
	var each longshore.BatchError
	whole := err != nil && !errors.As(err, &each)
	r.mu.Lock()
	batch := w.batch
	r.execEnd(w, end, end.Sub(start), err != nil)
	w.batch = nil
	r.mu.Unlock()
	i := -1 // in what the handler saw
	for n, it := range batch {
		if it.started != start {
			r.unseen(it, end)
			continue
		}
		i++
		own := each[i]
		if whole {
			own, it.solo = err, len(batch) > 1
		}
		waited, explicit := r.recordedVerdict(it)
		if explicit != nil && !errors.Is(own, explicit) {
			own = explicit
		}
		it.d.Finish(nil)
		if own == nil {
			r.acked(it, end, end.Sub(start)-waited)
			continue
		}
		r.setEnding(w, batch[n+1:]) // this may take long
		r.carryOut(nil, it, own, end, end.Sub(start)-waited)
		r.setEnding(w, nil)
	}
}

func (r *engine) setEnding(w *worker, batch []*item) {
	r.mu.Lock()
	w.ending = batch
	r.mu.Unlock()
}

func (r *engine) acked(it *item, end time.Time, took time.Duration) {
	j := judgement{verdict: longshore.VerdictAck, end: end, took: took}
	if e := it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck}); e != nil {
		j.verdict = r.refused(it, longshore.VerbAck, e)
	}
	r.done(nil, it, j)
}

// plainSuccess makes a BatchError that names nobody nil, so that middlewares do
// not take success for a failure.
func plainSuccess(h longshore.BatchHandlerFunc) longshore.BatchHandlerFunc {
	return func(ctx context.Context, ds []*longshore.Delivery) error {
		err := h(ctx, ds)
		var each longshore.BatchError
		if err == nil || !errors.As(err, &each) {
			return err
		}
		for _, e := range each {
			if e != nil {
				return err
			}
		}
		return nil
	}
}
