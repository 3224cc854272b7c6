package transporttest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func settleChecks() []check {
	return []check{
		{name: "ack", run: acks},
		{name: "ack-with-dead-context", run: acksWithDeadContext},
		{name: "nack", run: nacks},
		{name: "nack-delay", run: nacksWithDelay},
		{name: "attempts", run: countsAttempts},
		{name: "attempts-brought-along", run: believesNoForeignAttempts},
		{name: "attempts-uncounted", run: uncountedReturn},
		{name: "redelivered", run: marksRedelivered},
		{name: "identity", run: keepsIdentity},
		{name: "reject", run: rejects},
		{name: "extend", run: extends},
		{name: "settle-twice", run: settlesOnce},
		{name: "settle-concurrently", run: settlesOnceConcurrently},
		{name: "settle-failed", needs: needs("FailSettle"), run: reportsFailedSettlement},
	}
}

// one opens a fresh queue with one message in it, and takes that.
func (e *env) one(body string) (*sub, *longshore.Delivery) {
	e.Helper()
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, body)
	return s, s.take(1)[0]
}

func acks(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, bodies(5)...)
	s.ack(s.take(5)...)
	s.finish()
	e.holds(src, "after all were acked")
}

// F-A02: what was done is settled, whatever became of the handler's context.
func acksWithDeadContext(e *env) {
	s, d := e.one("done")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e.must("Ack with a context that has ended", func(context.Context) error { return d.Ack(ctx) })
	s.finish()
	e.holds(s.src, "after an ack with a context that has ended")
}

func nacks(e *env) {
	s, d := e.one("again")
	e.must("Nack", func(ctx context.Context) error { return d.Nack(ctx, 0) })
	again := s.take(1)[0]
	if string(again.Body) != "again" || again == d {
		e.Errorf("after a nack %q came, in the same delivery: %t", again.Body, again == d)
	}
	s.ack(again)
	s.finish()
	e.holds(s.src, "after it was nacked and then acked")
}

func nacksWithDelay(e *env) {
	s, d := e.one("later")
	if !s.caps.Delay {
		err := e.do("Nack with a delay", func(ctx context.Context) error { return d.Nack(ctx, e.h.Delay) })
		e.wants("Nack with a delay, without Capabilities.Delay", err, longshore.CodeUnsupported)
		e.stillOpen(s, d)
		return
	}
	if limit := s.caps.MaxDelay; limit > 0 {
		err := e.do("Nack", func(ctx context.Context) error { return d.Nack(ctx, limit+time.Second) })
		e.wants("Nack with more than Capabilities.MaxDelay", err, longshore.CodeUnsupported)
	}
	start := time.Now()
	e.must("Nack with a delay", func(ctx context.Context) error { return d.Nack(ctx, e.h.Delay) })
	e.publish(s.src, "meanwhile")
	published := time.Since(start)
	for n := range 2 {
		next := s.take(1)[0]
		if string(next.Body) == "later" {
			took := time.Since(start)
			if took < e.h.Delay-20*time.Millisecond {
				e.Errorf("nacked with a delay of %s, it was back after %s", e.h.Delay, took)
			}
			if n == 0 && published < e.h.Delay/2 { // on a busy machine the other may come late
				e.Errorf("nacked with a delay of %s, it was back after %s, before another message of %s", e.h.Delay, took, published)
			}
		}
		s.ack(next)
	}
	s.finish()
	e.holds(s.src, "after a delayed message was acked")
}

// stillOpen checks that a refused verb left the delivery open.
func (e *env) stillOpen(s *sub, d *longshore.Delivery) {
	e.Helper()
	if !d.Owned() {
		e.Errorf("a verb that the transport cannot do must leave the delivery open")
	}
	s.ack(d)
	s.finish()
	e.holds(s.src, "after a refused verb and an ack")
}

