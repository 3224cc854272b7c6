package container

import "github.com/longshore-go/longshore/container/internal/state"

// AxesOf is where the container's current or last run stands; the simulation counts
// which transitions it made.
func AxesOf(c *ListenerContainer) (axes state.Axes, ok bool) {
	r := c.current()
	if r == nil {
		return state.Axes{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.axes.Axes, true
}

// CheckSums counts everything again that the container counts as it goes.
func CheckSums(c *ListenerContainer) error {
	r := c.current()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held.sched.Check()
}
