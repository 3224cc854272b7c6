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
// move to the dead-letter place. It returns the record as it was found.
//
// Errors: CodeNotFound if the container does not hold it, CodeState if it is not
// parked or the container drains.
func (c *ListenerContainer) RetryNow(in Intervention) (Held, error) {
	return c.intervene("retry", in, (*engine).retryNow)
}

// DeadLetterNow gives a record up: it goes to the dead-letter place, as after its
// last attempt. It returns the record as it was found, when it has arrived there.
//
// Errors: CodeNotFound if the container does not hold it; CodeState if its handler
// runs (see Interrupt), the container drains, or there is no dead-letter place;
// CodeDeadLetter if the place does not take it now: the record stays, and the move
// is tried again.
func (c *ListenerContainer) DeadLetterNow(in Intervention) (Held, error) {
	return c.intervene("dead-letter", in, (*engine).deadLetterNow)
}

// ReleaseNow gives a record back to the broker, uncounted by us, so that another
// instance can take it. It returns the record as it was found.
//
// Errors: CodeNotFound if the container does not hold it, CodeState if its handler
// runs (see Interrupt) or the container drains, CodeUnsupported where others would
// overtake it (an order), or it would not leave (a partition).
func (c *ListenerContainer) ReleaseNow(in Intervention) (Held, error) {
	return c.intervene("release", in, (*engine).releaseNow)
}

// verb does something with an item. It is called with mu held, and returns without.
type verb func(r *engine, it *item, h holding, in Intervention) error

func (c *ListenerContainer) intervene(name string, in Intervention, do verb) (Held, error) {
	c.mu.Lock()
	r := c.cur
	c.mu.Unlock()
	refuse := func(code longshore.Code, text, hint string) *longshore.Error {
		return &longshore.Error{Code: code, Source: c.set.name, Err: errors.New(text), Hint: hint,
			Op: fmt.Sprintf("%s record %q of container %q", name, cutText(in.Record, 128), c.set.name)}
	}
	if r == nil {
		return Held{}, refuse(longshore.CodeState, "it was not started", "")
	}
	now := r.now()
	r.mu.Lock()
	if r.axes.Stop != state.NoStop {
		r.mu.Unlock()
		return Held{}, refuse(longshore.CodeState, "the container drains or has stopped", "what it holds goes back to the broker")
	}
	it, h := r.search(in.Record)
	if it == nil {
		r.mu.Unlock()
		return Held{}, refuse(longshore.CodeNotFound, "it is not held here", "see longshore ctl inflight; another instance may have it, it may wait at the broker, or it is done")
	}
	found := r.look(it, h, now)
	err := do(r, it, h, in) // gives mu up
	var e *longshore.Error
	if errors.As(err, &e) && e.Op == "" {
		full := refuse(e.Code, "", e.Hint)
		full.Err = e.Err
		return found, full
	}
	return found, err
}

// search finds a record by one of its names. What waits comes before what runs: two of the
// same id can be here, and only one of them can be helped. The caller holds mu.
func (r *engine) search(record string) (*item, holding) {
	var running *item
	var at holding
	for it, h := range r.holdings() {
		if it.record() != record && it.id != record && it.place() != record {
			continue
		}
		if rank(h.state) > 0 {
			return it, h
		}
		if running == nil {
			running, at = it, h
		}
	}
	return running, at
}

func unable(code longshore.Code, hint, format string, args ...any) error {
	return &longshore.Error{Code: code, Err: fmt.Errorf(format, args...), Hint: hint}
}

func (r *engine) retryNow(it *item, h holding, _ Intervention) error {
	defer r.mu.Unlock()
	switch h.state {
	case HeldMoving, HeldParked:
		if r.sched.Unpark(&it.Item) { // else it is being moved already
			r.moveDue()
			r.armBatch()
		}
	case HeldReady:
		return unable(longshore.CodeState, "see longshore ctl why: workers or permits may be what is missing", "it waits for no time, but for a worker")
	case HeldBehind:
		if head := r.sched.HeadOf(&it.Item); head != nil {
			return unable(longshore.CodeState, fmt.Sprintf("retry %q: it goes first", head.Of.record()), "it waits behind an earlier one of its key or partition")
		}
		return unable(longshore.CodeState, "", "it waits behind an earlier one of its key or partition, which is at work")
	default:
		return unable(longshore.CodeState, "", "its handler runs")
	}
	r.wakeOne()
	return nil
}

