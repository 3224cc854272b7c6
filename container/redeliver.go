package container

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// brokerDelay is the shortest delay worth a journey to the broker and back.
const brokerDelay = time.Second

// releaseHere is the longest delay of a release that waits here where the broker
// counts returns, far below any broker's patience.
const releaseHere = time.Minute

// outageShare is the share of failures above which it is not the messages' fault.
const outageShare = 0.75

// standing is how an item stands that is to be delivered again.
type standing struct {
	leaves   bool // a stop, or a partition that leaves, takes it back to the broker
	torn     bool // an earlier one of its lane is lost and comes again: it must not be tried before
	full     bool // the space for retries is used up
	outage   bool // nearly all calls fail
	draining bool // a stop has begun
	closes   bool // it goes back with the closing of its consumer, and is not settled before
}

// route is where a delivery waits for its next attempt.
type route uint8

const (
	routePark       route = iota // here, without a worker and without a place in the window
	routeBroker                  // at the broker
	routeDeadLetter              // nowhere: it is given up early
)

// redelivery is what the route of a delivery depends on.
type redelivery struct {
	standing                        // how things stand with the delivery
	caps     longshore.Capabilities // of its consumer
	verdict  longshore.Verdict      // retry or release
	delay    time.Duration          // that was decided
	ordered  bool                   // others of its lane must not overtake it
	cannot   bool                   // the broker could not hold the last retry
	giveUp   bool                   // there is a place for messages that are given up
}

// plan chooses the route; held says that the broker is to hold the message for the
// delay, which is limited to what it, or the lease, allows.
func (c *redelivery) plan() (to route, held bool, delay time.Duration) {
	held = !c.ordered && c.caps.Delay && (c.full || c.leaves || !c.cannot)
	if c.caps.CountsReturns && c.verdict == longshore.VerdictRelease && c.delay <= releaseHere && !c.leaves {
		held = false // a return may cost what a release must not, however many wait here
	}
	delay = atMost(c.delay, holdLimit(c.caps, held))
	counts := c.caps.Attempts || c.verdict == longshore.VerdictRelease
	switch {
	case c.leaves, c.torn, held && counts && delay >= brokerDelay, held && c.full:
		return routeBroker, held, delay
	case c.full && !c.outage && c.verdict == longshore.VerdictRetry && c.giveUp:
		// No room to wait, and other messages succeed: early in the dead-letter destination this one
		// does not hold them up. Where nearly all fail, that would move the whole queue there,
		// so the intake waits instead.
		return routeDeadLetter, held, delay
	}
	return routePark, held, delay
}

// holdLimit is how long the broker, or the lease, lets a delivery wait; 0: for ever.
func holdLimit(caps longshore.Capabilities, held bool) time.Duration {
	if held {
		return caps.MaxDelay
	}
	return keepLimit(caps)
}

// atMost limits a duration; limit 0 does not.
func atMost(d, limit time.Duration) time.Duration {
	if limit <= 0 {
		return d
	}
	return min(d, limit)
}

// redeliver lets a delivery be delivered again after the judgement's delay: by the
// broker where it can hold the message and nothing must be overtaken, else parked here.
// giveUp says that it may be dead-lettered early where there is no room to wait.
func (t *settler) redeliver(w *worker, it *item, j judgement, attempt int, giveUp bool) {
	c := redelivery{standing: t.concluder.standing(it), caps: it.gen.caps, verdict: j.verdict, delay: j.delay,
		ordered: it.Ordered(), cannot: t.hold.broken(j.end), giveUp: giveUp}
	to, held, delay := c.plan()
	j.delay = t.shorten(it, j.delay, delay)
	switch to {
	case routeBroker:
		if t.giveBack(w, it, j, attempt, held, c.standing) {
			return
		}
		j.delay = t.shorten(it, j.delay, atMost(j.delay, holdLimit(c.caps, false)))
	case routeDeadLetter:
		j.verdict = longshore.VerdictReject
		t.log.failed(it.d, j, t.dead.policyNow()) // the event of a retry is out already, and this may be a discard
		t.deadLetter(w, it, j)
		return
	case routePark:
	}
	t.park(w, it, j, attempt)
}