func countsAttempts(e *env) {
	s, d := e.one("poison")
	if !s.caps.Attempts {
		e.without("Attempts is false")
		return
	}
	for want := 2; want <= 3; want++ {
		e.must("Nack", func(ctx context.Context) error { return d.Nack(ctx, 0) })
		d = s.take(1)[0]
		if d.Attempt != want {
			e.Errorf("attempt %d after %d nacks, want %d", d.Attempt, want-1, want)
		}
	}
	if !s.caps.Delay {
		return
	}
	e.must("Nack with a delay", func(ctx context.Context) error { return d.Nack(ctx, e.h.Delay) })
	if d = s.take(1)[0]; d.Attempt != 4 {
		e.Errorf("attempt %d after 3 nacks, the last with a delay, want 4", d.Attempt)
	}
}

// F-N03: nothing that a message brings along shortens its life here: its first delivery is
// attempt 1, whatever it has been through elsewhere or claims.
func believesNoForeignAttempts(e *env) {
	src, p, dest := e.outlet()
	if p == nil {
		return
	}
	m := &longshore.Message{Key: []byte("k"), Body: []byte("well-travelled"), Headers: longshore.Headers{
		{Name: "longshore-attempt", Value: int64(1_000_000_000)}, {Name: "x-delivery-count", Value: int64(9)},
		{Name: "x-acquired-count", Value: int64(9)}, {Name: "ApproximateReceiveCount", Value: "9"},
	}}
	e.must("Publish", func(ctx context.Context) error { return p.Publish(ctx, dest, m) })
	s := e.open(src, transport.OpenOptions{})
	d := s.take(1)[0]
	if d.Attempt != 1 {
		e.Errorf("the first delivery of a message with others' counts in its headers is attempt %d, want 1", d.Attempt)
	}
	s.ack(d)
}

// F-A01, F-F05: a return that is not the message's fault is not counted.
func uncountedReturn(e *env) {
	s, d := e.one("innocent")
	switch {
	case !s.caps.Attempts:
		e.without("Attempts is false")
		return
	case s.caps.CountsReturns:
		e.without("CountsReturns")
		return
	}
	for range 2 {
		e.must("uncounted return", func(ctx context.Context) error {
			return d.Apply(ctx, longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt})
		})
		if d = s.take(1)[0]; d.Attempt != 1 {
			e.Errorf("attempt %d after a return that does not count, want 1", d.Attempt)
		}
	}
}

func marksRedelivered(e *env) {
	s, d := e.one("again")
	e.must("Nack", func(ctx context.Context) error { return d.Nack(ctx, 0) })
	if d = s.take(1)[0]; !d.Origin.Redelivered {
		e.Errorf("Origin.Redelivered is false after a nack")
	}
	s.ack(d)
	if s.caps.HeadOfLineBlocking {
		s.finish()
		return // a log keeps positions and knows nothing of single messages
	}
	// Another one, that no Nack has marked before.
	e.publish(s.src, "held")
	if d = s.take(1)[0]; d.Origin.Redelivered {
		e.Errorf("Origin.Redelivered is true at the first delivery")
	}
	s.flush()
	s.shut()
	next := e.open(s.src, transport.OpenOptions{})
	if d = next.take(1)[0]; !d.Origin.Redelivered {
		e.Errorf("Origin.Redelivered is false after an earlier consumer was closed with it")
	}
}

// One id per message, the same at each delivery of it, another for another.
func keepsIdentity(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.send(src, &longshore.Message{ID: "id-a", Key: []byte("a"), Body: []byte("a")})
	e.send(src, &longshore.Message{ID: "id-b", Key: []byte("b"), Body: []byte("b")})
	first := map[string]string{}
	for _, d := range s.take(2) {
		first[string(d.Body)] = longshore.Identity(d)
		e.must("Nack", func(ctx context.Context) error { return d.Nack(ctx, 0) })
	}
	if first["a"] == "" || first["a"] == first["b"] {
		e.Errorf("the identities of two messages are %q and %q", first["a"], first["b"])
	}
	for _, d := range s.take(2) {
		if id := longshore.Identity(d); id != first[string(d.Body)] {
			e.Errorf("%s: identity %q when redelivered, %q before", d.Body, id, first[string(d.Body)])
		}
		s.ack(d)
	}
}

