package lifecycle

import (
	"context"
	"time"
)

// Component is a part of a service. Start returns when the part works, or with
// an error after it has cleaned up behind itself; Stop returns when everything of
// it has ended. Both obey their context, and keep it no longer than the call: that of
// Start ends when all have started. Stop must be harmless on a component that never
// started or was stopped before.
//
// A component may also implement [Phaser], [Budgeter] and [Reporter].
type Component interface {
	Name() string
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// The phases. Lower ones start first and stop last; the same phase runs in
// parallel. Any number between them is a phase too.
const (
	PhasePools      = 0    // database pools, connections
	PhasePublishers = 100  // what handlers publish through
	PhaseRelays     = 200  // outbox relays
	PhaseAdmin      = 300  // admin and health servers
	PhaseContainers = 1000 // also the phase of a component that names none
)

// Phaser is a component with a phase of its own.
type Phaser interface {
	Phase() int
}

// Budgeter is a component that knows how long its Stop can take. Without it the
// budget is 1 s.
type Budgeter interface {
	StopBudget() time.Duration
}

// Reporter is a component that can say in one line how its last Stop went.
type Reporter interface {
	DrainReport() string
}

// DeadLetterRouter is a component that consumes from places and sends dead letters to
// another one. Places are compared as texts. [New] and [Manager.Add] refuse components whose
// dead letters go round.
type DeadLetterRouter interface {
	DeadLetterRoute() (from []string, to string)
}

// DeadLetterRouters is a component of several that each have a route of their own: each is
// called with them.
type DeadLetterRouters interface {
	DeadLetterRoutes(each func(name string, from []string, to string))
}

// defaultBudget is for components that only close something.
const defaultBudget = time.Second

func phaseOf(c Component) int {
	if p, ok := c.(Phaser); ok {
		return p.Phase()
	}
	return PhaseContainers
}

func budgetOf(c Component) time.Duration {
	if b, ok := c.(Budgeter); ok {
		return b.StopBudget()
	}
	return defaultBudget
}

// Hook makes a component of two functions; nil does nothing.
func Hook(name string, phase int, start, stop func(context.Context) error) Component {
	return &hook{name: name, phase: phase, start: start, stop: stop}
}

type hook struct {
	name        string                      // in errors and the log
	phase       int                         // when it starts and stops among the others
	start, stop func(context.Context) error // the user's functions; nil: nothing to do
}

func (h *hook) Name() string { return h.name }
func (h *hook) Phase() int   { return h.phase }

func (h *hook) Start(ctx context.Context) error {
	if h.start == nil {
		return nil
	}
	return h.start(ctx)
}

func (h *hook) Stop(ctx context.Context) error {
	if h.stop == nil {
		return nil
	}
	return h.stop(ctx)
}
