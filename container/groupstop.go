package container

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// groupStop is a stop in two steps: one drain of all containers, which two calls wait for.
type groupStop struct {
	cut  context.CancelFunc // ends the waiting for handlers
	over chan struct{}      // closed when all containers have ended
	err  error              // of the containers; read after over is closed
}

// UnfinishedError is what the first step of a stop in two steps returns if handlers still run.
// Nothing is lost by it: the second step waits for them. A lifecycle.Manager counts it as a
// component that did not stop in its time.
type UnfinishedError struct {
	Group string         // its name
	Step  time.Duration  // how long the step has waited
	Busy  map[string]int // handlers that run, by container
	order []string       // of the containers
}

// Error names the sources whose handlers still run.
func (e *UnfinishedError) Error() string {
	var parts []string
	for _, name := range e.order {
		if n := e.Busy[name]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, name))
		}
	}
	running := strings.Join(parts, ", ")
	if running == "" {
		running = "settlements"
	}
	return fmt.Sprintf("stop group %q: the first of two steps was over after %v; not finished: %s", e.Group, round(e.Step), running)
}

// Stop drains all of them at once: in one step as ListenerContainer.Stop does, or with
// GroupConfig.TwoSteps only until DrainTimeout is over. It returns an *UnfinishedError then if
// handlers still run, and Destroy waits for those. A ctx that is cancelled ends the waiting
// for handlers.
func (g *Group) Stop(ctx context.Context) error {
	if g.step == 0 {
		err := g.each(func(c *ListenerContainer) error { return c.Stop(ctx) })
		g.locked(func() { g.report = g.drained() })
		return err
	}
	began := g.clock.Now()
	s := g.beginStop() //nolint:contextcheck // both steps wait for one drain
	late, done := after(g.clock, g.step)
	defer done()
	select {
	case <-s.over:
		g.locked(func() { g.report = "first of two steps: " + g.drained() })
		return s.err
	case <-late:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			s.cut()
		}
	}
	err := &UnfinishedError{Group: g.name, Step: g.clock.Now().Sub(began), Busy: map[string]int{}, order: g.Names()}
	for _, c := range g.all {
		n := c.Stats().Busy
		err.Busy[c.Name()] = n
		if n > 0 {
			reporter{c.hub, g.clock}.notice(nil, fmt.Sprintf("the first of two steps of the stop is over after %v: %d handlers still run", round(err.Step), n))
		}
	}
	g.locked(func() { g.report = err.Error() })
	return err
}

// Destroy is the second step: it waits until all of them have ended, which they have twice
// DrainTimeout, and CancelGrace, after Stop began, or Destroy where no Stop came before. A source
// that was started again meanwhile is stopped too. Without TwoSteps it does what Stop does.
func (g *Group) Destroy(ctx context.Context) error {
	if g.step == 0 {
		return g.Stop(ctx)
	}
	s := g.beginStop() //nolint:contextcheck // both steps wait for one drain
	err := s.wait(ctx)
	if again := g.beginStop(); again != s { //nolint:contextcheck // as above
		err = errors.Join(err, again.wait(ctx))
	}
	g.locked(func() { g.report = "second of two steps: " + g.drained() })
	return err
}

// wait waits for the end of the drain, for handlers as long as ctx allows.
func (s *groupStop) wait(ctx context.Context) error {
	select {
	case <-s.over:
	case <-ctx.Done():
		s.cut()
		<-s.over
	}
	return s.err
}

// beginStop begins the drain of all of them, once. A source that was started again after a stop
// makes it a new one.
func (g *Group) beginStop() *groupStop {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending != nil && (g.ending.lasts() || g.stopped()) {
		return g.ending
	}
	ctx, cut := context.WithCancel(context.Background())
	s := &groupStop{cut: cut, over: make(chan struct{})}
	go func() { // Destroy waits for it
		defer cut()
		s.err = g.each(func(c *ListenerContainer) error { return c.Stop(ctx) })
		close(s.over)
	}()
	g.ending = s
	return s
}

// lasts reports whether the drain is not over.
func (s *groupStop) lasts() bool {
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

// stopped reports whether all of them have ended, or never began.
func (g *Group) stopped() bool {
	return !slices.ContainsFunc(g.all, func(c *ListenerContainer) bool { s := c.State(); return s != StateStopped && s != StateNew })
}

// drained joins the reports of all of them.
func (g *Group) drained() string {
	parts := make([]string, len(g.all))
	for i, c := range g.all {
		parts[i] = c.Name() + " " + c.DrainReport()
	}
	return strings.Join(parts, "; ")
}

// Destroyer is the second step of a group's stop as a component of package lifecycle: in a
// phase below that of the group it runs after everything between them has stopped.
type Destroyer struct {
	g     *Group // whose second step it is
	phase int    // of it
}

// Destroyer makes the second step a component of a phase.
func (g *Group) Destroyer(phase int) *Destroyer { return &Destroyer{g, phase} }

// Name says whose second step it is.
func (d *Destroyer) Name() string { return d.g.name + " (second step)" }

// Phase returns the phase given to Group.Destroyer.
func (d *Destroyer) Phase() int { return d.phase }

// Start does nothing.
func (*Destroyer) Start(context.Context) error { return nil }

// Stop is Group.Destroy.
func (d *Destroyer) Stop(ctx context.Context) error { return d.g.Destroy(ctx) }

// StopBudget is the longest time that the second step takes.
func (d *Destroyer) StopBudget() time.Duration { return d.g.step + d.g.grace }

// DrainReport says how the second step went.
func (d *Destroyer) DrainReport() string { return d.g.DrainReport() }