var errGivenUp = errors.New("given up by an operator")

func (r *engine) deadLetterNow(it *item, h holding, in Intervention) error {
	why := errGivenUp
	if in.Reason != "" {
		why = fmt.Errorf("%w: %s", errGivenUp, cutText(in.Reason, maxErrorText/2))
	}
	place, ordered := r.s.dead.To != "" || r.terms.policy == DeadLetterNative, it.Ordered()
	switch {
	case !place:
		r.mu.Unlock()
		return unable(longshore.CodeState, "set container.Config.DeadLetter.To", "there is no dead-letter place to take it")
	case rank(h.state) == 0:
		return r.interrupt(it, in, longshore.Reject(why), judgement{verdict: longshore.VerdictReject, err: why})
	case !it.d.Owned() || !r.sched.TakeOne(&it.Item): // what is lost, the sweep looks after
		r.mu.Unlock()
		return unable(longshore.CodeState, "", "it is being moved this moment, or was taken back by the broker")
	}
	if it.dead == nil && r.s.dead.To != "" { // a place that was down a moment ago is tried all the same
		it.dead = &deadLetter{err: why, overtaken: ordered && !it.Ordered()}
	}
	before := r.log.counts().deadFailed
	r.mu.Unlock()
	r.moveToDeadLetter(nil, it, judgement{verdict: longshore.VerdictReject, err: why, end: r.now()})
	r.mu.Lock()
	var failed error
	if it.dead != nil && r.log.counts().deadFailed > before {
		failed = it.dead.failed
	}
	r.mu.Unlock()
	if failed != nil {
		return unable(longshore.CodeDeadLetter, "the record stays and the move is tried again; see that the destination exists and takes it", "%w", failed)
	}
	return nil
}

func (r *engine) releaseNow(it *item, h holding, in Intervention) error {
	switch {
	case it.Ordered() || it.dead != nil && it.dead.overtaken:
		r.mu.Unlock()
		return unable(longshore.CodeUnsupported, "retry it now, or dead-letter it", "its key or partition is handled in order, and given back it would be overtaken")
	case it.gen.caps.HeadOfLineBlocking:
		r.mu.Unlock()
		return unable(longshore.CodeUnsupported, "retry it now, or dead-letter it", "its partition stays with this instance, and the record with it")
	case rank(h.state) == 0:
		return r.interrupt(it, in, longshore.Release(errReleased, 0), judgement{verdict: longshore.VerdictRelease, err: errReleased})
	case !it.d.Owned() || !r.sched.TakeOne(&it.Item): // what is lost, the sweep looks after
		r.mu.Unlock()
		return unable(longshore.CodeState, "", "it is being moved this moment, or was taken back by the broker")
	}
	r.mu.Unlock()
	r.release(it, it.d.Attempt)
	return nil
}

var (
	errReleased    = errors.New("released by an operator")
	errInterrupted = errors.New("longshore: interrupted by an operator")
)

// interrupt ends the context of a handler that runs and settles its delivery by as
// when it returns; with manual settling by j, at once. It is called with mu held, and
// returns without.
func (r *engine) interrupt(it *item, in Intervention, as error, j judgement) error {
	if !in.Interrupt {
		r.mu.Unlock()
		return unable(longshore.CodeState, "with --interrupt its context ends, and this counts whatever the handler returns", "its handler runs")
	}
	d := it.d
	if r.manual != nil {
		delete(r.manual, d)
		started := it.started
		r.mu.Unlock()
		d.Finish(errInterrupted)
		j.end = r.now()
		j.took = j.end.Sub(started)
		if started.IsZero() {
			j.took = 0
		}
		if j.verdict == longshore.VerdictReject {
			r.moveToDeadLetter(nil, it, j)
			return nil
		}
		j.delay = max(r.backoff(it.releases+1), time.Millisecond)
		r.redeliver(nil, it, j, d.Attempt)
		return nil
	}
	n := it.write()
	r.mu.Unlock()
	if n == nil {
		return unable(longshore.CodeState, "", "its handler has returned this moment")
	}
	decided := n.explicit != nil
	if !decided {
		n.explicit = as
		r.c.asked.note(d, as)
	}
	n.mu.Unlock()
	if decided {
		return unable(longshore.CodeState, "", "its handler has decided already, or another operator")
	}
	d.Finish(errInterrupted)
	return nil
}
