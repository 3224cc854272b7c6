package container

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
	"github.com/longshore-go/longshore/container/internal/state"
	"github.com/longshore-go/longshore/internal/backoff"
)

// heldClock is a clock that stands; its timers fire when a test says so.
type heldClock struct {
	now    time.Time
	timers []*heldTimer
}

type heldTimer struct {
	after time.Duration
	f     func()
	ended bool
}

func (c *heldClock) Now() time.Time { return c.now }

func (c *heldClock) AfterFunc(d time.Duration, f func()) longshore.Timer {
	t := &heldTimer{after: d, f: f}
	c.timers = append(c.timers, t)
	return t
}

func (t *heldTimer) Stop() bool { was := !t.ended; t.ended = true; return was }

// A pool whose workers rest: nothing runs, so each decision can be looked at.
func restingPool(target, most int) *pool {
	p := &pool{run: func(*worker) {}, target: target, min: 1, max: most}
	p.fill()
	p.wg.Wait()
	for _, w := range p.workers {
		p.rest(w)
	}
	return p
}

func TestPoolFillsAndSheds(t *testing.T) {
	p := restingPool(3, 10)
	if len(p.workers) != 3 || p.live != 3 || p.surplus() {
		t.Fatalf("%d workers, %d live", len(p.workers), p.live)
	}
	first := p.workers[0]
	p.target = 2
	if p.shed(); p.live != 2 || !first.retire || len(first.wake) != 1 || len(p.idle) != 2 {
		t.Errorf("the coldest worker was not retired: %d live, %d idle", p.live, len(p.idle))
	}
	p.woken(first)
	if p.remove(first); len(p.workers) != 2 || p.live != 2 {
		t.Errorf("a retired worker is counted twice: %d workers, %d live", len(p.workers), p.live)
	}
	for i, w := range p.workers {
		if w.at != i {
			t.Errorf("worker %d believes to be at %d", i, w.at)
		}
	}
	if p.remove(p.workers[1]); p.live != 1 || len(p.workers) != 1 {
		t.Errorf("a worker that ended by itself is still counted: %d live", p.live)
	}
}

func TestPoolShedsOnlyIdleWorkers(t *testing.T) {
	p := restingPool(2, 10)
	p.idle = nil
	p.target = 1
	if p.shed(); p.live != 2 || !p.surplus() {
		t.Errorf("%d live: a busy worker was taken away", p.live)
	}
}

func TestPoolWakesTheHottestOnce(t *testing.T) {
	p := restingPool(2, 10)
	hottest := p.idle[1]
	if !p.mayWake() {
		t.Fatal("no worker can be woken")
	}
	p.wakeNext()
	if len(hottest.wake) != 1 || p.mayWake() {
		t.Error("another worker was woken, or a second one could be")
	}
	if p.woken(hottest); !p.mayWake() {
		t.Error("whoever was woken cannot wake the next")
	}
	retired := &worker{retire: true}
	p.wakeNext()
	if p.woken(retired); !p.waking {
		t.Error("a retired worker used up a wake-up that is for another one")
	}
}

func TestPoolPlaces(t *testing.T) {
	for _, tc := range []struct{ target, most, standIns, replacing, want int }{
		{3, 10, 0, 0, 3},
		{3, 10, 2, 0, 5},
		{9, 10, 4, 0, 10}, // stand-ins stay within the bounds
		{9, 10, 4, 3, 13}, // replacements go beyond
		{12, 10, 1, 0, 12},
	} {
		p := pool{target: tc.target, max: tc.most, standIns: standIns{n: tc.standIns}, replacing: tc.replacing}
		if got := p.places(); got != tc.want {
			t.Errorf("%+v: %d places", tc, got)
		}
	}
}

func TestIntakePace(t *testing.T) {
	for _, tc := range []struct {
		took  time.Duration
		got   int
		want  pace
		asks  int // of 100 free places
		batch int
	}{
		{time.Microsecond, 5, paceBuffered, receiveChunk, 0},
		{time.Microsecond, 5, paceBuffered, 100, 10}, // a batch fills best at once
		{time.Microsecond, 0, paceUsual, 100, 0},
		{bufferedReceive, 5, paceUsual, 100, 0},
		{slowReceive - 1, 5, paceUsual, 100, 0},
		{slowReceive, 0, paceSlow, 100, 0},
	} {
		in := intake{by: workerReceives}
		in.end(tc.took, tc.got)
		if in.pace != tc.want || in.by != noReceiver || in.ask(100, tc.batch) != tc.asks {
			t.Errorf("%v for %d: pace %d, asks %d", tc.took, tc.got, in.pace, in.ask(100, tc.batch))
		}
		if got := in.ask(3, 0); got != 3 {
			t.Errorf("asks for %d where 3 are free", got)
		}
	}
}

func TestIntakeReceivers(t *testing.T) {
	for by, want := range map[receiving]struct{ under, fetches bool }{
		noReceiver:      {false, false},
		workerReceives:  {true, false},
		fetcherStarts:   {false, true},
		fetcherReceives: {true, true},
	} {
		g := &generation{}
		in := intake{by: by, gen: g}
		if in.under() != want.under || in.fetches() != want.fetches || in.has(g) != want.under || in.has(&generation{}) {
			t.Errorf("%d: under way %v, fetches %v", by, in.under(), in.fetches())
		}
	}
}

