package container

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/longshore-go/longshore"
)

// settler ends handler calls: it decides what becomes of a delivery and carries that
// out, by settling it with the broker, by parking it here for a retry (redeliver.go), or by
// a move to the dead-letter destination (deadletter.go). It is used without the run's
// lock, because a settlement may take as long as the broker does; what it changes under
// that lock it changes through ender, parker and mover.
type settler struct {
	s        *settings         // limits and policies
	life     *lifetimes        // how long settlements may take, and whether handlers were cut off
	clock    runClock          // of calls
	log      *eventLog         // reports what was decided
	handlers handlers          // the user's chains
	rules    rules             // what a decision depends on besides the delivery
	asked    *requestedVerdict // what handlers asked for by a verb
	loops    loops             // messages that are released again and again
	dead     *deadLetters      // where messages go that are given up
	hold     brokerHold        // whether the broker holds retries
	permits  *gatekeeper       // gets the permit of a call back
	owner    longshore.Owner   // what the verbs of deliveries pass through

	concluder *concluder // ends the item under the lock, keeps it for a retry, and counts failed moves
}

func newSettler(c *ListenerContainer, log *eventLog, gate *gatekeeper, done *concluder, dead *deadLetters, life *lifetimes) *settler {
	return &settler{s: c.set, life: life, clock: done.runClock, log: log, dead: dead, permits: gate, asked: &c.asked,
		handlers:  handlers{c.handler, c.batch, life.base},
		rules:     rules{attempts: c.set.attempts, retry: c.set.retry, classify: log.classifier(c.set.classify)},
		concluder: done}
}

const ignored = "the handler settled the delivery itself and returned an error, which is ignored"

// handle calls the handler and settles by its result. ended reports that the item has
// only to be concluded, which is left to the caller and its lock.
func (t *settler) handle(w *worker, it *item) (j judgement, ended bool) {
	d := it.d
	start := t.clock.now()
	d.Own(t.owner, start)
	it.started = start
	w.busy.Store(start.UnixNano())
	err := t.handlers.call(d)
	end := t.clock.now()
	waited, explicit := t.recorded(it)
	j = judgement{verdict: longshore.VerdictAck, end: end, took: end.Sub(start) - waited}
	if err == nil && explicit == nil {
		j.verdict = t.acked(it)
		d.Finish(nil)
		t.finished(it, j)
		return j, true
	}
	if explicit != nil {
		err = t.withVerb(err, explicit)
	}
	d.Finish(nil)
	t.carryOut(w, it, err, end, j.took)
	return j, false
}

// recorded takes what a handler did besides returning; nothing is added to it any more.
func (t *settler) recorded(it *item) (waited time.Duration, explicit error) {
	if waited, explicit = it.read(); explicit != nil {
		t.asked.forget(it.d)
	}
	return waited, explicit
}

// withVerb is the result of a call whose handler has asked for a verdict by a verb: what
// the middlewares made of it, or the verdict, if it did not reach them.
func (t *settler) withVerb(err, verdict error) error {
	switch {
	case err == nil:
	case errors.Is(err, verdict):
		return err
	default:
		t.log.notice(err, ignored)
	}
	return verdict
}

// carryOut decides on a call that ended with err and carries the decision out.
func (t *settler) carryOut(w *worker, it *item, err error, end time.Time, took time.Duration) {
	j := t.rules.decide(attemptFacts{attempt: it.d.Attempt, releases: it.releases, stopped: t.life.handlersCut(), random: rand.Float64()}, err)
	j.end, j.took = end, took
	if !it.d.Owned() { // settled by the handler, or lost: the ack reports which, and does nothing
		j.verdict = t.acked(it)
		if j.verdict == longshore.VerdictAck && err != nil {
			t.log.notice(err, ignored)
		}
		t.end(w, it, j)
		return
	}
	t.log.failed(it.d, j, t.dead.policyNow())
	switch j.verdict {
	case longshore.VerdictAck:
		t.ack(w, it, j)
	case longshore.VerdictDiscard:
		t.discard(w, it, j)
	case longshore.VerdictRetry:
		t.redeliver(w, it, j, it.d.Attempt+1, t.dead.policyNow() != DeadLetterKeep)
	case longshore.VerdictRelease:
		if !t.life.handlersCut() {
			j.delay = t.noteRelease(it, j)
		}
		t.redeliver(w, it, j, it.d.Attempt, false)
	case longshore.VerdictReject:
		t.deadLetter(w, it, j)
	default:
		t.end(w, it, j)
	}
}

