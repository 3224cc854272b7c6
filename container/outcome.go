package container

import (
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
)

// outcome tells the middlewares that want to hear of verdicts.
func (r *engine) outcome(it *item, j judgement) {
	if len(r.c.observers) == 0 || j.verdict == longshore.VerdictNone {
		return // with none the message is still on its way to its dead-letter place
	}
	o := longshore.Outcome{Verdict: j.verdict, Err: j.err, Started: it.started, Took: j.took}
	for _, ob := range r.c.observers {
		r.observe(ob, it.d, o)
	}
}

func (r *engine) observe(ob longshore.OutcomeObserver, d *longshore.Delivery, o longshore.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			r.notice(panicError(p), "a middleware panicked in Outcome")
		}
	}()
	ob.Outcome(d, o)
}

// tell makes the event of a failure.
func (r *engine) tell(it *item, j judgement) {
	f := factsOf(it.d)
	f.Of = r.s.attempts
	e := Event{Delivery: f, Err: r.about(it.d, j), Delay: j.delay}
	switch j.verdict {
	case longshore.VerdictRetry:
		e.Kind = EventFailed
	case longshore.VerdictReject:
		if r.s.dead.To != "" || r.terms.policy == DeadLetterNative {
			return // its own event says where it went
		}
		e.Kind = EventFailed
		if r.terms.policy == DeadLetterDiscard {
			e.Kind = EventDiscarded
		} else {
			e.Delay = r.s.retry.Max
		}
	case longshore.VerdictDiscard:
		e.Kind = EventDiscarded
	default:
		return
	}
	if p := panicOf(j.err); p != nil {
		e.Stack = string(p.Stack)
	}
	e.Text = e.Err.Error()
	r.emit(e)
}

// about is the failure with the message it is about.
func (r *engine) about(d *longshore.Delivery, j judgement) error {
	e := &longshore.Error{Code: longshore.CodeOf(j.err), Source: r.s.name, Err: j.err,
		Op: fmt.Sprintf("handle %q message %.64s (%s)", r.s.about.Name, idOf(d), attemptText(d.Attempt, r.s.attempts))}
	if e.Code == "" {
		e.Code = longshore.CodeHandler
	}
	switch j.verdict {
	case longshore.VerdictRetry:
		e.Hint = fmt.Sprintf("retried in %v", round(j.delay))
	case longshore.VerdictDiscard:
		e.Hint = "discarded"
	}
	return e
}

func panicOf(err error) *longshore.Panic {
	var p *longshore.Panic
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// buried counts and tells of a message that was given up.
func (r *engine) buried(it *item, reason error, to string) {
	code := longshore.CodeOf(reason)
	if code == "" {
		code = longshore.CodeHandler
	}
	r.mu.Lock()
	countCode(&r.count.dead, code)
	r.mu.Unlock()
	f := factsOf(it.d)
	f.Of = r.s.attempts
	e := Event{Kind: EventDeadLettered, Delivery: f, Err: reason, Reason: to}
	if p := panicOf(reason); p != nil {
		e.Stack = string(p.Stack)
	}
	e.Text = fmt.Sprintf("message %.64s dead-lettered to %s after attempt %d", f.MessageID, to, f.Attempt)
	r.emit(e)
}

// mostCodes are counted by their names; a handler makes codes of its own, and each is a
// series of a metric.
const mostCodes = 100

// countCode counts what comes under too many codes under that of any error.
func countCode(counts *map[longshore.Code]int64, code longshore.Code) {
	if *counts == nil {
		*counts = map[longshore.Code]int64{}
	}
	if _, known := (*counts)[code]; !known && len(*counts) >= mostCodes {
		code = longshore.CodeHandler
	}
	(*counts)[code]++
}

// settleFailed counts a settlement that was not carried out.
func (r *engine) settleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	lost := errors.Is(err, longshore.ErrLost)
	r.mu.Lock()
	code := longshore.CodeOf(err)
	if lost && code == longshore.CodeHandler {
		code = longshore.CodeConnLost
	}
	countCode(&r.count.settle, code)
	if r.axes.Stopping() {
		r.stopping.tally.unflushed++
		if len(r.stopping.tally.unflushedIDs) < 10 {
			r.stopping.tally.unflushedIDs = append(r.stopping.tally.unflushedIDs, idOf(d))
		}
	}
	r.mu.Unlock()
	r.emit(Event{Kind: EventSettleFailed, Err: err, Reason: s.Verb.String(), Delivery: factsOf(d),
		Text: fmt.Sprintf("%s of message %.64s was not carried out", s.Verb, idOf(d))})
}
