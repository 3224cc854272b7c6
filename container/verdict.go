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

// judge decides what becomes of a delivery that failed.
func (r *engine) judge(it *item, err error) judgement {
	rules := rules{attempts: r.s.attempts, retry: r.s.retry, classify: r.log.classifier(r.s.classify)}
	return rules.decide(attemptFacts{attempt: it.d.Attempt, releases: it.releases, stopped: r.stopped(), random: rand.Float64()}, err)
}

// stopped says whether the drain deadline has ended the handlers' contexts.
func (r *engine) stopped() bool { return r.life.handlersCut() }

func (r *engine) backoff(n int) time.Duration { return r.s.retry.Delay(n, rand.Float64()) }

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
	r.log.settleFailed(it.d, longshore.Settlement{Verb: verb}, err)
	return longshore.VerdictNone
}

// carryOut judges a failure and carries the verdict out.
func (r *engine) carryOut(w *worker, it *item, err error, end time.Time, took time.Duration) {
	j := r.judge(it, err)
	j.end, j.took = end, took
	if !it.d.Owned() { // settled by the handler, or lost: this tells which, and does nothing
		j.verdict = r.refused(it, longshore.VerbAck, it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck}))
		if j.verdict == longshore.VerdictAck && err != nil {
			r.notice(err, ignored)
		}
		r.done(w, it, j)
		return
	}
	r.log.failed(it.d, j, r.terms.policy)
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
	r.log.outcome(it, j)
	r.settledNow(it, j)
	if it.permit {
		r.s.gate.Release()
	}
	r.mu.Lock()
	r.endDelivery(w, j)
	if r.reporting() && j.final() {
		r.log.drained(tally{completed: 1})
	}
	if j.verdict == longshore.VerdictLost || j.comesBack() && r.sched.Torn(&it.Item) {
		r.sched.Orphan(&it.Item)
		r.orphaned()
	}
	r.finish(it)
}
