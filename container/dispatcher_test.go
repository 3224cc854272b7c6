package container

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// restingDispatcher is a dispatcher with an open consumer and workers that rest, in which nothing
// moves by itself: each of its decisions can be looked at.
func restingDispatcher(workers int) *dispatcher {
	s := &settings{name: "q", clock: &heldClock{now: time.Unix(1000, 0)}, maxBytes: 1 << 20, parked: 10, attempts: 1, order: Unordered}
	d := newDispatcher(&eventLog{reporter: reporter{nil, s.clock}, s: s}, Workers{1, 10})
	d.hand.pool.run = func(*worker) {}
	d.hand.intake.fetch = func() {}
	d.hand.pool.target = workers
	d.hand.pool.fill()
	d.hand.pool.wg.Wait()
	for _, w := range d.hand.pool.workers {
		d.hand.pool.rest(w)
	}
	g := &generation{id: 1, base: context.Background()}
	g.rearm()
	d.sub.opened(g)
	d.axes.Sub = state.Open
	return d
}

// fill lets a dispatcher hold so many deliveries that could start.
func fill(d *dispatcher, n int) {
	ds := make([]*longshore.Delivery, n)
	for i := range ds {
		ds[i] = &longshore.Delivery{Message: longshore.Message{Body: []byte("x")}}
	}
	receiverOf(d).accept(d.sub.gen, ds, nil)
}

// receiverOf is the receiver of a dispatcher without a run.
func receiverOf(d *dispatcher) *receiver {
	return &receiver{d.common, &d.axes, &d.sub, &d.hand, &d.held, &d.count, &d.load.cycles, nil, newDeadLetters(d.s, nil, nil)}
}

// Who is woken: at most one at a time, the one that costs least.
func TestWakeOne(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(*dispatcher)
		ready,
		idle int
		woken, recalled, fetches bool
	}{
		{name: "an idle worker has work", ready: 1, idle: 2, woken: true},
		{name: "an idle worker may receive", idle: 1, woken: true},
		{name: "someone receives already", idle: 1, set: func(d *dispatcher) { d.hand.intake.begin(fetcherReceives, d.sub.gen) }},
		{name: "a fetcher is about to", idle: 1, set: func(d *dispatcher) { d.hand.intake.by = fetcherStarts }},
		{name: "a wake-up is under way", ready: 1, idle: 2, set: func(d *dispatcher) { d.hand.pool.waking = true }},
		{name: "a middleware holds", ready: 1, idle: 2, set: func(d *dispatcher) { d.axes.Holds = state.Middleware }},
		{name: "paused: what is here is worked off", ready: 1, idle: 2, set: func(d *dispatcher) { d.axes.Holds = state.Operator }, woken: true},
		{name: "paused and nothing is here", idle: 2, set: func(d *dispatcher) { d.axes.Holds = state.Operator }},
		{name: "only returns are left", ready: 1, idle: 2, set: func(d *dispatcher) { d.axes.Stop = state.ReturnOnly }},
		{name: "the run closes", idle: 2, set: func(d *dispatcher) { d.axes.Stop = state.Closing }, woken: true},
		{name: "the receiver is called to work", ready: 1, set: func(d *dispatcher) { d.hand.intake.begin(workerReceives, d.sub.gen) }, recalled: true},
		{name: "there is none for it", set: func(d *dispatcher) { d.hand.intake.begin(workerReceives, d.sub.gen) }},
		{name: "a fetcher is not called to work", ready: 1, set: func(d *dispatcher) { d.hand.intake.begin(fetcherReceives, d.sub.gen) }},
		{name: "all are busy and receives are slow", set: func(d *dispatcher) { d.hand.intake.pace = paceSlow }, fetches: true},
		{name: "all are busy and receives are quick"},
		{name: "slow, but the window is nearly full", ready: 4, set: func(d *dispatcher) { d.hand.intake.pace, d.s.look = paceSlow, 3; d.axes.Holds = state.Operator }},
		{name: "slow, but nothing more comes", set: func(d *dispatcher) { d.hand.intake.pace = paceSlow; d.sub.gen.forward(stageExhausted) }},
		{name: "slow, but there are no workers", set: func(d *dispatcher) { d.hand.intake.pace, d.hand.pool.live = paceSlow, 0 }},
	} {
		d := restingDispatcher(max(tc.idle, 1))
		if tc.idle == 0 {
			d.hand.pool.idle = nil
		}
		fill(d, tc.ready)
		if tc.set != nil {
			tc.set(d)
		}
		idle, ctx := len(d.hand.pool.idle), d.sub.gen.ctx
		was := d.hand.intake.by
		d.hand.wakeOne()
		d.hand.pool.wg.Wait()
		if got := len(d.hand.pool.idle) < idle; got != tc.woken {
			t.Errorf("%s: woken %v", tc.name, got)
		}
		if got := ctx.Err() != nil; got != tc.recalled {
			t.Errorf("%s: recalled %v", tc.name, got)
		}
		if got := was != fetcherStarts && d.hand.intake.by == fetcherStarts; got != tc.fetches {
			t.Errorf("%s: fetches %v", tc.name, got)
		}
	}
}