// shorten reports that a delay is cut to a shorter one, and returns that.
func (t *settler) shorten(it *item, d, to time.Duration) time.Duration {
	if to < d && it.dead == nil {
		t.log.emit(Event{Kind: EventDelayCut, Delay: to, Delivery: factsOf(it.d),
			Text: fmt.Sprintf("delay %v cut to %v, the longest that %q can be held", d, to, t.s.name)})
	}
	return to
}

// giveBack returns the delivery to the broker. It reports false if that could not be
// done and the delivery is still ours: forgotten now, it would stay unsettled until the
// consumer's end.
func (t *settler) giveBack(w *worker, it *item, j judgement, attempt int, held bool, st standing) bool {
	if !held {
		j.delay = 0
	}
	err := t.nack(it, st, j.delay, attempt)
	if err != nil {
		st = t.concluder.standing(it)                   // a stop may have begun meanwhile
		if st.draining && j.delay > 0 && it.d.Owned() { // too early is better than not at all
			j.delay = 0
			err = t.nack(it, st, 0, attempt)
		}
	}
	switch {
	case err == nil:
		j.returned = true
		if it.gen.caps.Partitions { // a log holds nothing back: the next owner of the partition reads it at once
			j.delay = 0
		}
	case !st.draining && it.d.Owned():
		t.cannotHold(err)
		return false
	default:
		j.verdict = t.refused(it, longshore.VerbNack, err)
	}
	t.end(w, it, j)
	return true
}

// nack gives a delivery back, unless the closing of its consumer does.
func (t *settler) nack(it *item, st standing, delay time.Duration, attempt int) error {
	if delay == 0 && st.closes && it.d.Owned() {
		return nil
	}
	return it.d.Apply(t.life.settle, longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt})
}

// cannotHold notes that the broker could not take a retry: it, and the next ones, wait
// here.
func (t *settler) cannotHold(err error) {
	if errors.Is(err, longshore.CodeUnsupported) {
		return
	}
	t.hold.failed(t.clock.now())
	t.log.notice(err, "the broker cannot hold a retry now; it waits here")
}

// park puts the delivery aside until its time has come. With an order its lane waits
// with it.
func (t *settler) park(w *worker, it *item, j judgement, attempt int) {
	next, err := it.d.Again(attempt)
	if err != nil {
		j.verdict = t.refused(it, longshore.VerbNack, err)
		t.end(w, it, j)
		return
	}
	t.finished(it, j)
	if !t.concluder.park(w, it, next, j) {
		t.release(it, attempt)
	}
}

// release gives back, uncounted, an item that no handler has.
func (t *settler) release(it *item, attempt int) {
	j := judgement{verdict: longshore.VerdictRelease, unstarted: true, returned: true}
	if err := t.nack(it, t.concluder.standing(it), 0, attempt); err != nil {
		j.verdict, j.returned = t.refused(it, longshore.VerbNack, err), false
	}
	t.concluder.done(nil, it, j)
}

// releaseAll gives items back in their order.
func (t *settler) releaseAll(out []*dispatch.Item[item]) {
	for _, i := range out {
		t.release(i.Of, i.Of.d.Attempt)
	}
}

// brokerHold remembers that the broker could not hold a retry. It has a lock of its own.
type brokerHold struct {
	mu   sync.Mutex // guards what follows
	from time.Time  // from then on the broker is asked again
}

// holdAgain is how long the broker is not asked again to hold a retry after it could
// not: asking may take a worker as long as publishing may.
const holdAgain = 5 * time.Second

func (h *brokerHold) failed(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.from = now.Add(holdAgain)
}

// broken reports that the broker is not to be asked yet.
func (h *brokerHold) broken(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.from)
}
