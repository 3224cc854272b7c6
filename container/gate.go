package container

import (
	"math"

	"github.com/longshore-go/longshore"
)

// gatekeeper asks the configured [Gate] for permits and remembers its answers. Guarded
// by guard.mu; the Gate itself may be called with or without it.
type gatekeeper struct {
	gate   Gate            // nil: nothing is throttled
	clock  longshore.Clock // wakes us when the gate said to ask again
	batch  int             // deliveries in a call: a permit is for one call
	opened func()          // called, without the lock, when the gate may have another answer
	doubts func() bool     // whether a middleware lets only a few through, to find out if the rest may follow

	shut   bool            // it refused a permit, and is not asked before it reports a change
	limits gateLimits      // what it reported last, which the broker's window follows
	again  longshore.Timer // until it may be asked again; nil: it will report a change itself
}

// gateLimits is what a gate reports of itself; negative is no limit.
type gateLimits struct {
	known   bool    // something was reported
	permits int     // calls at the same time
	rate    float64 // starts a second
}

// holdsAll reports that no call may start at all.
func (l gateLimits) holdsAll() bool { return l.permits == 0 || l.rate == 0 }

// window is how many deliveries are worth holding under the limits while so many calls
// run: what cannot start soon waits better at the broker, where its lease does not run.
func (l gateLimits) window(batch, running int) int {
	window, perCall := math.MaxInt32, max(batch, 1)
	if l.permits >= 0 && l.permits <= maxWorkers {
		window = (l.permits + min(l.permits, minLookahead)) * perCall
	}
	if l.rate >= 0 {
		window = min(window, int(min(math.Ceil(l.rate), 1e6))*perCall+running)
	}
	return window
}

func newGatekeeper(s *settings) gatekeeper {
	return gatekeeper{gate: s.gate, clock: s.clock, batch: s.batch, opened: func() {}, doubts: func() bool { return false }}
}

// admit reports whether the item may start. If there is no permit, the gate is asked
// again when it said so.
func (g *gatekeeper) admit(it *item) bool {
	if g.gate == nil || it.permit {
		return true
	}
	now := g.clock.Now()
	ok, again := g.gate.TryAcquire(now)
	if ok {
		it.permit = true
		return true
	}
	g.shut = true
	g.stopTimer()
	if !again.IsZero() {
		g.again = g.clock.AfterFunc(max(again.Sub(now), 0), g.opened)
	}
	return false
}

// release gives the item's permit back. It needs no lock.
func (g *gatekeeper) release(it *item) {
	if it.permit {
		it.permit = false
		g.gate.Release()
	}
}

// follow reads the limits and reports whether they have changed.
func (g *gatekeeper) follow() (changed bool) {
	now := g.read()
	changed = now != g.limits
	g.limits = now
	return changed
}

func (g *gatekeeper) read() gateLimits {
	permits, rate := g.gate.Limits()
	return gateLimits{true, permits, rate}
}

// room is how many more deliveries may be received while so many are held and run.
func (g *gatekeeper) room(free, held, running int) int {
	if g.gate == nil {
		return free
	}
	return min(free, g.read().window(g.batch, running)-held)
}

// narrow limits the broker's window to what the gate lets so many workers start.
func (g *gatekeeper) narrow(window, workers int) int {
	if !g.limits.known {
		return window
	}
	return max(min(window, g.limits.window(g.batch, workers)), 1)
}

func (g *gatekeeper) stopTimer() {
	if g.again != nil {
		g.again.Stop()
		g.again = nil
	}
}

// watch calls opened after each change of the gate. The gate may report one with its own
// lock held and is asked with ours held, so a goroutine stands between the two.
func (g *gatekeeper) watch() (stop func()) {
	if g.gate == nil {
		return func() {}
	}
	kick, quit, gone := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	unwatch := g.gate.Watch(func() {
		select {
		case kick <- struct{}{}:
		default:
		}
	})
	g.opened()
	go func() {
		defer close(gone)
		for {
			select {
			case <-kick:
				g.opened()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		unwatch()
		close(quit)
		<-gone
	}
}

// Throttle returns Config.Throttle; nil: none.
func (c *ListenerContainer) Throttle() Gate { return c.set.gate }
