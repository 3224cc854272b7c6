package container

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
)

// deadLetter is what is known of a message that was given up and could not be moved yet.
type deadLetter struct {
	err    error // why it was given up
	tries  int   // moves that failed, for the delay
	failed error // of the last of them; guarded by guard.mu

	// overtaken: an operator gave it up while others of its lane were before it, so those
	// do not wait for it.
	overtaken bool
}

// deadLetters moves messages that were given up to the place for them. It has a lock of
// its own, which is not held while a broker is called.
type deadLetters struct {
	s    *settings        // where dead letters go, and the names in errors
	src  transport.Source // whose broker is published to, unless DeadLetter.Via is set
	life *lifetimes       // ends publishing when settlements end
	turn chan struct{}    // held by whoever opens the publisher, so that there is one

	mu     sync.Mutex          // guards what follows
	policy Policy              // what happens to messages that fail for the last time, of the consumer
	down   error               // the last publish said that the destination does not work; nil: it did not
	pub    transport.Publisher // that we opened; nil: none is needed yet
}

func newDeadLetters(s *settings, src transport.Source, life *lifetimes) *deadLetters {
	return &deadLetters{s: s, src: src, life: life, turn: make(chan struct{}, 1)}
}

func (l *deadLetters) setPolicy(p Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy = p
}

func (l *deadLetters) policyNow() Policy {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.policy
}

// place says for people where messages go that are given up.
func (l *deadLetters) place() string {
	switch policy := l.policyNow(); {
	case l.s.dead.To != "":
		return l.s.dead.To
	case policy == DeadLetterNative:
		return "by the broker"
	case policy == DeadLetterDiscard:
		return "discarded"
	}
	return "kept"
}

// deadMoves is the goroutine that repeats moves to the dead-letter destination, one after the
// other, so that a place that does not answer costs no worker. It runs only while moves are
// due. Guarded by guard.mu.
type deadMoves struct {
	run func() // the goroutine
	on  bool   // it runs
}

// begin starts the goroutine if so many moves are due and it does not run.
func (m *deadMoves) begin(due int, wg *sync.WaitGroup) {
	if due > 0 && !m.on {
		m.on = true
		wg.Go(m.run)
	}
}

// next takes the next item whose move is due; nil: none is, and the goroutine ends.
func (m *deadMoves) next(sched *dispatch.Scheduler[item]) *item {
	if t := sched.TakeDue(); t != nil {
		return t.Of
	}
	m.on = false
	return nil
}

// deadLetter gives a message up by the policy for those that fail for the last time.
func (t *settler) deadLetter(w *worker, it *item, j judgement) {
	j.verdict = longshore.VerdictReject
	policy := t.dead.policyNow()
	switch {
	case t.s.dead.To != "":
		t.move(w, it, j)
	case policy == DeadLetterNative:
		t.reject(w, it, j)
	case policy == DeadLetterDiscard:
		j.verdict = longshore.VerdictDiscard
		t.discard(w, it, j)
	default:
		t.keep(w, it, j)
	}
}

// keep tries again at the longest delay, for ever.
func (t *settler) keep(w *worker, it *item, j judgement) {
	j.verdict, j.delay = longshore.VerdictRetry, t.s.retry.Max
	t.redeliver(w, it, j, it.d.Attempt+1, false)
}

// reject lets the broker move the message to its own dead-letter destination.
func (t *settler) reject(w *worker, it *item, j judgement) {
	if err := t.dead.hopped(it.d); err != nil {
		t.stays(w, it, j, err)
		return
	}
	switch err := it.d.Apply(t.life.settle, longshore.Settlement{Verb: longshore.VerbReject, Reason: j.err}); {
	case err == nil:
		t.log.deadLettered(it.d, j.err, "the broker's dead-letter destination")
	case errors.Is(err, longshore.CodeUnsupported):
		t.keep(w, it, j)
		return
	default:
		j.verdict = t.refused(it, longshore.VerbReject, err)
	}
	t.end(w, it, j)
}

