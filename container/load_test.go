package container

import (
	"math"
	"testing"
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

func start0() time.Time { return time.Unix(1_000_000, 0) }

// A call counts in each tick for the part of it that lies there.
func TestWorkloadSplitsCallsAmongTicks(t *testing.T) {
	t0 := start0()
	l := workload{since: t0}
	w := &worker{}
	w.busy.Store(t0.Add(200 * time.Millisecond).UnixNano())
	s := l.close(t0.Add(500*time.Millisecond), []*worker{w}, 1)
	if s.Busy != 1 || math.Abs(s.BusySec-0.3) > 1e-9 || s.Completed != 0 {
		t.Errorf("%+v", s)
	}
	end := t0.Add(600 * time.Millisecond)
	l.completed++
	l.ended(w.busy.Swap(0), end, lnSeconds(400*time.Millisecond), true)
	l.queued(3, 4)
	l.queued(1, 4)
	s = l.close(t0.Add(time.Second), []*worker{w}, 1)
	if s.Busy != 0 || math.Abs(s.BusySec-0.1) > 1e-9 || s.Completed != 1 || s.Execs != 1 || s.Failed != 1 || s.FullFrac != 0.5 || s.Dt != 500*time.Millisecond {
		t.Errorf("%+v", s)
	}
	if math.Abs(l.capacity-0.2) > 1e-9 || math.Abs(l.latency-0.1) > 1e-9 || !l.hotSince.IsZero() || l.completed != 0 {
		t.Errorf("%+v", l)
	}
}

// What a handler spends in Delivery.Wait is neither busy nor latency, and a hung call is no
// demand.
func TestWorkloadLeavesWaitingAndHungCallsOut(t *testing.T) {
	t0 := start0()
	l := workload{since: t0}
	waits, hangs := &worker{waits: 1, waitAt: t0.Add(100 * time.Millisecond)}, &worker{hung: true}
	waits.busy.Store(t0.UnixNano())
	hangs.busy.Store(t0.UnixNano())
	s := l.close(t0.Add(500*time.Millisecond), []*worker{waits, hangs}, 2)
	if s.Busy != 0 || math.Abs(s.BusySec-0.1) > 1e-9 {
		t.Errorf("%+v", s)
	}
	if l.hungAfter() != oldCall {
		t.Errorf("nothing has ended, and a call hangs after %v", l.hungAfter())
	}
	l.latency = 0.01
	if l.hungAfter() != hungMin {
		t.Errorf("short calls hang after %v", l.hungAfter())
	}
	l.latency = 2
	if l.hungAfter() != hungTimes*2*time.Second {
		t.Errorf("long calls hang after %v", l.hungAfter())
	}
}

func TestWorkersThatAreBusyForLong(t *testing.T) {
	t0 := start0()
	l, w := workload{since: t0}, &worker{}
	w.busy.Store(t0.UnixNano())
	for i := range 3 {
		l.close(t0.Add(time.Duration(i+1)*time.Second), []*worker{w}, 1)
	}
	if l.capacity != 1 || !l.hotSince.Equal(t0.Add(time.Second)) {
		t.Errorf("%+v", l)
	}
	b := backlog{asked: t0}
	if b.due(t0.Add(backlogSoon), time.Time{}) || !b.due(t0.Add(backlogSoon), l.hotSince) || !b.due(t0.Add(backlogEvery), time.Time{}) {
		t.Error("when the backlog is read does not follow how busy the workers are")
	}
	if !b.waits() { // not known
		t.Error("nothing waits, and nothing is known")
	}
	if b.at = t0; b.waits() {
		t.Error("something waits in an empty queue")
	}
	if b.buffered = 1; !b.waits() {
		t.Error("what is buffered does not wait")
	}
}

func TestLookaheadGrowsAtOnceAndShrinksLate(t *testing.T) {
	t0 := start0()
	var a lookahead
	if a.received(20, 20, 2*time.Millisecond) || !a.received(20, 1, 2*time.Millisecond) || a.received(20, 20, 10*time.Microsecond) {
		t.Error("a receive that found much waited for work, or one that found little did not")
	}
	if a.adjust(t0, 0.002); a.extra != 1 {
		t.Errorf("receives take as long as handlers: %v", a.extra)
	}
	if a.adjust(t0.Add(extraFor), 0.002); a.extra != 1 {
		t.Errorf("shrunk at once: %v", a.extra)
	}
	if a.adjust(t0.Add(extraFor+time.Second), 0.002); a.extra != 0 {
		t.Errorf("not shrunk: %v", a.extra)
	}
}

func TestOneHugeMessageTakesNoWorkerAway(t *testing.T) {
	t0 := start0()
	var f fitting
	for _, row := range []struct {
		after     time.Duration
		fit, want int
	}{{0, 8, 8}, {time.Second, 2, 8}, {fitsFor, 2, 8}, {fitsFor + time.Second, 2, 2}, {fitsFor + 2*time.Second, 10, -1}} {
		if got := f.limit(t0.Add(row.after), row.fit, 10); got != row.want {
			t.Errorf("after %v with room for %d: %d, want %d", row.after, row.fit, got, row.want)
		}
	}
}

func TestCyclesTrip(t *testing.T) {
	t0 := start0()
	c := cycles{of: &autoscale.Cycles{Active: 2, Idle: 3, Wait: time.Second}}
	w := &worker{}
	now := func() time.Time { return t0 }
	for range 4 {
		c.begins(w, now)
		c.ends(w, now)
	}
	if active, idle := c.tripped(t0, time.Second, 2, false); active != 1 || idle != 0 {
		t.Errorf("%d active, %d idle", active, idle)
	}
	if _, idle := c.tripped(t0.Add(4*time.Second), 4*time.Second, 2, true); idle != 0 {
		t.Errorf("%d idle while nothing may start", idle)
	}
	if _, idle := c.tripped(t0.Add(9*time.Second), 5*time.Second, 2, false); idle != 2 {
		t.Errorf("%d idle", idle)
	}
}

func TestCapacityBelongsToASubscription(t *testing.T) {
	var c capacity
	g := &generation{id: 1}
	if c.shareOf(g, true) != 1 || c.shareOf(g, false) != 0 || c.shareOf(nil, false) != 0 {
		t.Error("a new subscription is judged by the moment")
	}
	for i := range 4 {
		c.note(1, i%2 == 0)
	}
	if got := c.shareOf(g, false); got != 0.5 {
		t.Errorf("%v", got)
	}
	if c.note(2, true); c.share != 1 {
		t.Errorf("a new subscription begins with %v", c.share)
	}
}

// Looking at the workers: pure, by what each shows.
func TestCallsSeen(t *testing.T) {
	now := start0()
	at := func(age time.Duration, w *worker) *worker {
		if age > 0 {
			w.busy.Store(now.Add(-age).UnixNano())
		}
		return w
	}
	old := at(time.Minute, &worker{})
	seen := seeCalls([]*worker{at(0, &worker{}), at(time.Second, &worker{}), at(time.Hour, &worker{waits: 1}), old, at(30*time.Second, &worker{stuck: true})}, now, 20*time.Second)
	if seen.running != 4 || seen.stuck != 1 || seen.old != 3 || seen.overdue != 2 || seen.w != old || !seen.oldest.Since.Equal(now.Add(-time.Minute)) || !seen.stuckSince.Equal(now.Add(-30*time.Second)) {
		t.Errorf("%+v", seen)
	}
}
