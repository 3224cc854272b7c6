package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Config of a [Manager]. The zero value is what the comments say.
type Config struct {
	// StopTimeout bounds the whole stop. Zero is 25 s, which fits a container with
	// default settings and what it uses into a kill grace of 30 s. The largest budget of
	// each phase, summed over phases, and 3 s must fit in it; those 3 s are also for the
	// phases in which nobody has a StopBudget.
	StopTimeout time.Duration
	// Logger gets a line for every component that fails or is slow. nil: none.
	Logger *zap.Logger
}

const (
	defaultStopTimeout = 25 * time.Second
	// stopReserve is what has to be left of StopTimeout beside the components: a
	// loaded machine, the process's own end.
	stopReserve = 3 * time.Second
	// leastPhase is what a phase gets even if those before it used up the time, so
	// that connections are closed whatever happened.
	leastPhase = 250 * time.Millisecond
	// obey is how long a component may take to notice that its context has ended.
	obey = time.Second
	// obeyCancel is the same where it was cancelled: a container then gives handlers its
	// CancelGrace, 2 s, and knows only behind it what it abandons.
	obeyCancel = 2500 * time.Millisecond
)

// Manager starts components phase by phase and stops them in reverse. All
// methods are safe for concurrent use.
type Manager struct {
	stopTimeout time.Duration
	log         *zap.Logger
	phases      []phase // ascending
	parts       []Component

	turn sync.Mutex // held over a whole Start

	mu       sync.Mutex
	starting *starting // while a Start runs
	started  bool
	live     [][]Component // what Stop has to stop, by phase, ascending
	stop     *stopping     // set by the first Stop of a run
}

type phase struct {
	number int
	parts  []Component
	budget time.Duration
	asked  bool // by a component; else it is the default
}

type starting struct {
	cancel context.CancelFunc
	done   chan struct{}
}

type stopping struct {
	done chan struct{}
	err  error
}

// New groups the components into phases. It returns an error with
// longshore.CodeDrainBudget if they cannot stop in time, and for two components
// with one name.
func New(cfg Config, parts ...Component) (*Manager, error) {
	m := &Manager{stopTimeout: cfg.StopTimeout, log: cfg.Logger, parts: parts}
	if m.stopTimeout == 0 {
		m.stopTimeout = defaultStopTimeout
	}
	if m.log == nil {
		m.log = zap.NewNop()
	}
	m.phases = groupByPhase(parts)
	return m, errors.Join(checkNames(parts), m.checkBudget())
}

// Budget returns the least StopTimeout with which New takes the components.
func Budget(parts ...Component) time.Duration {
	return need(groupByPhase(parts))
}

// need is the time for all phases. Those that only close something share the reserve.
func need(phases []phase) time.Duration {
	var asked, rest time.Duration
	for _, p := range phases {
		if p.asked {
			asked += p.budget
		} else {
			rest += p.budget
		}
	}
	return asked + max(rest, stopReserve)
}

func groupByPhase(parts []Component) []phase {
	byNumber := map[int]*phase{}
	for _, c := range parts {
		n := phaseOf(c)
		p := byNumber[n]
		if p == nil {
			p = &phase{number: n}
			byNumber[n] = p
		}
		p.parts = append(p.parts, c)
		p.budget = max(p.budget, budgetOf(c))
		if _, ok := c.(Budgeter); ok {
			p.asked = true
		}
	}
	phases := make([]phase, 0, len(byNumber))
	for _, p := range byNumber {
		phases = append(phases, *p)
	}
	slices.SortFunc(phases, func(a, b phase) int { return cmp.Compare(a.number, b.number) })
	return phases
}

func checkNames(parts []Component) error {
	seen := map[string]bool{}
	var errs []error
	for _, c := range parts {
		if name := c.Name(); seen[name] {
			errs = append(errs, &longshore.Error{Code: longshore.CodeConfig, Op: fmt.Sprintf("lifecycle: two components are called %q", name),
				Source: name, Hint: "give one another Name"})
		} else {
			seen[name] = true
		}
	}
	return errors.Join(errs...)
}

// checkBudget names the component with the largest budget of the most expensive
// phase: shortening that one helps most.
func (m *Manager) checkBudget() error {
	total := need(m.phases)
	var worst *phase
	for i := range m.phases {
		if worst == nil || m.phases[i].budget > worst.budget {
			worst = &m.phases[i]
		}
	}
	if worst == nil || total <= m.stopTimeout {
		return nil
	}
	slow := slices.MaxFunc(worst.parts, func(a, b Component) int { return cmp.Compare(budgetOf(a), budgetOf(b)) })
	left := max(0, m.stopTimeout-(total-worst.budget))
	return &longshore.Error{
		Code: longshore.CodeDrainBudget, Source: slow.Name(),
		Op: fmt.Sprintf("lifecycle: %q may take %v to stop but StopTimeout %v leaves it %v", slow.Name(), worst.budget, m.stopTimeout, left),
		Hint: fmt.Sprintf("lower its DrainTimeout or set lifecycle.Config.StopTimeout to %v or more (and the process's kill grace above it)",
			total),
	}
}

