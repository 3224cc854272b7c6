package container

import (
	"errors"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/longshore-go/longshore"
)

const ignored = "the handler settled the delivery itself and returned an error, which is ignored"

// process runs the handler on what the worker took and carries out the verdict.
// It returns with mu held, so that a message costs one lock.
func (r *engine) process(w *worker) {
	it := w.it
	switch {
	case len(w.batch) > 0:
		r.processBatch(w)
	case it.fail != nil:
		r.carryOut(w, it, it.fail, r.now(), 0)
	default:
		r.handle(w, it)
		return
	}
	r.mu.Lock()
}

// handle calls the handler. It returns with mu held.
func (r *engine) handle(w *worker, it *item) {
	d := it.d
	start := r.now()
	d.Own(r, start)
	r.note(it, start)
	w.busy.Store(start.UnixNano())
	err := r.call(d)
	end := r.now()
	if r.manual != nil {
		r.manualReturn(w, d, start, err, end)
		r.mu.Lock()
		return
	}
	waited, explicit := r.recordedVerdict(it)
	took := end.Sub(start) - waited
	if err == nil && explicit == nil {
		r.ack(w, it, end, took)
		return
	}
	if explicit != nil {
		err = r.withVerb(err, explicit)
	}
	d.Finish(nil)
	r.carryOut(w, it, err, end, took)
	r.mu.Lock()
}

// note writes down when the handler was called. With manual settling Stats looks
// at it any time; else only who carries the verdict out does.
func (r *engine) note(it *item, start time.Time) {
	if r.manual == nil {
		it.started = start
		return
	}
	r.mu.Lock()
	it.started = start
	r.mu.Unlock()
}

// call runs the chain; a panic is an error with its stack.
func (r *engine) call(d *longshore.Delivery) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return r.c.handler.Handle(d.Context(), d)
}

func panicError(p any) error {
	return &longshore.Error{Code: longshore.CodePanic, Err: &longshore.Panic{Value: p, Stack: debug.Stack()}}
}

// judgement is a verdict with what is needed to carry it out.
type judgement struct {
	verdict longshore.Verdict
	delay   time.Duration
	err     error
	end     time.Time     // when the handler returned
	took    time.Duration // without Delivery.Wait
}

// final says that the message is done with.
func (j *judgement) final() bool {
	return j.verdict == longshore.VerdictAck || j.verdict == longshore.VerdictReject || j.verdict == longshore.VerdictDiscard
}

// decideVerdict turns a handler's result into a verdict: the only place that does.
func (r *engine) decideVerdict(it *item, err error) judgement {
	v, delay := longshore.VerdictOf(err)
	if v == longshore.VerdictNone && !r.stopped() {
		if mapped := r.classify(err); mapped != nil {
			if v, delay = longshore.VerdictOf(mapped); v != longshore.VerdictNone {
				err = mapped
			}
		}
	}
	j := judgement{verdict: v, delay: delay, err: err}
	switch v {
	case longshore.VerdictNone:
		// Our own stop is neither success nor failure. What a handler makes of its
		// dead context has any shape, so every error counts as that from then on.
		if r.stopped() && !isPanic(err) {
			j.verdict = longshore.VerdictRelease
			return j
		}
		j.verdict = longshore.VerdictRetry
	case longshore.VerdictRelease:
		switch {
		case r.stopped(): // somebody else may take it at once
			j.delay = 0
		case delay <= 0:
			j.delay = r.backoff(it.releases + 1)
		}
		return j
	}
	if j.verdict != longshore.VerdictRetry {
		return j
	}
	if it.d.Attempt >= r.s.attempts {
		j.verdict = longshore.VerdictReject
	} else if j.delay <= 0 {
		j.delay = r.backoff(it.d.Attempt)
	}
	return j
}

// stopped says whether the drain deadline has ended the handlers' contexts.
func (r *engine) stopped() bool { return r.life.handlersCut() }

func (r *engine) backoff(n int) time.Duration { return r.s.retry.Delay(n, rand.Float64()) }

// classify asks the user's function, which may panic like any other.
func (r *engine) classify(err error) (mapped error) {
	if r.s.classify == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			r.notice(panicError(p), "Redelivery.Classify panicked; the error follows the policy")
			mapped = nil
		}
	}()
	return r.s.classify(err)
}

func isPanic(err error) bool { return errors.Is(err, longshore.CodePanic) }

// ack is the way of nearly all messages. It returns with mu held.
func (r *engine) ack(w *worker, it *item, end time.Time, took time.Duration) {
	d := it.d
	j := judgement{verdict: longshore.VerdictAck, end: end, took: took}
	if err := d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck}); err != nil {
		j.verdict = r.refused(it, longshore.VerbAck, err)
	}
	d.Finish(nil)
	r.lockDone(w, it, j)
}

// refused interprets the error of a settlement: what became of the delivery
// instead.
func (r *engine) refused(it *item, verb longshore.Verb, err error) longshore.Verdict {
	switch {
	case errors.Is(err, longshore.ErrSettled):
		return longshore.VerdictAck // by the handler itself
	case errors.Is(err, longshore.ErrLost), errors.Is(err, longshore.ErrClosed):
		return longshore.VerdictLost
	}
	r.settleFailed(it.d, longshore.Settlement{Verb: verb}, err)
	return longshore.VerdictNone
}

// carryOut judges a failure and carries the verdict out.
func (r *engine) carryOut(w *worker, it *item, err error, end time.Time, took time.Duration) {
	j := r.decideVerdict(it, err)
	j.end, j.took = end, took
	if !it.d.Owned() { // settled by the handler, or lost: this tells which, and does nothing
		j.verdict = r.refused(it, longshore.VerbAck, it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck}))
		if j.verdict == longshore.VerdictAck && err != nil {
			r.notice(err, ignored)
		}
		r.done(w, it, j)
		return
	}
	r.tell(it, j)
	switch j.verdict {
	case longshore.VerdictAck, longshore.VerdictDiscard:
		if e := it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck}); e != nil {
			j.verdict = r.refused(it, longshore.VerbAck, e)
		}
		r.done(w, it, j)
	case longshore.VerdictRetry:
		r.redeliver(w, it, j, it.d.Attempt+1)
	case longshore.VerdictRelease:
		if !r.stopped() {
			j.delay = r.released(it, j)
		}
		r.redeliver(w, it, j, it.d.Attempt)
	case longshore.VerdictReject:
		r.moveToDeadLetter(w, it, j)
	default:
		r.done(w, it, j)
	}
}

// done ends an item: the permit, the counts, the observers, the slot, the lane.
func (r *engine) done(w *worker, it *item, j judgement) {
	r.lockDone(w, it, j)
	r.wakeOne()
	r.mu.Unlock()
}

// lockDone is done, returning with mu held.
func (r *engine) lockDone(w *worker, it *item, j judgement) {
	r.outcome(it, j)
	r.settledNow(it, j)
	if it.permit {
		r.s.gate.Release()
	}
	r.mu.Lock()
	r.counts(w, j)
	if r.reporting() && j.final() {
		r.stopping.tally.completed++
	}
	if j.verdict == longshore.VerdictLost || j.comesBack() && r.sched.Torn(&it.Item) {
		r.sched.Orphan(&it.Item)
		r.orphaned()
	}
	r.finish(it)
}
