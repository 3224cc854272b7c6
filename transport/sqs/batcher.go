package sqs

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
)

// opKind is what a settlement does to the message.
type opKind uint8

const (
	opDelete opKind = iota
	opReturn        // change of visibility
	opDead          // copy to the dead-letter queue; a delete follows
	opKinds
)

// calls is how many calls of a kind run at once.
func (k opKind) calls() int {
	switch k {
	case opReturn:
		return 8
	case opDead:
		return 4
	case opDelete, opKinds:
	}
	return 16
}

// op is a settlement on its way to the broker.
type op struct {
	kind    opKind               // which call carries it
	h       *held                // whose newest receipt is used when it is sent, not when it was wanted
	receipt string               // at the time of the verdict; replaced when the message arrives again meanwhile
	seconds int32                // of a return
	verb    longshore.Settlement // as the delivery was settled
	quiet   bool                 // a failure is not reported: no handler asked for this
	unused  bool                 // a return of a message that no handler has seen; Release waits for it
	since   time.Time            // accepted
	next    time.Time            // not before, after a failure; zero: at once
	tries   int                  // so that the pauses grow and end
	alone   bool                 // a batch with it was refused as a whole: it goes by itself
	unsure  bool                 // a call for this receipt ended without an answer: it may have been carried out
}

// overdue reports that the message of a return is visible by itself. Its receipt is an old
// one then: what it still does, it does to the work of another consumer.
func (o *op) overdue(now time.Time) bool { return o.kind == opReturn && !o.h.deadline.After(now) }

// whenGone is what it means for a delete that its receipt is no longer good. A message
// that no one else can have had, and whose last delete got no answer, was deleted by that
// one: not every server answers a second delete with success, as AWS does.
func (o *op) whenGone(now time.Time, err error) error {
	switch {
	case o.kind != opDelete || !o.unsure:
		return err
	case o.h.deadline.After(now):
		return nil
	}
	return fmt.Errorf("the answer to its delete was lost and its lease has ended since, so whether it was deleted is not known: %w", err)
}

// batcher collects settlements for calls of up to ten. It decides when a batch goes and
// whether a failed one is sent again, and it owns the sums that Flush, Release and Close
// wait for. It makes no calls and reads no clock; the consumer's lock guards it.
type batcher struct {
	linger    time.Duration       // how long a settlement waits for others to share its call
	queues    [opKinds]batchQueue // one for each kind of call, since SQS has a call for each
	accepted  int                 // accepted and without an outcome
	unused    int                 // of these, returns of messages that no handler has seen
	failed    int                 // not carried out since the last Flush, which reports them
	impatient int                 // callers that wait for everything to go now
}

// batchQueue is the settlements of one kind.
type batchQueue struct {
	waiting []*op // in the order of their verdicts
	running int   // calls on their way
}

const (
	// urgency is how many times more calls run at once while a caller waits for all of
	// them.
	urgency = 4
	// maxTries is how often a settlement is sent that fails for passing reasons; while no
	// caller waits for it and its message is still ours it goes on for lasting. To give it
	// up means that the message is handled once more.
	maxTries = 8
	lasting  = time.Minute
)

// accept takes a verdict into the sums.
func (b *batcher) accept(o *op, now time.Time) {
	o.since = now
	b.accepted++
	if o.unused {
		b.unused++
	}
}

// ended takes it out again: it has an outcome.
func (b *batcher) ended(o *op) {
	b.accepted--
	if o.unused {
		b.unused--
	}
}

// put queues a settlement and reports whether it may complete a batch.
func (b *batcher) put(o *op) (ripe bool) {
	q := &b.queues[o.kind]
	q.waiting = append(q.waiting, o)
	return len(q.waiting) == 1 || len(q.waiting) >= maxBatch || b.impatient > 0
}

// drop takes a settlement out that was not sent; false if it was.
func (b *batcher) drop(o *op) bool {
	q := &b.queues[o.kind]
	i := slices.Index(q.waiting, o)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// take cuts off a batch that should go now: a full one, or one in which something has
// waited long enough. Without one, next is when to look again; zero: when something
// changes.
func (b *batcher) take(kind opKind, now time.Time) (batch []*op, next time.Time) {
	q, flush := &b.queues[kind], b.impatient > 0
	most := kind.calls()
	if flush {
		most *= urgency
	}
	if q.running >= most {
		return nil, time.Time{} // the end of one wakes the loop
	}
	var ready []*op
	ripe := flush
	for _, o := range q.waiting {
		if o.next.After(now) {
			next = earlier(next, o.next)
			continue
		}
		if len(ready) == maxBatch || len(ready) > 0 && (o.alone || ready[0].alone) {
			break
		}
		if ready == nil {
			ready = make([]*op, 0, min(len(q.waiting), maxBatch))
		}
		ready = append(ready, o)
		if at := o.since.Add(b.linger); !at.After(now) || o.tries > 0 {
			ripe = true
		} else {
			next = earlier(next, at)
		}
	}
	if len(ready) == 0 || len(ready) < maxBatch && !ripe && !ready[0].alone {
		return nil, next
	}
	if q.waiting[len(ready)-1] == ready[len(ready)-1] { // nothing was passed over
		q.waiting = q.waiting[len(ready):]
	} else {
		q.waiting = slices.DeleteFunc(q.waiting, func(o *op) bool { return slices.Contains(ready, o) })
	}
	q.running++
	return ready, time.Time{}
}

// carried is what a call did for one settlement.
type carried struct {
	o       *op   // settled by the answer
	err     error // nil: carried out
	visible bool  // a return whose message was visible already, so that its delay was not kept
}

// called takes the answer to a batch. It queues again what deserves another try and
// returns the rest with its outcome. An answer that came because the consumer is at its
// end (life is over) decides nothing: Close reports what it left.
func (b *batcher) called(kind opKind, batch []*op, r *result, now time.Time, over bool) (done []carried) {
	q := &b.queues[kind]
	q.running--
	inCompany := r.inCompany(len(batch)) && !over
	for i, o := range batch {
		if inCompany {
			o.alone = true
			q.waiting = append(q.waiting, o)
			continue
		}
		err, passing := r.of(i)
		visible := o.kind == opReturn && (gone(err) || o.overdue(now))
		if visible {
			err = nil // which is what was wanted
		}
		passing = passing || codeOr(r.call) == longshore.CodeAuth // others may be given soon
		switch {
		case err != nil && passing && b.again(o, now) && !over:
			o.tries++
			o.unsure = o.unsure || r.unanswered(i)
			o.next = now.Add(min(50*time.Millisecond<<min(o.tries, 6), 2*time.Second))
			q.waiting = append(q.waiting, o)
		case err != nil && over:
		case gone(err):
			done = append(done, carried{o: o, err: o.whenGone(now, err)})
		default:
			done = append(done, carried{o: o, err: err, visible: visible})
		}
	}
	return done
}

// again reports whether a settlement that failed for a passing reason is sent once more.
func (b *batcher) again(o *op, now time.Time) bool {
	return o.tries+1 < maxTries || b.impatient == 0 && o.h.deadline.After(now) && now.Sub(o.since) < lasting
}

// takeFailed returns how many failed since the last call.
func (b *batcher) takeFailed() int {
	n := b.failed
	b.failed = 0
	return n
}

// earlier is the first of two times; a zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// errUnsent is the failure of what Close could not send.
var errUnsent = errors.New("the consumer was closed before it was sent")
