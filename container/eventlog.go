package container

import (
	"errors"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// eventLog is the one place that reports what happens in a run: as events, from which
// the log lines are made, to the middlewares that observe outcomes, and in the counts of
// what is rare. It has a lock of its own, which it never holds while it calls out, so
// it may be used with the engine's lock held or without.
type eventLog struct {
	reporter                                // emits the events
	s         *settings                     // the names and limits that events mention
	observers []longshore.OutcomeObserver   // middlewares that want every verdict
	operators []longshore.OperationObserver // middlewares that want every broker operation

	mu       sync.Mutex // guards what follows
	count    rareCounts // for Stats
	draining bool       // a stop has begun: tally counts
	tally    tally      // for the report of the stop
}

// rareCounts are the sums over a run that no successful message touches.
type rareCounts struct {
	dead       map[longshore.Code]int64       // dead letters, by why they were given up
	deadFailed int64                          // moves to the dead-letter destination that failed
	released   map[longshore.Code]int64       // releases that handlers and middlewares asked for
	settle     map[longshore.Code]int64       // settlements that were not carried out
	reopens    map[longshore.Code]int64       // lost subscriptions
	skipped    map[transport.SkipReason]int64 // messages that the transport skipped
}

// tally is what the report of a drain counts.
type tally struct {
	completed, released, lost, unflushed, repeats int      // numbers of deliveries, named as in Report
	unflushedIDs                                  []string // the first few, to search logs for
}

// mostNamed is how many messages a drain report names of each kind.
const mostNamed = 10

func newEventLog(c *ListenerContainer) *eventLog {
	return &eventLog{reporter: reporter{c.hub, c.set.clock}, s: c.set, observers: c.hooks.observers, operators: c.hooks.operators}
}

// outcome reports a verdict to the middlewares that observe outcomes.
func (l *eventLog) outcome(it *item, j judgement) {
	if len(l.observers) == 0 || j.verdict == longshore.VerdictNone {
		return // without a verdict the message is still on its way to its dead-letter destination
	}
	o := longshore.Outcome{Verdict: j.verdict, Err: j.err, Started: it.started, Took: j.took}
	for _, ob := range l.observers {
		l.observe(ob, it.d, o)
	}
}

func (l *eventLog) observe(ob longshore.OutcomeObserver, d *longshore.Delivery, o longshore.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			l.notice(panicError(p), "a middleware panicked in Outcome")
		}
	}()
	ob.Outcome(d, o)
}

// operation reports a broker operation to the middlewares that observe operations.
func (l *eventLog) operation(op longshore.Operation) {
	defer func() {
		if p := recover(); p != nil {
			l.notice(panicError(p), "a middleware panicked in Operation")
		}
	}()
	op.Transport, op.Source = l.s.about.Transport, l.s.about.Name
	for _, ob := range l.operators {
		ob.Operation(op)
	}
}

// classifier guards the user's function for errors, which may panic like any other; nil
// stays nil.
func (l *eventLog) classifier(classify func(error) error) func(error) error {
	if classify == nil {
		return nil
	}
	return func(err error) (mapped error) {
		defer func() {
			if p := recover(); p != nil {
				l.notice(panicError(p), "Redelivery.Classify panicked; the error follows the policy")
				mapped = nil
			}
		}()
		return classify(err)
	}
}

// failed reports a delivery that failed. policy is what happens to a rejected message.
func (l *eventLog) failed(d *longshore.Delivery, j judgement, policy Policy) {
	e := Event{Delivery: l.facts(d), Delay: j.delay}
	switch j.verdict {
	case longshore.VerdictRetry:
		e.Kind = EventFailed
	case longshore.VerdictReject:
		if l.s.dead.To != "" || policy == DeadLetterNative {
			return // the event of the move reports it
		}
		e.Kind = EventFailed
		if policy == DeadLetterDiscard {
			e.Kind = EventDiscarded
		} else {
			e.Delay = l.s.retry.Max
		}
	case longshore.VerdictDiscard:
		e.Kind = EventDiscarded
	default:
		return
	}
	if p := panicOf(j.err); p != nil {
		e.Stack = string(p.Stack)
	}
	e.Err = l.failure(d, j)
	e.Text = e.Err.Error()
	switch j.verdict {
	case longshore.VerdictRetry:
		e.Text += fmt.Sprintf("; retried in %v", round(j.delay))
	case longshore.VerdictDiscard:
		e.Text += "; discarded"
	}
	l.emit(e)
}