func rejects(e *env) {
	s, d := e.one("bad")
	reject := func(ctx context.Context) error { return d.Reject(ctx, errors.New("no such order")) }
	if !s.caps.DeadLetter {
		e.wants("Reject without Capabilities.DeadLetter", e.do("Reject", reject), longshore.CodeUnsupported)
		e.stillOpen(s, d)
		return
	}
	e.must("Reject", reject)
	s.finish()
	e.holds(s.src, "after it was rejected")
	if e.h.DeadLettered != nil {
		e.until("one message in the dead-letter destination", func() bool { return e.h.DeadLettered(e, s.src) == 1 })
	}
}

func extends(e *env) {
	s, d := e.one("long")
	extend := func(ctx context.Context) error { return d.Extend(ctx, time.Minute) }
	if !s.caps.Extend {
		e.wants("Extend without Capabilities.Extend", e.do("Extend", extend), longshore.CodeUnsupported)
		e.stillOpen(s, d)
		return
	}
	e.must("Extend", extend)
	if !d.Owned() {
		e.Errorf("not owned after Extend")
	}
	s.ack(d)
	e.wants("Extend after Ack", e.do("Extend", extend), longshore.ErrSettled)
	s.finish()
	e.holds(s.src, "after it was extended and acked")
}

func settlesOnce(e *env) {
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	e.publish(src, "a", "b")
	ds := s.take(2)
	s.ack(ds[0])
	e.must("Nack", func(ctx context.Context) error { return ds[1].Nack(ctx, 0) })
	again := s.take(1)[0]
	for _, d := range ds {
		e.wants("Ack of a settled delivery", e.do("Ack", d.Ack), longshore.ErrSettled)
		e.wants("Nack of a settled delivery", e.do("Nack", func(ctx context.Context) error { return d.Nack(ctx, 0) }), longshore.ErrSettled)
		e.wants("Reject of a settled delivery", e.do("Reject", func(ctx context.Context) error { return d.Reject(ctx, nil) }), longshore.ErrSettled)
	}
	if !again.Owned() {
		e.Errorf("the redelivered message is not owned after its earlier delivery was settled again")
	}
	s.finish()
	e.holds(src, "after one was acked and one was nacked, with more verbs after that", string(ds[1].Body))
}

func settlesOnceConcurrently(e *env) {
	s, d := e.one("contended")
	var won atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if d.Ack(context.Background()) == nil {
				won.Add(1)
			}
		})
	}
	e.must("16 concurrent acks", func(context.Context) error { all.Wait(); return nil })
	if won.Load() != 1 {
		e.Errorf("%d of 16 concurrent acks were accepted", won.Load())
	}
	s.finish()
	e.holds(s.src, "after concurrent acks")
}

func reportsFailedSettlement(e *env) {
	s, d := e.one("unlucky")
	e.h.FailSettle(e, s.src)
	func() {
		// Whoever settles may hold a lock that its observer needs: a transport must
		// not call the observer from inside a verb.
		defer s.obs.lock()()
		s.ack(d)
	}()
	if err := e.do("Flush", s.Flush); err == nil {
		e.Errorf("Flush returned nil although a settlement was refused")
	}
	e.until("Observer.SettleFailed for a refused ack", func() bool { return len(s.obs.failures(d)) > 0 })
	if got := s.obs.failures(d); len(got) != 1 || got[0].Verb != longshore.VerbAck {
		e.Errorf("reported as failed: %v, want one ack", got)
	}
	s.shut()
	e.holds(s.src, "after a refused ack", "unlucky")
}