func TestIntakeRecallsOnce(t *testing.T) {
	g := &generation{base: context.Background()}
	g.rearm()
	in := intake{}
	ctx := in.begin(workerReceives, g)
	in.recall()
	if ctx.Err() == nil || g.ctx.Err() != nil {
		t.Fatal("the receiver was not called back, or cannot receive again")
	}
	next := g.ctx
	in.recall() // it is on its way
	if next.Err() != nil {
		t.Error("called back twice: the next Receive would end at once")
	}
	g.interrupt()
}

func TestLingerBeginsOnceAndIsOver(t *testing.T) {
	c := &heldClock{}
	l := linger{clock: c, wait: time.Second, wake: func() {}}
	arm := func() { l.follow(1) }
	if l.follow(0); len(c.timers) != 0 {
		t.Error("the time begins though nothing is ready")
	}
	arm()
	arm()
	if len(c.timers) != 1 || l.state != lingerArmed {
		t.Fatalf("%d timers, state %d", len(c.timers), l.state)
	}
	l.end(true)
	if arm(); l.state != lingerOver || len(c.timers) != 1 {
		t.Errorf("the time began again before the batch was taken: state %d", l.state)
	}
	l.refused()
	if arm(); l.state != lingerArmed || len(c.timers) != 2 {
		t.Errorf("the time does not begin when the batch may start: state %d", l.state)
	}
	l.refused()
	if l.state != lingerArmed {
		t.Error("a refusal ended a time that runs")
	}
	if l.stop(); l.state != lingerNone || !c.timers[1].ended {
		t.Error("the timer runs on")
	}
	arm()
	if l.end(false); l.state != lingerNone {
		t.Error("a batch is due though nothing is ready")
	}
}

func TestParkingFollowsTheFirstOne(t *testing.T) {
	c := &heldClock{now: time.Unix(1000, 0)}
	p := parking{clock: c, wake: func() {}}
	s := dispatch.New[item](dispatch.Limits{Bytes: 1 << 20, Retries: 10}, nil)
	var owner dispatch.Owner
	park := func(due time.Duration) {
		it := &item{}
		it.Fill(it, &owner, 1)
		s.Admit(&it.Item)
		s.Next(1, nil)
		s.Park(&it.Item, c.now.Add(due))
		p.follow(s)
	}
	if p.follow(s); p.timer != nil {
		t.Error("nothing is parked, and a timer runs")
	}
	park(2 * time.Second)
	park(3 * time.Second)
	if len(c.timers) != 1 || c.timers[0].after != 2*time.Second {
		t.Fatalf("%d timers: %+v", len(c.timers), c.timers[0])
	}
	if park(time.Second); len(c.timers) != 2 || !c.timers[0].ended || c.timers[1].after != time.Second {
		t.Errorf("the timer does not follow an earlier one")
	}
	for _, tc := range []struct {
		n      int
		full   bool
		report EventKind
	}{{10, true, EventParkingFull}, {10, true, ""}, {9, false, ""}, {10, true, ""}, {8, false, EventParkingFree}, {10, true, EventParkingFull}} {
		if got := p.note(tc.full, tc.n, 10); got != tc.report {
			t.Errorf("%+v: reports %v", tc, got)
		}
	}
}

func TestDeadMovesRunOneAtATime(t *testing.T) {
	var wg sync.WaitGroup
	runs := 0
	m := deadMoves{run: func() { runs++ }}
	if m.begin(0, &wg); m.on {
		t.Error("runs though no move is due")
	}
	m.begin(1, &wg)
	wg.Wait()
	m.begin(1, &wg)
	wg.Wait()
	if runs != 1 || !m.on {
		t.Errorf("%d goroutines, on %v", runs, m.on)
	}
	if it := m.next(dispatch.New[item](dispatch.Limits{}, nil)); it != nil || m.on {
		t.Error("goes on though no move is due")
	}
}

func TestStagesGoForward(t *testing.T) {
	g := &generation{}
	for _, s := range []stage{stageOpen, stageCanceled, stageOpen, stageExhausted, stageCanceled} {
		before := g.stage
		if g.forward(s); g.stage < before || g.stage < s {
			t.Errorf("from %d forward to %d: %d", before, s, g.stage)
		}
		if g.delivers() != (g.stage < stageExhausted) {
			t.Errorf("stage %d: delivers %v", g.stage, g.delivers())
		}
	}
	first := errors.New("first")
	if !g.fail(first) || g.fail(errors.New("second")) || !errors.Is(g.err, first) || !g.isDown() {
		t.Errorf("down with %v", g.err)
	}
	if g.forward(stageCanceled); !g.isDown() || g.delivers() {
		t.Error("a consumer at its end was cancelled back to life")
	}
}