// ack acks an item, whatever its verdict is called, and ends it.
func (t *settler) ack(w *worker, it *item, j judgement) {
	if v := t.acked(it); v != longshore.VerdictAck {
		j.verdict = v
	}
	t.end(w, it, j)
}

// discard acks an item although it failed. The ack is a new attempt's, so a transport that
// keeps what the handler wanted to publish until it succeeds drops it.
func (t *settler) discard(w *worker, it *item, j judgement) {
	_, _ = t.again(it) // an ack of an old delivery is refused, which ack reports
	t.ack(w, it, j)
}

// again makes the item another delivery of the same attempt: what a handler left behind still
// does with the old one is refused.
func (t *settler) again(it *item) (*longshore.Delivery, error) {
	own, err := it.d.Again(it.d.Attempt)
	if err == nil {
		own.Own(t.owner, it.started)
		t.concluder.renew(it, own)
	}
	return own, err
}

// acked acks a delivery and returns what became of it.
func (t *settler) acked(it *item) longshore.Verdict {
	if err := it.d.Apply(t.life.settle, longshore.Settlement{Verb: longshore.VerbAck}); err != nil {
		return t.refused(it, longshore.VerbAck, err)
	}
	return longshore.VerdictAck
}

// refused interprets the error of a settlement: what became of the delivery instead.
func (t *settler) refused(it *item, verb longshore.Verb, err error) longshore.Verdict {
	switch {
	case errors.Is(err, longshore.ErrSettled):
		return longshore.VerdictAck // by the handler itself
	case errors.Is(err, longshore.ErrLost), errors.Is(err, longshore.ErrClosed):
		return longshore.VerdictLost
	}
	t.log.settleFailed(it.d, longshore.Settlement{Verb: verb}, err)
	return longshore.VerdictNone
}

// end ends an item whose verdict has been carried out.
func (t *settler) end(w *worker, it *item, j judgement) {
	t.finished(it, j)
	t.concluder.done(w, it, j)
}

// finished ends what belongs to the call alone: the observers hear of it, a watch that
// was kept on the message ends, and the permit is free.
func (t *settler) finished(it *item, j judgement) {
	t.log.outcome(it, j)
	t.loops.settled(it.d, j.verdict)
	t.permits.release(it)
}

// lost ends items that were lost after their handlers had returned without settling
// them.
func (t *settler) lost(open []*item) {
	for _, it := range open {
		end := t.clock.now()
		t.end(nil, it, judgement{verdict: longshore.VerdictLost, end: end, took: end.Sub(it.started)})
	}
}

// unseen ends what the handler of a batch was not given: it was lost, or comes behind a
// lost one.
func (t *settler) unseen(it *item, end time.Time) {
	if it.d.Owned() {
		t.redeliver(nil, it, judgement{verdict: longshore.VerdictRelease, end: end}, it.d.Attempt, false)
		return
	}
	t.carryOut(nil, it, longshore.ErrLost, end, 0)
}

func (t *settler) backoff(n int) time.Duration { return t.rules.retry.Delay(n, rand.Float64()) }

// noteRelease counts a release that a handler's result asks for, and returns its delay:
// a message that is released again and again is slowed down and reported.
func (t *settler) noteRelease(it *item, j judgement) time.Duration {
	code, text := longshore.CodeHandler, "no reason is given"
	if j.err != nil {
		text = cutText(j.err.Error(), 256)
		if c := longshore.CodeOf(j.err); c != "" {
			code = c
		}
	}
	t.log.released(code)
	id := idOf(it.d)
	if id == "" {
		id = string(code) // messages without an id are counted together
	}
	_, asked := longshore.VerdictOf(j.err)
	is, tell := t.loops.again(id, asked, code, text, j.end)
	delay, times := max(j.delay, is.delay(asked, t.backoff)), is.times
	if tell {
		n := max(t.loops.worst(j.end).Messages, 1)
		t.log.emit(Event{Kind: EventGivenBack, Delivery: factsOf(it.d), Count: n, Delay: delay,
			Text: fmt.Sprintf("%s given back again and again, this one %d times: %s", messagesAre(n), times, text),
			Err: &longshore.Error{Code: code, Source: t.s.name, Err: j.err, Op: fmt.Sprintf("message %.64q was given back %d times in a row, uncounted", idOf(it.d), times),
				Hint: "it ends when its cause does: no attempt is counted; return an error or longshore.Reject if the message is at fault"}})
	}
	return delay
}
