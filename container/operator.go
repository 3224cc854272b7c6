package container

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// Intervention is what an operator wants to be done with one record.
type Intervention struct {
	// Record is the name that InFlight shows, the producer's message id, or
	// topic/partition/position.
	Record string
	// Reason is for the dead letter's headers and the events.
	Reason string
	// Interrupt also takes a record whose handler runs: its context ends, and what was
	// asked for counts whatever the handler returns, as if it had asked for it itself. A
	// handler that does not return keeps its worker and its lane. With manual settling
	// the delivery is settled at once.
	Interrupt bool
}

// RetryNow lets a record that is parked have its next attempt at once, or its next
// move to the dead-letter destination. It returns the record as it was found.
//
// Errors: CodeNotFound if the container does not hold it, CodeState if it is not
// parked or the container drains.
func (c *ListenerContainer) RetryNow(in Intervention) (Held, error) {
	return c.intervene(retryVerb, in)
}

// DeadLetterNow gives a record up: it goes to the dead-letter destination, as after its
// last attempt. It returns the record as it was found, when it has arrived there.
//
// Errors: CodeNotFound if the container does not hold it; CodeState if its handler
// runs (see Interrupt), the container drains, or there is no dead-letter destination;
// CodeDeadLetter if the place does not take it now: the record stays, and the move
// is tried again.
func (c *ListenerContainer) DeadLetterNow(in Intervention) (Held, error) {
	return c.intervene(deadLetterVerb, in)
}

// ReleaseNow gives a record back to the broker, uncounted by us, so that another
// instance can take it. It returns the record as it was found.
//
// Errors: CodeNotFound if the container does not hold it, CodeState if its handler
// runs (see Interrupt) or the container drains, CodeUnsupported where others would
// overtake it (an order), or it would not leave (a partition).
func (c *ListenerContainer) ReleaseNow(in Intervention) (Held, error) {
	return c.intervene(releaseVerb, in)
}

// operatorVerb is what an operator wants to be done.
type operatorVerb uint8

const (
	retryVerb operatorVerb = iota
	deadLetterVerb
	releaseVerb
)

func (v operatorVerb) String() string { return [...]string{"retry", "dead-letter", "release"}[v] }

// recordFacts are what an operator's verb depends on.
type recordFacts struct {
	state     HeldState // what the record does
	head      string    // the record that has to go first; "": it is at work
	ordered   bool      // given back, it would be overtaken
	stays     bool      // its partition stays with this instance, and the record with it
	place     bool      // there is a dead-letter destination
	interrupt bool      // the operator takes a record whose handler runs too
	owned     bool      // the broker has not taken it back
}

// refusal is why the verb cannot be carried out; nil: it can.
func (v operatorVerb) refusal(f recordFacts) error {
	switch v {
	case retryVerb:
		return f.refuseRetry()
	case deadLetterVerb:
		if !f.place {
			return unable(longshore.CodeState, "set container.Config.DeadLetter.To", "no dead-letter destination is set")
		}
	case releaseVerb:
		if f.ordered {
			return unable(longshore.CodeUnsupported, "retry it now, or dead-letter it", "its key or partition is handled in order, and later records would overtake it")
		}
		if f.stays {
			return unable(longshore.CodeUnsupported, "retry it now, or dead-letter it", "its partition stays with this instance, and the record with it")
		}
	}
	switch runs := rank(f.state) == 0; {
	case runs && !f.interrupt:
		return unable(longshore.CodeState, "with --interrupt its context ends, and this counts whatever the handler returns", "its handler runs")
	case !runs && !f.owned:
		return errOnItsWay()
	}
	return nil
}

