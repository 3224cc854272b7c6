package container

import (
	"math"

	"github.com/longshore-go/longshore/container/internal/state"
)

// gateState is what the gate said last; guarded by engine.mu.
type gateState struct {
	seen    bool
	permits int
	rate    float64
}

// followGate lets the intake follow new limits: a Receive that was asked for more
// comes back, the broker's window is to be moved, and fetching stops while nothing
// may start. The caller holds mu.
func (r *dispatcher) followGate() {
	permits, rate := r.s.gate.Limits()
	now := gateState{true, permits, rate}
	if r.gateNow == now {
		return
	}
	r.gateNow = now
	r.axes.Holds = r.axes.Holds.With(state.Throttle, permits == 0 || rate == 0)
	if r.intake.under() {
		r.intake.recall()
	}
	r.resizeDue = true
	r.wake()
}

// gateRoom keeps what cannot start soon at the broker: its lease does not run
// there.
func (r *dispatcher) gateRoom(held int) int {
	permits, rate := r.s.gate.Limits()
	return r.gateWindow(gateState{true, permits, rate}, r.sched.Active()) - held
}

// gateWindow is how much is worth holding under a gate while so many run. A permit
// is for one call, which may be a batch.
func (r *dispatcher) gateWindow(g gateState, running int) int {
	window, perCall := math.MaxInt32, max(r.s.batch, 1)
	if g.permits >= 0 && g.permits <= maxWorkers {
		window = (g.permits + min(g.permits, minLookahead)) * perCall
	}
	if g.rate >= 0 {
		window = min(window, int(min(math.Ceil(g.rate), 1e6))*perCall+running)
	}
	return window
}

// Throttle returns Config.Throttle; nil: none.
func (c *ListenerContainer) Throttle() Gate { return c.set.gate }