// failure is the error of a failed call, with the message that it concerns.
func (l *eventLog) failure(d *longshore.Delivery, j judgement) error {
	e := &longshore.Error{Code: longshore.CodeOf(j.err), Source: l.s.name, Err: j.err,
		Op: fmt.Sprintf("handle %q message %.64s (%s)", l.s.about.Name, idOf(d), attemptText(d.Attempt, l.s.lastAttempt()))}
	if e.Code == "" {
		e.Code = longshore.CodeHandler
	}
	return e
}

// facts identifies a delivery, with the limit of its attempts.
func (l *eventLog) facts(d *longshore.Delivery) *DeliveryFacts {
	f := factsOf(d)
	f.Of = l.s.lastAttempt()
	return f
}

// deadLettered counts and reports a message that was moved to a dead-letter destination.
func (l *eventLog) deadLettered(d *longshore.Delivery, reason error, to string) {
	code := longshore.CodeOf(reason)
	if code == "" {
		code = longshore.CodeHandler
	}
	l.mu.Lock()
	countCode(&l.count.dead, code)
	l.mu.Unlock()
	f := l.facts(d)
	e := Event{Kind: EventDeadLettered, Delivery: f, Err: reason, Reason: to}
	if p := panicOf(reason); p != nil {
		e.Stack = string(p.Stack)
	}
	e.Text = fmt.Sprintf("message %.64s dead-lettered to %s after attempt %d", f.MessageID, to, f.Attempt)
	l.emit(e)
}

// deadLetterFailed counts and reports a move to the dead-letter destination that failed. It
// emits nothing if e is nil.
func (l *eventLog) deadLetterFailed(e *Event) {
	l.mu.Lock()
	l.count.deadFailed++
	l.mu.Unlock()
	if e != nil {
		l.emit(*e)
	}
}

// settleFailed counts and reports a settlement that was not carried out.
func (l *eventLog) settleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	code := longshore.CodeOf(err)
	if errors.Is(err, longshore.ErrLost) && code == longshore.CodeHandler {
		code = longshore.CodeConnLost
	}
	id := idOf(d)
	l.mu.Lock()
	countCode(&l.count.settle, code)
	if t := &l.tally; l.draining {
		t.unflushed++
		if len(t.unflushedIDs) < mostNamed {
			t.unflushedIDs = append(t.unflushedIDs, id)
		}
	}
	l.mu.Unlock()
	l.emit(Event{Kind: EventSettleFailed, Err: err, Reason: s.Verb.String(), Delivery: factsOf(d),
		Text: fmt.Sprintf("%s of message %.64s was not carried out", s.Verb, id)})
}

// released counts a release that a handler or a middleware asked for.
func (l *eventLog) released(code longshore.Code) {
	l.mu.Lock()
	defer l.mu.Unlock()
	countCode(&l.count.released, code)
}

// reopened counts a lost subscription.
func (l *eventLog) reopened(code longshore.Code) {
	l.mu.Lock()
	defer l.mu.Unlock()
	countCode(&l.count.reopens, code)
}

// skipped counts messages that the transport skipped.
func (l *eventLog) skipped(why transport.SkipReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count.skipped == nil {
		l.count.skipped = map[transport.SkipReason]int64{}
	}
	l.count.skipped[why]++
}

// counts returns a copy of the rare counts.
func (l *eventLog) counts() rareCounts {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.count
	c.dead, c.released, c.settle = clone(c.dead), clone(c.released), clone(c.settle)
	c.reopens, c.skipped = clone(c.reopens), clone(c.skipped)
	return c
}

// drainBegins starts counting for the report of a drain.
func (l *eventLog) drainBegins() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
}

// drained adds to the report of a drain; before a stop it does nothing.
func (l *eventLog) drained(more tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.draining {
		return
	}
	l.tally.completed += more.completed
	l.tally.released += more.released
	l.tally.lost += more.lost
	l.tally.repeats += more.repeats
}

// drainTally returns what a drain has counted so far.
func (l *eventLog) drainTally() tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tally
}

func panicOf(err error) *longshore.Panic {
	var p *longshore.Panic
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// mostCodes is how many codes are counted by name. A handler can make codes of its own,
// and each becomes a series of a metric.
const mostCodes = 100

// countCode counts an error by its code; beyond mostCodes as any handler's error.
func countCode(counts *map[longshore.Code]int64, code longshore.Code) {
	if *counts == nil {
		*counts = map[longshore.Code]int64{}
	}
	if _, known := (*counts)[code]; !known && len(*counts) >= mostCodes {
		code = longshore.CodeHandler
	}
	(*counts)[code]++
}
