package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// undoing bounds the undoing of a start that failed or was interrupted.
type undoing struct {
	by   time.Time       // zero: StopTimeout after the failure
	rush context.Context //nolint:containedctx // a cancel ends the waiting for what runs, as that of Stop does; nil: never
	keep func() bool     // leaves what an interrupted start had started to Stop; nil: never
}

// startError is a start that did not succeed, with how undoing it went.
type startError struct {
	cause error // why, naming the components
	undo  error // what undoing it left behind

	interrupted bool // the caller ended it, and no component failed
	kept        bool // nothing was undone, Stop has to
}

// Error names the component that failed, and what is left behind.
func (e *startError) Error() string {
	if e.undo == nil {
		return e.cause.Error()
	}
	return fmt.Sprintf("%v\nand undoing the start left something behind: %v", e.cause, e.undo)
}

// Unwrap returns both errors, the cause first.
func (e *startError) Unwrap() []error {
	if e.undo == nil {
		return []error{e.cause}
	}
	return []error{e.cause, e.undo}
}

// Start starts the phases in ascending order and returns when all components
// work. The first component that fails ends the start: the others of its phase are
// cancelled, everything that had started is stopped again, and the error names the
// component. The same happens if ctx ends or Stop is called. A Start while started does
// nothing. A component that ignores its context is left behind after its end, as by Stop.
func (m *Manager) Start(ctx context.Context) error { return m.start(ctx, undoing{}) }

func (m *Manager) start(ctx context.Context, undo undoing) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return nil
	}
	ctx, begun := m.beginLocked(ctx)
	m.stop = nil
	phases := groupByPhase(m.parts)
	m.mu.Unlock()
	defer begun.end()
	live, err := m.startPhases(ctx, phases, undo)
	m.mu.Lock()
	defer m.mu.Unlock()
	failed, _ := errors.AsType[*startError](err)
	m.live, m.started, m.starting = live, err == nil || failed.kept, nil
	return err
}

// starting is a start that runs: Stop cancels it and waits for its end.
type starting struct {
	cancel context.CancelFunc // ends it early
	done   chan struct{}      // closed at its end
}

func (m *Manager) beginLocked(ctx context.Context) (context.Context, *starting) {
	ctx, cancel := context.WithCancel(ctx)
	m.starting = &starting{cancel, make(chan struct{})}
	return ctx, m.starting
}

func (s *starting) end() {
	s.cancel()
	close(s.done)
}

func (m *Manager) startPhases(ctx context.Context, phases []phase, undo undoing) (live []Component, err error) {
	for _, p := range phases {
		touched, interrupted, err := m.startPhase(ctx, p.parts, undo.by)
		live = append(live, touched...)
		if err == nil {
			continue
		}
		failed := &startError{cause: err, interrupted: interrupted}
		if failed.kept = interrupted && undo.keep != nil && undo.keep(); failed.kept {
			return live, failed
		}
		failed.undo = m.undo(ctx, live, undo)
		return nil, failed
	}
	return live, nil
}