// refuseRetry is the refusal of a retry: only what waits for its time can go on before.
func (f recordFacts) refuseRetry() error {
	switch f.state {
	case HeldMoving, HeldParked:
		return nil
	case HeldReady:
		return unable(longshore.CodeState, "see longshore ctl why: workers or permits may be short", "it is ready and waits for a worker")
	case HeldBehind:
		if f.head != "" {
			return unable(longshore.CodeState, fmt.Sprintf("retry %q: it goes first", f.head), "it waits behind an earlier one of its key or partition")
		}
		return unable(longshore.CodeState, "", "it waits behind an earlier one of its key or partition that is being handled")
	case HeldRunning, HeldStuck:
	}
	return unable(longshore.CodeState, "", "its handler runs")
}

func errOnItsWay() error {
	return unable(longshore.CodeState, "", "it is being moved right now, or the broker took it back")
}

func unable(code longshore.Code, hint, format string, args ...any) error {
	return &longshore.Error{Code: code, Err: fmt.Errorf(format, args...), Hint: hint}
}

var (
	errGivenUp     = errors.New("given up by an operator")
	errReleased    = errors.New("released by an operator")
	errInterrupted = errors.New("longshore: interrupted by an operator")
)

// judgement is what the verb decides on a record, and the same as a handler's result.
func (v operatorVerb) judgement(reason string) (judgement, error) {
	if v == releaseVerb {
		return judgement{verdict: longshore.VerdictRelease, err: errReleased}, longshore.Release(errReleased, 0)
	}
	why := errGivenUp
	if reason != "" {
		why = fmt.Errorf("%w: %s", errGivenUp, cutText(reason, maxErrorText/2))
	}
	return judgement{verdict: longshore.VerdictReject, err: why}, longshore.Reject(why)
}

func (c *ListenerContainer) intervene(v operatorVerb, in Intervention) (Held, error) {
	r := c.current()
	refuse := func(code longshore.Code, err error, hint string) *longshore.Error {
		return &longshore.Error{Code: code, Source: c.set.name, Err: err, Hint: hint,
			Op: fmt.Sprintf("%v record %q of container %q", v, cutText(in.Record, 128), c.set.name)}
	}
	if r == nil {
		return Held{}, refuse(longshore.CodeState, errors.New("it was not started"), "")
	}
	found, err := (&operator{r.common, r.log, &r.axes, &r.hand, &r.hand.pool, &r.held, r.settler}).intervene(v, in)
	var e *longshore.Error
	if errors.As(err, &e) && e.Op == "" {
		return found, refuse(e.Code, e.Err, e.Hint)
	}
	return found, err
}

// operator carries the verbs of operators out on single records.
type operator struct {
	common
	log     *eventLog // whether a move has failed
	axes    *axes     // while a run stops, nothing is changed by hand
	hand    waker     // what may start when a record goes out of its turn
	pool    *pool     // who works on a record
	held    *stock    // whose records they are
	settler *settler  // gives a record back or up
}

// waker finds a worker for what may start now.
type waker interface{ wakeOne() }

// intervene carries an operator's verb out, and returns the record as it was found.
func (o *operator) intervene(v operatorVerb, in Intervention) (found Held, err error) {
	now := o.now()
	var rest func() error
	o.locked(func() { found, rest, err = o.begin(v, in, now) })
	if rest != nil {
		err = rest()
	}
	return found, err
}

// begin finds the record and does what the verb does to what is held. It returns the rest,
// which calls the broker and therefore waits until mu is given up; nil: there is none.
func (o *operator) begin(v operatorVerb, in Intervention, now time.Time) (found Held, rest func() error, err error) {
	it, h, err := o.search(in.Record)
	if err != nil {
		return Held{}, nil, err
	}
	found = o.held.inventory(o.pool).describe(it, h, now)
	f := recordFacts{state: h.state, stays: it.gen.caps.HeadOfLineBlocking, interrupt: in.Interrupt, owned: it.d.Owned(),
		ordered: it.Ordered() || it.dead != nil && it.dead.overtaken,
		place:   o.s.dead.To != "" || o.settler.dead.policyNow() == DeadLetterNative}
	if head := o.held.sched.HeadOf(&it.Item); head != nil {
		f.head = head.Of.record()
	}
	err = v.refusal(f)
	switch {
	case err != nil:
	case v == retryVerb:
		if o.held.sched.Unpark(&it.Item) { // else it is being moved already
			o.held.moves.begin(o.held.sched.Waiting(), &o.pool.wg)
			o.held.readyChanged()
		}
		o.hand.wakeOne()
	case rank(h.state) == 0:
		rest, err = o.interrupt(it, v, in)
	default:
		rest, err = o.takeOut(it, v, in)
	}
	return found, rest, err
}