func TestOpenedPausedUntilTheFirstResume(t *testing.T) {
	g := &generation{flow: flowBornPaused}
	if g.pause(flowPaused); !g.traits().OpenedPaused {
		t.Error("a pause made it forget how it was opened")
	}
	if g.pause(flowOn); g.flow != flowOn {
		t.Errorf("flow %d after a resume", g.flow)
	}
	if g.pause(flowPaused); g.flow != flowPaused || g.traits().OpenedPaused {
		t.Errorf("flow %d after a pause", g.flow)
	}
}

func TestSubscriptionPausesGrow(t *testing.T) {
	now := time.Unix(1000, 0)
	failure := errors.New("away")
	s := subscription{reopen: backoff.Policy{Initial: time.Second, Max: time.Minute, Multiplier: 2}}
	if !s.due(now) {
		t.Fatal("the first attempt has to wait")
	}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if got := s.failed(now, failure, 0.5); got != want || s.due(now.Add(want-1)) || !s.due(now.Add(want)) {
			t.Errorf("a pause of %v, want %v", got, want)
		}
	}
	short := &generation{id: 1, since: now, stage: stageDown, err: failure}
	s.opened(short)
	if s.lastErr != nil || s.gens != 1 {
		t.Errorf("generation %d with %v", s.gens, s.lastErr)
	}
	if got := s.lost(now.Add(steady-1), short, 0.5); got != 8*time.Second || s.gen != nil || !errors.Is(s.lastErr, failure) {
		t.Errorf("a consumer that ended soon is opened again after %v", got)
	}
	long := &generation{id: 2, since: now, stage: stageDown, err: failure}
	s.opened(long)
	s.standby = true
	end := now.Add(steady)
	if got := s.lost(end, long, 0.5); got != time.Second || s.standby || !s.downAt.Equal(end) {
		t.Errorf("after one that lasted: %v, standby %v, down at %v", got, s.standby, s.downAt)
	}
	if s.returns(now); !s.due(now) {
		t.Error("has to wait though it was not subscribed by its own wish")
	}
}

func TestOldGenerationsAreClosedWhenNothingIsOut(t *testing.T) {
	a, b := &generation{id: 1}, &generation{id: 2}
	s := subscription{gen: a, standby: true}
	if s.leave(); s.gen != nil || s.standby || s.settled() != a {
		t.Fatal("an old generation that holds nothing can be closed")
	}
	s.gen = b
	if all := s.all(); len(all) != 2 || all[0] != a || all[1] != b {
		t.Errorf("all: %v", all)
	}
	s.forget(b)
	if s.settled() != a {
		t.Error("the wrong one was forgotten")
	}
	if s.forget(a); s.settled() != nil || len(s.all()) != 1 {
		t.Error("it is closed again")
	}
}

func TestStayEndsBeforeTheLease(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tc := range []struct {
		waits time.Duration // how long the oldest one has waited
		busy  bool
		want  time.Duration
	}{
		{0, false, 24 * time.Second},
		{10 * time.Second, true, 14 * time.Second},
		{24 * time.Second, true, time.Second}, // until nothing runs
		{24 * time.Second, false, 0},
		{time.Hour, false, 0},
	} {
		if got := stayFor(now, now.Add(-tc.waits), 24*time.Second, tc.busy); got != tc.want {
			t.Errorf("%+v: looks again in %v", tc, got)
		}
	}
}

func TestHoldReasonsAreLiftedByTheirWatcher(t *testing.T) {
	var h holdReasons
	now, later := time.Unix(1000, 0), time.Unix(2000, 0)
	if h.lift(0) || h.any() || !h.set(1, "b: away", now) || h.set(1, "b: still", later) || !h.set(0, "a: away", later) {
		t.Error("a hold was counted twice, or not at all")
	}
	if got := h.text(); got != "a: away, b: away" || !h.since.Equal(now) {
		t.Errorf("reasons %q since %v", got, h.since)
	}
	if !h.lift(1) || h.lift(1) || !h.any() || h.text() != "a: away" {
		t.Errorf("after one is lifted: %q", h.text())
	}
}

func TestStartIsDecidedOnce(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	s := startup{done: make(chan struct{})}
	s.fail(first)
	if s.isDecided() {
		t.Error("a failure decides the start before the run has ended")
	}
	s.decide(second)
	s.decide(nil)
	if !s.isDecided() || !errors.Is(s.err, first) {
		t.Errorf("decided with %v", s.err)
	}
}

// What holds keeps a consumer paused in the transport: the axes and the traits decide,
// and a consumer that is down wants nothing.
func TestTraitsOfAConsumer(t *testing.T) {
	for _, tc := range []struct {
		caps longshore.Capabilities
		want state.Traits
	}{
		{longshore.Capabilities{}, state.Traits{}},
		{longshore.Capabilities{KeepsPlace: true}, state.Traits{KeepsPlace: true}},
		{longshore.Capabilities{LiveResize: true}, state.Traits{ThrottlePauses: true}},
		{longshore.Capabilities{LiveResize: true, MaxLease: time.Minute}, state.Traits{}}, // what a poll brings is kept
	} {
		if got := (&generation{caps: tc.caps}).traits(); got != tc.want {
			t.Errorf("%+v: %+v", tc.caps, got)
		}
	}
}