// move publishes the message to the dead-letter destination and acks it once that is
// confirmed. If it cannot, the message stays.
func (t *settler) move(w *worker, it *item, j judgement) {
	// The old delivery must not be settled by a goroutine the handler left behind while the
	// copy is on its way.
	own, err := t.again(it)
	if err == nil {
		if down := t.dead.publish(own, it.copyIdentity(), j.err, it.dead != nil); down != nil {
			t.stays(w, it, j, down)
			return
		}
		err = it.d.Apply(t.life.settle, longshore.Settlement{Verb: longshore.VerbAck})
		t.log.deadLettered(it.d, j.err, t.s.dead.To)
	}
	if err != nil {
		j.verdict = t.refused(it, longshore.VerbReject, err)
	}
	t.end(w, it, j)
}

// stays keeps a message that could not be moved, to try the move again.
func (t *settler) stays(w *worker, it *item, j judgement, err error) {
	tries := t.concluder.failedMove(it, j.err, err)
	j.verdict, j.delay = longshore.VerdictNone, t.backoff(tries)
	e := &longshore.Error{Code: longshore.CodeDeadLetter, Source: t.s.dead.To, Err: err,
		Op:   fmt.Sprintf("dead-letter %q message %.64s to %q", t.s.name, idOf(it.d), t.s.dead.To),
		Hint: fmt.Sprintf("the message stays and is tried again in %v; see that the destination exists and takes it, or correct DeadLetter.To", round(j.delay))}
	report := true
	switch {
	case errors.Is(err, longshore.CodeHops): // time changes nothing, so it is reported once
		e.Hint, report = "the message stays", tries == 1
	case immovable(err):
		e.Hint = fmt.Sprintf("the destination takes no such message, so it stays, and those of its key wait behind it: raise the destination's limit, or set DeadLetter.To or Via to one that takes it; tried again in %v", round(j.delay))
	}
	var event *Event
	if report {
		event = &Event{Kind: EventDeadLetterFailed, Err: e, Delay: j.delay, Reason: t.s.dead.To, Delivery: factsOf(it.d), Text: e.Error()}
	}
	t.log.deadLetterFailed(event)
	if st := t.concluder.standing(it); st.leaves {
		j.verdict = longshore.VerdictRelease
		if t.giveBack(w, it, j, it.d.Attempt, false, st) {
			return
		}
	}
	t.park(w, it, j, it.d.Attempt)
}

// retryDeadLetters moves what could not be moved at first, one after the other, so that
// a destination that does not answer costs no worker. It ends when next returns nil.
func (t *settler) retryDeadLetters(next func() *item) {
	for it := next(); it != nil; it = next() {
		j := judgement{verdict: longshore.VerdictReject, err: it.dead.err, end: t.clock.now()}
		if it.d.Owned() {
			t.deadLetter(nil, it, j)
			continue
		}
		j.verdict = longshore.VerdictLost
		t.end(nil, it, j)
	}
}

// publish publishes a dead letter. While the destination does not work, only messages
// whose move has failed before wait for it, so that it holds up no worker.
func (l *deadLetters) publish(d *longshore.Delivery, id string, reason error, failed bool) error {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down != nil && !failed {
		return down
	}
	err := l.send(d, id, reason)
	l.mu.Lock()
	l.down = destinationFault(err)
	l.mu.Unlock()
	return err
}

// send publishes with a deadline of its own: a worker must not wait for a broker that
// takes nothing.
func (l *deadLetters) send(d *longshore.Delivery, id string, reason error) error {
	// A transport may publish it in one step with the ack of the delivery.
	ctx, cancel := context.WithTimeout(longshore.WithDelivery(l.life.settle, d), publishTimeout)
	defer cancel()
	if err := l.hopped(d); err != nil {
		return err
	}
	pub, err := l.publisher(ctx)
	if err != nil {
		return err
	}
	for said := allDiagnostics; said <= noDiagnostics; said++ {
		// The diagnostics may be what is too much: the move matters more.
		err = pub.Publish(ctx, l.s.dead.To, l.message(d, id, reason, said))
		if !errors.Is(err, longshore.CodeTooLarge) && !errors.Is(err, longshore.CodeBadHeader) {
			break
		}
	}
	return err
}