// undo stops what a failed start had started.
func (m *Manager) undo(ctx context.Context, live []Component, how undoing) error {
	end := how.by
	if end.IsZero() {
		end = time.Now().Add(m.StopTimeout())
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	if how.rush != nil {
		defer context.AfterFunc(how.rush, cancel)() //nolint:contextcheck // undoing outlives what ended the start
	}
	err := m.stopPhases(ctx, live, how.by)
	if err != nil {
		m.log.Warn("undoing a failed start left something behind", logs.Failure(err)...)
	}
	return err
}

// startPhase returns the components that a Stop is owed: those that started and those
// that had not returned in time. The error has the components that failed by themselves;
// if none did, those that were interrupted.
func (m *Manager) startPhase(ctx context.Context, parts []Component, undoBy time.Time) (touched []Component, interrupted bool, _ error) {
	if err := ctx.Err(); err != nil { // nothing starts that would only be stopped again
		return nil, true, err
	}
	phase, cancel := context.WithCancel(ctx)
	defer cancel()
	called := make([]bool, len(parts)) // the errors that came because the phase had ended
	errs := callAll(phase, parts, func(why error) time.Duration { return startPatience(ctx, why, undoBy) }, Component.Start, func(i int, err error) {
		called[i] = phase.Err() != nil && errors.Is(err, phase.Err())
		cancel()
	})
	var failed, ended []error
	for i, err := range errs {
		if err == nil || errors.Is(err, errDeaf) {
			touched = append(touched, parts[i])
		}
		switch {
		case err == nil:
		case called[i]:
			ended = append(ended, fmt.Errorf("start %q: %w", parts[i].Name(), err))
		default:
			failed = append(failed, fmt.Errorf("start %q: %w", parts[i].Name(), err))
			m.log.Error("component did not start", failure(parts[i], err)...)
		}
	}
	switch {
	case len(failed) > 0:
		return touched, false, errors.Join(failed...)
	case len(ended) > 0:
		return touched, true, errors.Join(ended...)
	case ctx.Err() != nil: // all had started when it came
		return touched, true, ctx.Err()
	}
	return touched, false, nil
}

// startPatience is how long components may take to notice the end of their start. Half
// of what is left for the undoing is for them, the other half for the undoing itself.
func startPatience(ctx context.Context, why error, undoBy time.Time) time.Duration {
	patience := obey
	if errors.Is(why, context.Canceled) {
		patience = obeyCancel
	}
	if end, ok := ctx.Deadline(); ok && !undoBy.IsZero() {
		patience = min(patience, max(0, time.Until(end))+undoBy.Sub(end)/2)
	}
	return patience
}

// Add starts a component alongside those that run and makes it one of them: Stop stops it
// in its phase, and Main reports about it. Before Start it is only remembered. It is
// refused while the manager stops, for a name that another component has, and with
// longshore.CodeDrainBudget if it does not fit into StopTimeout.
func (m *Manager) Add(ctx context.Context, c Component) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	parts := append(m.parts[:len(m.parts):len(m.parts)], c)
	limit, err := m.cfg.stopTimeout(parts)
	if err := errors.Join(checkNames(parts), checkDeadLetters(parts), err, m.stoppingLocked(c)); err != nil {
		m.mu.Unlock()
		return err
	}
	if !m.started {
		m.parts, m.stopTimeout = parts, limit
		m.mu.Unlock()
		return nil
	}
	ctx, begun := m.beginLocked(ctx)
	m.mu.Unlock()
	defer begun.end()
	touched, _, err := m.startPhase(ctx, []Component{c}, time.Time{})
	if err != nil && len(touched) > 0 {
		err = &startError{cause: err, undo: m.undo(ctx, touched, undoing{})}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starting = nil
	if err != nil {
		return err
	}
	m.parts, m.live, m.stopTimeout = parts, append(m.live[:len(m.live):len(m.live)], c), limit
	return nil
}

// Remove stops the component of that name and forgets it, so that another may be added
// under the name. It does nothing if there is none.
func (m *Manager) Remove(ctx context.Context, name string) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	found := named(m.parts, name)
	limit := m.stopTimeout
	m.mu.Unlock()
	if found == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := m.stopPhase(ctx, []Component{found}, obey)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.parts, m.live = without(m.parts, name), without(m.live, name)
	return err
}

// failure are the fields of a component's error, with the stack if it panicked.
func failure(c Component, err error) []zap.Field {
	fields := append(logs.Failure(err), zap.String("component", c.Name()))
	if stack := stackOf(err); stack != "" {
		fields = append(fields, zap.String("stack", stack))
	}
	return fields
}

// stackOf returns the stack of a panic in err's tree, "" if there is none.
func stackOf(err error) string {
	if p, ok := errors.AsType[*longshore.Panic](err); ok {
		return string(p.Stack)
	}
	return ""
}