// What becomes of a consumer whose Receive brings nothing.
func TestReceiveBringsNothing(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name        string
		stage       stage
		err         error
		interrupted bool
		want        stage
		code        longshore.Code
	}{
		{name: "interrupted by us", err: context.Canceled, interrupted: true, want: stageOpen},
		{name: "cancelled by the broker", err: longshore.ErrCanceled, want: stageDown, code: longshore.CodeCanceledBy},
		{name: "cancelled by the broker while we interrupted", err: longshore.ErrCanceled, interrupted: true, want: stageDown, code: longshore.CodeCanceledBy},
		{name: "cancelled by us, and empty", stage: stageCanceled, err: longshore.ErrCanceled, want: stageExhausted},
		{name: "still empty", stage: stageExhausted, err: longshore.ErrCanceled, want: stageExhausted},
		{name: "down and cancelled", stage: stageDown, err: longshore.ErrCanceled, want: stageDown},
		{name: "an error", err: broken, want: stageDown},
		{name: "an error after Cancel", stage: stageCanceled, err: broken, want: stageDown},
		{name: "neither a delivery nor an error", want: stageDown, code: longshore.CodeInternal},
	} {
		d := restingDispatcher(1)
		g := d.sub.gen
		g.stage = tc.stage
		ctx := g.ctx
		if tc.interrupted {
			g.interrupt()
		}
		receiverOf(d).ended(ctx, g, tc.err)
		if g.stage != tc.want {
			t.Errorf("%s: stage %d, want %d", tc.name, g.stage, tc.want)
		}
		if tc.code != "" && !errors.Is(g.err, tc.code) {
			t.Errorf("%s: down with %v", tc.name, g.err)
		}
		if lost := d.axes.Sub == state.Lost; lost != (tc.stage < stageDown && tc.want == stageDown) {
			t.Errorf("%s: lost %v", tc.name, lost)
		}
		if len(d.kick) != 1 {
			t.Errorf("%s: the supervisor is not woken", tc.name)
		}
		g.interrupt()
	}
}

// A report about an earlier consumer does not end the subscription that is in use.
func TestDownOfAnEarlierConsumer(t *testing.T) {
	d := restingDispatcher(1)
	old := d.sub.gen
	d.sub.leave()
	d.sub.opened(&generation{id: 2})
	if receiverOf(d).markDown(old, errors.New("late")); d.axes.Sub != state.Open || !old.isDown() {
		t.Errorf("subscription %v", d.axes.Sub)
	}
	if receiverOf(d).markDown(d.sub.gen, errors.New("now")); d.axes.Sub != state.Lost {
		t.Errorf("subscription %v", d.axes.Sub)
	}
	old.interrupt()
}