// search finds a record by one of its names. One that waits comes before one that runs:
// two of the same id can be here, and an operator can help only the one that waits.
func (o *operator) search(record string) (*item, holding, error) {
	if o.axes.Stop != state.NoStop {
		return nil, holding{}, unable(longshore.CodeState, "what it holds goes back to the broker", "the container drains or has stopped")
	}
	var running *item
	var at holding
	for it, h := range o.held.inventory(o.pool).all() {
		if it.record() != record && it.id != record && it.place() != record {
			continue
		}
		if rank(h.state) > 0 {
			return it, h, nil
		}
		if running == nil {
			running, at = it, h
		}
	}
	if running == nil {
		return nil, holding{}, unable(longshore.CodeNotFound, "see longshore ctl inflight; another instance may have it, it may wait at the broker, or it is done", "it is not held here")
	}
	return running, at, nil
}

// takeOut takes a record that no handler has out of its turn. The rest gives it back or up.
func (o *operator) takeOut(it *item, v operatorVerb, in Intervention) (rest func() error, err error) {
	ordered := it.Ordered()
	if !o.held.sched.TakeOne(&it.Item) {
		return nil, errOnItsWay()
	}
	if v == releaseVerb {
		return func() error {
			o.settler.release(it, it.d.Attempt)
			return nil
		}, nil
	}
	j, _ := v.judgement(in.Reason)
	j.end = o.now()
	if it.dead == nil && o.s.dead.To != "" { // a place that was down a moment ago is tried too
		it.dead = &deadLetter{err: j.err, overtaken: ordered && !it.Ordered()}
	}
	before := o.log.counts().deadFailed
	return func() error {
		o.settler.deadLetter(nil, it, j)
		var failed error
		o.locked(func() {
			if it.dead != nil && o.log.counts().deadFailed != before {
				failed = it.dead.failed
			}
		})
		if failed == nil {
			return nil
		}
		return unable(longshore.CodeDeadLetter, "the record stays and the move is tried again; see that the destination exists and takes it", "%w", failed)
	}, nil
}

// interrupt takes a record whose handler runs. The rest ends the handler's context; the
// delivery is settled by the verb when the handler returns, with manual settling at once.
func (o *operator) interrupt(it *item, v operatorVerb, in Intervention) (rest func() error, err error) {
	j, as := v.judgement(in.Reason)
	d := it.d
	if o.held.manual != nil {
		delete(o.held.manual, d)
		return func() error {
			d.Finish(errInterrupted)
			o.settler.interrupted(it, j)
			return nil
		}, nil
	}
	n := it.write()
	if n == nil {
		return nil, unable(longshore.CodeState, "", "its handler has just returned")
	}
	return func() error {
		decided := n.explicit != nil
		if !decided {
			n.explicit = as
			o.settler.asked.note(d, as)
		}
		n.mu.Unlock()
		if decided {
			return unable(longshore.CodeState, "", "its handler has decided already, or another operator")
		}
		d.Finish(errInterrupted)
		return nil
	}, nil
}

// interrupted carries an operator's verdict out on a delivery that its handler would have
// settled by hand.
func (t *settler) interrupted(it *item, j judgement) {
	j.end = t.clock.now()
	if !it.started.IsZero() {
		j.took = j.end.Sub(it.started)
	}
	if j.verdict == longshore.VerdictReject {
		t.deadLetter(nil, it, j)
		return
	}
	j.delay = max(t.backoff(it.releases+1), time.Millisecond)
	t.redeliver(nil, it, j, it.d.Attempt, false)
}