// publisher returns the publisher given, or one on the source's own broker.
func (l *deadLetters) publisher(ctx context.Context) (transport.Publisher, error) {
	if l.s.dead.Via != nil {
		return l.s.dead.Via, nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	pub := l.pub
	l.mu.Unlock()
	if pub != nil {
		return pub, nil
	}
	out, ok := l.src.(transport.Outlet)
	if !ok { // New has looked
		return nil, &longshore.Error{Code: longshore.CodeInternal, Op: "publish to " + l.s.dead.To, Err: errors.New("the source cannot publish")}
	}
	pub, _, err := out.Publisher(ctx)
	if err == nil {
		l.mu.Lock()
		l.pub = pub
		l.mu.Unlock()
	}
	return pub, err
}

// takePublisher hands over the publisher that was opened, to be closed; nil: there is none.
func (l *deadLetters) takePublisher() transport.Publisher {
	l.turn <- struct{}{} // one that is being opened
	defer func() { <-l.turn }()
	l.mu.Lock()
	defer l.mu.Unlock()
	pub := l.pub
	l.pub = nil
	return pub
}

// hopped refuses the move of a message that has made too many; nil if it has not.
func (l *deadLetters) hopped(d *longshore.Delivery) error {
	return hops.Check(d.Received().Headers, l.s.hops, "DeadLetter.MaxHops")
}

// lastReturn is the verdict on a delivery that the broker gives up at its next return. It
// goes to the dead-letter destination with that reason while it is here, since it may not
// survive its handler. nil where there is no such place, or the delivery is none of
// those: then a handler gets it.
func (l *deadLetters) lastReturn(d *longshore.Delivery) error {
	if !d.Origin.LastReturn || l.s.dead.To == "" && l.policyNow() != DeadLetterNative {
		return nil
	}
	return longshore.Reject(&longshore.Error{Code: longshore.CodeReturned, Source: l.s.name,
		Op:   fmt.Sprintf("receive %q message %.64s", l.s.about.Name, idOf(d)),
		Err:  errors.New("it was returned to the broker so often that the next return would be its last"),
		Hint: "returns are stops, cuts and crashes while it was held; if it makes its handler crash, correct that and replay it"})
}

// limitNotice reports the broker's own limit at the start; "" if there is none.
func limitNotice(s *settings, caps longshore.Capabilities, policy Policy) string {
	if caps.DeliveryLimit <= 0 || !caps.CountsReturns || s.deletion.by != DeleteBySettings { // a policy of deletion leaves it to the broker
		return ""
	}
	if caps.LimitDeadLetters {
		return fmt.Sprintf("the broker moves a message to its own dead-letter destination after %d receives and counts those that no handler saw, such as stops and crashes: its limit should be above MaxAttempts plus some stops", caps.DeliveryLimit)
	}
	fate := "no dead-letter destination is set for messages that come near it; set DeadLetter.To"
	if s.dead.To != "" || policy == DeadLetterNative {
		fate = "a message one return away from it is dead-lettered here"
	}
	return fmt.Sprintf("the broker gives up after %d returns and counts those that no handler saw: restarts work off what was received; %s", caps.DeliveryLimit, fate)
}

// destinationFault is the part of a failed publish that says something about the next one: a
// destination that is away would hold up each worker in turn. One that refuses a message has
// answered, and takes others.
func destinationFault(err error) error {
	switch longshore.CodeOf(err) { //nolint:exhaustive // all others concern the destination
	case longshore.CodeTooLarge, longshore.CodeBadHeader, longshore.CodeRefused, longshore.CodeHops:
		return nil
	}
	return err
}

// immovable tells whether a dead-letter destination that answers like this will answer the same
// to the next try: the message is what it refuses.
func immovable(err error) bool {
	return transport.Permanent(err) || longshore.CodeOf(err) == longshore.CodeHops
}

// unmovable counts the messages that their dead-letter destination refuses for good, and returns
// its answer to one of them. They are tried again, since its limit may be raised.
func unmovable(sched *dispatch.Scheduler[item]) (n int, why error) {
	for t := range sched.Begun() {
		it := t.Of
		if it.dead == nil || !immovable(it.dead.failed) {
			continue
		}
		if n++; why == nil {
			why = it.dead.failed
		}
	}
	return n, why
}

// unmovableText is the reason of a container that holds such messages; "": it holds none.
func unmovableText(sched *dispatch.Scheduler[item], to string) string {
	n, why := unmovable(sched)
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 message cannot be moved to its dead-letter destination %q: %v", to, why)
	}
	return fmt.Sprintf("%d messages cannot be moved to their dead-letter destination %q: %v", n, to, why)
}