// StopTimeout returns the bound of Stop in force.
func (m *Manager) StopTimeout() time.Duration { return m.stopTimeout }

// Start starts the phases in ascending order and returns when all components
// work. If one fails, ctx ends or Stop is called, everything that had started is stopped
// again and the error says which one it was. A Start while started does nothing. One
// that ignores its context is left behind a second after its end, as by Stop.
func (m *Manager) Start(ctx context.Context) error { return m.start(ctx, time.Time{}) }

// start is Start with an end for undoing it; zero is StopTimeout after its failure.
func (m *Manager) start(ctx context.Context, undoBy time.Time) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &starting{cancel, make(chan struct{})}
	defer close(s.done)
	m.mu.Lock()
	if m.started {
		m.mu.Unlock()
		return nil
	}
	m.stop, m.starting = nil, s
	m.mu.Unlock()
	live, err := m.startPhases(ctx, undoBy)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live, m.started, m.starting = live, err == nil, nil
	return err
}

func (m *Manager) startPhases(ctx context.Context, undoBy time.Time) (live [][]Component, err error) {
	patience := obey
	if end, ok := ctx.Deadline(); ok && !undoBy.IsZero() {
		patience = min(obey, undoBy.Sub(end)/2) // the other half is for the undoing
	}
	for _, p := range m.phases {
		touched, err := startPhase(ctx, p, patience)
		live = append(live, touched)
		if err == nil {
			continue
		}
		end := undoBy
		if undoBy.IsZero() {
			end = time.Now().Add(m.stopTimeout)
		}
		undo, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
		defer cancel()
		if serr := m.stopPhases(undo, live, undoBy); serr != nil {
			m.log.Warn("undoing a failed start left something behind", logs.Failure(serr)...)
		}
		return nil, err
	}
	return live, nil
}

// startPhase returns the components that a Stop is owed: those that started
// and those that had not returned when ctx ended.
func startPhase(ctx context.Context, p phase, patience time.Duration) (touched []Component, _ error) {
	results, late := callAll(ctx, p.parts, patience, Component.Start)
	defer late.forget()
	var errs []error
	for i, c := range p.parts {
		err := late.await(results[i])
		if err == nil || errors.Is(err, errDeaf) {
			touched = append(touched, c)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("start %q: %w", c.Name(), err))
		}
	}
	return touched, errors.Join(errs...)
}

// Stop stops the phases in descending order within StopTimeout, or ctx's
// deadline if that is earlier; a ctx that is cancelled ends the waiting for what
// runs. A phase that takes too long does not keep the others from being stopped, and
// neither does a component that ignores its context: it is left behind a second later (2.5 s
// where ctx was cancelled), and the error says so. Containers stop in two steps of their own: DrainTimeout for what
// runs, then CancelGrace to cancel, flush and close. A second Stop waits for the first and returns the
// same; on a manager that never started it does nothing. A Start that runs is ended, and
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
	live := m.live
	m.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, m.stopTimeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < m.stopTimeout-time.Second {
		m.log.Warn("stop has less time than StopTimeout, the drain is cut short",
			zap.Duration("have", time.Until(deadline)), zap.Duration("need", m.stopTimeout))
	}
	s.err = m.stopPhases(ctx, live, doneBy)
	close(s.done)
	return s.err
}

func (m *Manager) stopPhases(ctx context.Context, live [][]Component, doneBy time.Time) error {
	end, _ := ctx.Deadline()
	var errs []error
	for i := len(live) - 1; i >= 0; i-- {
		// What later phases need is kept for them.
		own, least, patience, kept := end, leastPhase, obey, time.Duration(0)
		if !doneBy.IsZero() { // then something is kept for them in any case
			half := time.Until(doneBy) / time.Duration(2*(i+1))
			least, patience = min(least, half), min(patience, half)
			kept = least
			if last := doneBy.Add(-patience); last.Before(own) {
				own = last
			}
		}
		for _, p := range m.phases[:i] {
			own = own.Add(-max(p.budget, kept))
		}
		if least := time.Now().Add(least); own.Before(least) {
			own = least
		}
		pctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), own)
		unhook := context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.Canceled) { // the deadline has its own bounds
				cancel()
			}
		})
		errs = append(errs, m.stopPhase(pctx, live[i], patience))
		unhook()
		cancel()
	}
	return errors.Join(errs...)
}

// stopPhase stops in two steps: the components' own Stop, each bounded by its own
// budget and all by ctx; then, for one that does not obey, an end of the waiting, so that
// what comes after is stopped all the same.
func (m *Manager) stopPhase(ctx context.Context, parts []Component, patience time.Duration) error {
	results, late := callAll(ctx, parts, patience, Component.Stop)
	defer late.forget()
	var errs []error
	for i, c := range parts {
		if err := late.await(results[i]); err != nil {
			errs = append(errs, fmt.Errorf("stop %q: %w", c.Name(), err))
			m.log.Error("component did not stop cleanly", append(logs.Failure(err), zap.String("component", c.Name()))...)
		}
	}
	return errors.Join(errs...)
}
