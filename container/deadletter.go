package container

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
)

// The headers of a dead letter. Each is replaced and never appended, so that a
// message does not grow when it fails again and again.
const (
	HeaderAttempt      = "longshore-attempt"       // on the retry path: the attempt this delivery is
	HeaderDeadReason   = "longshore-dead-reason"   // code of the error
	HeaderDeadError    = "longshore-dead-error"    // its text, at most 512 bytes
	HeaderDeadAttempts = "longshore-dead-attempts" // how often a handler saw it
	HeaderDeadAt       = "longshore-dead-at"       // when it was given up
	HeaderDeadSource   = "longshore-dead-source"   // where it came from
	HeaderDeadBy       = "longshore-dead-by"       // container and host
	HeaderDeadReplays  = "longshore-dead-replays"  // how often it was put back
	HeaderDeadID       = "longshore-dead-id"       // its identity where it came from; read, and no longer written: it is longshore-id now
)

const maxErrorText = 512

// transient is AMQP's delivery mode of what a broker may forget.
const transient = 1

// deadLetter is a message that was given up and whose move did not succeed yet.
type deadLetter struct {
	err    error // why it was given up
	tries  int
	failed error // of the last move; guarded by engine.mu

	// overtaken: given up by an operator behind others of its lane, which do not wait.
	overtaken bool
}

// terminalState is the terminal policy and the publisher it needs.
type terminalState struct {
	policy Policy
	down   error // of the destination, from the last publish; guarded by engine.mu

	mu  sync.Mutex
	pub transport.Publisher
}

// moveToDeadLetter applies the terminal policy.
func (r *engine) moveToDeadLetter(w *worker, it *item, j judgement) {
	j.verdict = longshore.VerdictReject
	switch {
	case r.s.dead.To != "":
		r.deadLetter(w, it, j)
	case r.terms.policy == DeadLetterNative:
		if err := r.hopped(it.d); err != nil {
			r.stays(w, it, j, err)
			return
		}
		err := it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbReject, Reason: j.err})
		if err != nil && errors.Is(err, longshore.CodeUnsupported) {
			r.keep(w, it, j)
			return
		}
		if err != nil {
			j.verdict = r.refused(it, longshore.VerbReject, err)
		} else {
			r.log.deadLettered(it.d, j.err, "the broker's dead-letter place")
		}
		r.done(w, it, j)
	case r.terms.policy == DeadLetterDiscard:
		j.verdict = longshore.VerdictDiscard
		if err := it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck}); err != nil {
			j.verdict = r.refused(it, longshore.VerbAck, err)
		}
		r.done(w, it, j)
	default:
		r.keep(w, it, j)
	}
}

// keep tries again at the longest delay, for ever.
func (r *engine) keep(w *worker, it *item, j judgement) {
	j.verdict, j.delay = longshore.VerdictRetry, r.s.retry.Max
	r.redeliver(w, it, j, it.d.Attempt+1)
}

