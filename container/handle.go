package container

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/longshore-go/longshore"
)

// handlers are the user's chains: one of the two is set.
type handlers struct {
	one   longshore.Handler      // for single deliveries
	batch longshore.BatchHandler // for batches
	base  context.Context        //nolint:containedctx // of calls for batches; it ends when handlers are cut off
}

// call runs the chain for one delivery. A panic becomes an error with its stack.
func (h handlers) call(d *longshore.Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return h.one.Handle(d.Context(), d)
}

// callBatch runs the chain for a batch.
func (h handlers) callBatch(ds []*longshore.Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return h.batch.HandleBatch(h.base, ds)
}

func panicError(p any) error {
	return &longshore.Error{Code: longshore.CodePanic, Err: &longshore.Panic{Value: p, Stack: debug.Stack()}}
}

// caller runs handlers for workers, and is the owner of the deliveries that they have.
type caller struct {
	common
	done    *concluder // ends calls under the lock
	hand    *handout   // fills the place of a worker whose goroutine has ended
	pool    *pool      // who works on which delivery
	held    *stock     // what handlers have, and what grows in their hands
	calls   *workload  // the time that calls spend waiting is no work
	settler *settler   // decides what becomes of a delivery, and carries that out
}

// process runs the handler on what the worker took and carries
// the verdict out.
func (c *caller) process(w *worker) {
	it, ended := w.it, false
	var j judgement
	c.unlocked(func() {
		switch {
		case len(w.batch) > 0:
			c.processBatch(w)
		case it.fail != nil:
			c.settler.carryOut(w, it, it.fail, c.now(), 0)
		case c.s.manual:
			c.handleManual(w, it)
		default:
			j, ended = c.settler.handle(w, it)
		}
	})
	if ended {
		c.done.conclude(w, it, j)
	}
}

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit, or FailNow of a test)")

// goexit looks after a worker whose goroutine has ended in the middle of a handler.
// The delivery has failed as by a panic, and another worker takes the place.
func (c *caller) goexit(w *worker) {
	if p := recover(); p != nil {
		panic(p) //nolint:forbidigo // not a handler's (those are caught where they are called): a defect of ours goes on
	}
	err := &longshore.Error{Code: longshore.CodePanic, Err: errGoexit}
	now := c.now()
	switch {
	case len(w.batch) > 0:
		c.endBatch(w, err, now)
	case c.held.manual != nil:
		c.manualReturn(w, w.d, now, err, now)
	default:
		_, _ = c.settler.recorded(w.it)
		w.it.d.Finish(nil)
		c.settler.carryOut(w, w.it, err, now, 0)
	}
	c.locked(func() {
		c.hand.leave(w)
		c.hand.setTarget(c.pool.target)
	})
}
