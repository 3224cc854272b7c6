package container

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
)

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
	r.endCall(w, end, end.Sub(start), err != nil)
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
