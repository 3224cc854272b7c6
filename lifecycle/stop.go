package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
)

type stopping struct {
	done chan struct{} // closed at its end, for later calls of Stop
	err  error         // what every call of Stop returns; read after done is closed
}

// Stop stops the phases in descending order within StopTimeout, or ctx's
// deadline if that is earlier; a ctx that is cancelled ends the waiting for what
// runs. If there is less time than the budgets of all phases, they share it in
// proportion, and what a phase does not use goes to those after it. A phase that takes
// too long does not keep the others from being stopped, and
// neither does a component that ignores its context: it is left behind a second later (2.5 s
// where ctx was cancelled), and the error says so. Containers stop in two steps of their own: DrainTimeout for what
// runs, then CancelGrace to cancel, flush and close. A second Stop waits for the first and returns the
// same; on a manager that never started it does nothing. A Start or Add that runs is ended, and
// undoes itself.
func (m *Manager) Stop(ctx context.Context) error { return m.stopBy(ctx, time.Time{}) }

// stopBy is Stop that returns before an end, whoever ignores what; zero: a second behind
// its time for each of them.
func (m *Manager) stopBy(ctx context.Context, doneBy time.Time) error {
	m.mu.Lock()
	for m.starting != nil {
		s := m.starting
		m.mu.Unlock()
		s.cancel()
		select {
		case <-s.done:
		case <-ctx.Done():
			return fmt.Errorf("stop: the start that runs has not ended and undone itself yet; stop again: %w", ctx.Err())
		}
		m.mu.Lock()
	}
	if m.stop != nil {
		s := m.stop
		m.mu.Unlock()
		select {
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !m.started {
		m.mu.Unlock()
		return nil
	}
	s := &stopping{done: make(chan struct{})}
	m.stop, m.started = s, false
	live, limit := m.live, m.stopTimeout
	m.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < limit-time.Second {
		m.log.Warn("stop has less time than StopTimeout, the drain is cut short",
			zap.Duration("have", time.Until(deadline)), zap.Duration("need", limit))
	}
	s.err = m.stopPhases(ctx, live, doneBy)
	close(s.done)
	return s.err
}

// stoppingLocked refuses a component that comes while the manager stops.
func (m *Manager) stoppingLocked(c Component) error {
	if m.stop == nil {
		return nil
	}
	select {
	case <-m.stop.done: // a later Start begins a new run
		return nil
	default:
	}
	return &longshore.Error{Code: longshore.CodeState, Source: c.Name(), Op: fmt.Sprintf("start %q", c.Name()),
		Err: errors.New("the manager stops"), Hint: "add it before Stop, or after the next Start"}
}

func (m *Manager) stopPhases(ctx context.Context, live []Component, doneBy time.Time) error {
	end, _ := ctx.Deadline()
	phases := groupByPhase(live)
	var errs []error
	for i := len(phases) - 1; i >= 0; i-- {
		least, patience, last := leastPhase, obey, end
		if !doneBy.IsZero() { // then even components that ignore their contexts end before it
			part := time.Until(doneBy) / time.Duration(2*(i+1))
			least, patience = min(least, part), min(patience, part/4)
			if late := doneBy.Add(-patience); late.Before(last) {
				last = late
			}
		}
		later := make([]time.Duration, i)
		for j, p := range phases[:i] {
			later[j] = max(p.budget, least)
		}
		own := share(time.Until(last), max(phases[i].budget, least), later)
		errs = append(errs, m.stopWithin(ctx, phases[i].parts, max(own, least), patience))
	}
	return errors.Join(errs...)
}

// stopWithin stops one phase by a deadline of its own, never that of ctx
// else; a cancel of ctx is obeyed.
func (m *Manager) stopWithin(ctx context.Context, parts []Component, own, patience time.Duration) error {
	phase, cancel := context.WithTimeout(context.WithoutCancel(ctx), own)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) { // the deadline has its own bounds
			cancel()
		}
	})()
	return m.stopPhase(phase, parts, patience)
}

// stopPhase stops in two steps: the components' own Stop, each bounded by its own
// budget and all by ctx; then, for one that does not obey, an end of the waiting, so that
// what comes after is stopped anyway.
func (m *Manager) stopPhase(ctx context.Context, parts []Component, patience time.Duration) error {
	errs := callAll(ctx, parts, func(why error) time.Duration {
		if errors.Is(why, context.Canceled) {
			return obeyCancel
		}
		return patience
	}, Component.Stop, nil)
	for i, err := range errs {
		if err != nil {
			errs[i] = fmt.Errorf("stop %q: %w", parts[i].Name(), err)
			m.log.Error("component did not stop cleanly", failure(parts[i], err)...)
		}
	}
	return errors.Join(errs...)
}

func named(parts []Component, name string) Component {
	if i := slices.IndexFunc(parts, func(c Component) bool { return c.Name() == name }); i >= 0 {
		return parts[i]
	}
	return nil
}

func without(parts []Component, name string) []Component {
	return slices.DeleteFunc(slices.Clone(parts), func(c Component) bool { return c.Name() == name })
}