// deadLetter publishes the message to the dead-letter destination and acks it
// once that is confirmed. If it cannot, the message stays.
func (r *engine) deadLetter(w *worker, it *item, j judgement) {
	// The old delivery must not be settled by a goroutine the handler left behind
	// while the copy is on its way.
	own, err := it.d.Again(it.d.Attempt)
	if err == nil {
		own.Own(r, it.started)
		r.mu.Lock()
		it.d = own
		down := r.terms.down
		r.mu.Unlock()
		// While the destination does not work, workers do not wait for it again.
		if down == nil || it.dead != nil {
			down = r.publishDead(own, it.copyIdentity(), j.err)
			r.mu.Lock()
			r.terms.down = destinationFault(down)
			r.mu.Unlock()
		}
		if down != nil {
			r.stays(w, it, j, down)
			return
		}
		err = it.d.Apply(r.life.settle, longshore.Settlement{Verb: longshore.VerbAck})
		r.log.deadLettered(it.d, j.err, r.s.dead.To)
	}
	if err != nil {
		j.verdict = r.refused(it, longshore.VerbReject, err)
	}
	r.done(w, it, j)
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

// moveDue lets the undertaker try again to move what is due. The caller holds mu.
func (r *dispatcher) moveDue() {
	if r.sched.Waiting() > 0 && !r.undertaking {
		r.undertaking = true
		r.pool.wg.Go(r.moveLetters)
	}
}

// retryDeadLetters moves what could not be moved at first, one after the other, so that
// a destination that does not answer costs no worker. It ends when nothing is due.
func (r *engine) retryDeadLetters() {
	for {
		r.mu.Lock()
		next := r.sched.TakeDue()
		if next == nil {
			r.undertaking = false
			r.changed()
			r.mu.Unlock()
			return
		}
		it := next.Of
		r.mu.Unlock()
		j := judgement{verdict: longshore.VerdictReject, err: it.dead.err, end: r.now()}
		if it.d.Owned() {
			r.moveToDeadLetter(nil, it, j)
		} else {
			j.verdict = longshore.VerdictLost
			r.done(nil, it, j)
		}
	}
}

// stays keeps a message that could not be moved, to try the move again.
func (r *engine) stays(w *worker, it *item, j judgement, err error) {
	r.mu.Lock()
	if it.dead == nil {
		it.dead = &deadLetter{err: j.err}
	}
	it.dead.tries++
	it.dead.failed = err
	j.verdict, j.delay = longshore.VerdictNone, r.backoff(it.dead.tries)
	stopping := r.leavesNow(it)
	r.mu.Unlock()
	e := &longshore.Error{Code: longshore.CodeDeadLetter, Source: r.s.dead.To, Err: err,
		Op:   fmt.Sprintf("dead-letter %q message %.64s to %q", r.s.name, idOf(it.d), r.s.dead.To),
		Hint: fmt.Sprintf("the message stays and is tried again in %v; see that the destination exists and takes it, or correct DeadLetter.To", round(j.delay))}
	tell := true
	switch {
	case errors.Is(err, longshore.CodeHops): // time changes nothing, and one word is enough
		e.Hint, tell = "the message stays", it.dead.tries == 1
	case immovable(err):
		e.Hint = fmt.Sprintf("the destination takes no such message, so it stays, and those of its key wait behind it: raise the destination's limit, or set DeadLetter.To or Via to one that takes it; tried again in %v", round(j.delay))
	}
	var event *Event
	if tell {
		event = &Event{Kind: EventDeadLetterFailed, Err: e, Delay: j.delay, Reason: r.s.dead.To, Delivery: factsOf(it.d), Text: e.Error()}
	}
	r.log.deadLetterFailed(event)
	if stopping {
		j.verdict = longshore.VerdictRelease
		if r.giveBack(w, it, j, it.d.Attempt, false) {
			return
		}
	}
	r.park(w, it, j, it.d.Attempt)
}

// publishDead publishes with a deadline of its own: a worker must not wait for a
// broker that takes nothing.
func (r *engine) publishDead(d *longshore.Delivery, id string, reason error) error {
	ctx, cancel := context.WithTimeout(r.life.settle, publishTimeout)
	defer cancel()
	if err := r.hopped(d); err != nil {
		return err
	}
	pub, err := r.deadPublisher(ctx)
	if err != nil {
		return err
	}
	for said := allDiagnostics; said <= noDiagnostics; said++ {
		// The diagnostics may be what is too much: the move matters more.
		err = pub.Publish(ctx, r.s.dead.To, r.deadMessage(d, id, reason, said))
		if !errors.Is(err, longshore.CodeTooLarge) && !errors.Is(err, longshore.CodeBadHeader) {
			break
		}
	}
	return err
}

// diagnostics is how much a dead letter says about its end.
type diagnostics uint8

const (
	allDiagnostics   diagnostics = iota
	briefDiagnostics             // the code and the attempts, which tools select by
	noDiagnostics                // as it came: what came in under a limit goes out under it
)

// deadPublisher returns the publisher given, or one on the source's own broker.
func (r *engine) deadPublisher(ctx context.Context) (transport.Publisher, error) {
	if r.s.dead.Via != nil {
		return r.s.dead.Via, nil
	}
	r.terms.mu.Lock()
	defer r.terms.mu.Unlock()
	if r.terms.pub != nil {
		return r.terms.pub, nil
	}
	out, ok := r.src.(transport.Outlet)
	if !ok { // New has looked
		return nil, &longshore.Error{Code: longshore.CodeInternal, Op: "publish to " + r.s.dead.To, Err: errors.New("the source cannot publish")}
	}
	pub, _, err := out.Publisher(ctx)
	if err == nil {
		r.terms.pub = pub
	}
	return pub, err
}

// copyIdentity is what all copies of a message carry that are made here: its own
// identity, or where it has none, as on RabbitMQ, one that is made up once. A move that is
// tried again may make a second copy.
func (it *item) copyIdentity() string {
	if it.copyID == "" {
		h := it.d.Received().Headers
		it.copyID = cmp.Or(h.String(longshore.HeaderID), h.String(HeaderDeadID), longshore.Identity(it.d), rand.Text())
	}
	return it.copyID
}

// deadMessage is what was received, with its identity and the reasons in its headers.
func (r *engine) deadMessage(d *longshore.Delivery, id string, reason error, said diagnostics) *longshore.Message {
	m := *d.Received()
	headers := make(longshore.Headers, 0, len(m.Headers)+8)
	for _, h := range m.Headers {
		switch h.Name {
		case HeaderAttempt, HeaderDeadReason, HeaderDeadError, HeaderDeadAttempts, HeaderDeadAt, HeaderDeadSource, HeaderDeadBy, HeaderDeadID, HeaderDeadHops:
		default:
			headers = append(headers, h)
		}
	}
	if said <= briefDiagnostics || m.Headers.Has(HeaderDeadHops) {
		headers = append(headers, longshore.Header{Name: HeaderDeadHops, Value: hops.Of(m.Headers) + 1})
	}
	if said <= briefDiagnostics {
		headers = append(headers,
			longshore.Header{Name: HeaderDeadReason, Value: string(longshore.CodeOf(reason))},
			longshore.Header{Name: HeaderDeadAttempts, Value: int64(d.Attempt)})
		if id != m.ID && !m.Headers.Has(longshore.HeaderID) {
			headers = append(headers, longshore.Header{Name: longshore.HeaderID, Value: id})
		}
	}
	if said == allDiagnostics {
		host, _ := os.Hostname()
		text := ""
		if reason != nil {
			text = reason.Error()
		}
		headers = append(headers,
			longshore.Header{Name: HeaderDeadError, Value: cutText(text, maxErrorText)},
			longshore.Header{Name: HeaderDeadAt, Value: r.s.clock.Now().UTC().Format(time.RFC3339Nano)},
			longshore.Header{Name: HeaderDeadSource, Value: cutText(r.s.about.Name, 255)},
			longshore.Header{Name: HeaderDeadBy, Value: cutText(r.s.name+"@"+host, 255)})
	}
	m.Headers = headers
	m.Expiration = 0 // it must not expire where it waits for people
	if m.DeliveryMode == transient {
		m.DeliveryMode = 0 // nor go with a restart of the broker: zero is the mode that lasts
	}
	return &m
}

// cutText makes the text valid UTF-8 and cuts it at a rune boundary.
func cutText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
