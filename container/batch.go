package container

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
)

// processBatch calls the batch handler and carries out a verdict for each delivery.
func (c *caller) processBatch(w *worker) {
	start := c.now()
	c.locked(func() { c.startBatchLocked(w, start) })
	w.busy.Store(start.UnixNano())
	var err error
	if len(w.ds) > 0 {
		err = c.settler.handlers.callBatch(w.ds)
	}
	c.endBatch(w, err, c.now())
}

// startBatchLocked chooses what of a batch the handler gets. It is the last moment to notice a
// loss: what comes behind a lost delivery comes again behind it.
func (c *caller) startBatchLocked(w *worker, start time.Time) {
	w.began = start
	w.ds = w.ds[:0]
	for _, it := range w.batch {
		switch {
		case !it.d.Owned():
			c.held.sched.Tear(&it.Item)
		case c.held.sched.Torn(&it.Item):
		default:
			it.d.Own(c, start)
			it.started = start
			w.ds = append(w.ds, it.d)
		}
	}
}

// endBatch ends the call for a batch.
func (c *caller) endBatch(w *worker, err error, end time.Time) {
	batch := w.batch
	c.locked(func() {
		c.done.endCall(w, end, end.Sub(w.began), err != nil)
		w.batch = nil
	})
	c.settler.endBatch(batch, w.began, err, end)
}

// endBatch carries the verdicts of a batch out. An error for the whole batch does not
// tell which delivery is at fault: next time each comes alone, so that a bad one does not
// take its neighbours with it.
func (t *settler) endBatch(batch []*item, start time.Time, err error, end time.Time) {
	var each longshore.BatchError
	whole := err != nil && !errors.As(err, &each)
	i := -1 // in what the handler saw
	for _, it := range batch {
		if it.started != start {
			t.unseen(it, end)
			continue
		}
		i++
		own := each[i]
		if whole {
			own, it.solo = err, len(batch) > 1
		}
		waited, explicit := t.recorded(it)
		if explicit != nil && !errors.Is(own, explicit) {
			own = explicit
		}
		it.d.Finish(nil)
		took := end.Sub(start) - waited
		if own == nil {
			t.ack(nil, it, judgement{verdict: longshore.VerdictAck, end: end, took: took})
			continue
		}
		t.carryOut(nil, it, own, end, took)
	}
}

// plainSuccess turns a BatchError without a failed delivery into nil, so that middlewares
// do not take success for a failure.
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
