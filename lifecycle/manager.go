package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/internal/logs"
)

// Config of a [Manager]. The zero value is what the comments say.
type Config struct {
	// StopTimeout bounds the whole stop. Zero is 25 s, which fits a container with
	// default settings and what it uses into a kill grace of 30 s. The largest budget of
	// each phase, summed over phases, and 3 s must fit in it; those 3 s are also for the
	// phases in which no component has a StopBudget.
	StopTimeout time.Duration
	// Grow raises StopTimeout to [Budget] where the components need more, instead of
	// refusing them: for a timeout that was computed without knowing all of them.
	Grow bool
	// Setting is the name of StopTimeout in error hints, for programs that read it from
	// a file. Empty is "lifecycle.Config.StopTimeout".
	Setting string
	// Logger gets a line for every component that fails or is slow. nil: none.
	Logger *zap.Logger
}

// DefaultStopTimeout bounds a stop for which no StopTimeout is set. It leaves 5 s of the
// 30 s that Kubernetes gives a pod to end (terminationGracePeriodSeconds).
const DefaultStopTimeout = 25 * time.Second

const (
	// stopReserve is what has to be left of StopTimeout alongside the components: a
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
	cfg Config      // limits of the start and the stop
	log *zap.Logger // Config.Logger; discards what it gets if none is set

	turn sync.Mutex // held over a whole Start or Add

	mu          sync.Mutex    // guards what follows; never held over a call of a component
	stopTimeout time.Duration // bounds Stop; Add may raise it where the configuration lets it grow
	parts       []Component   // those of New and of Add
	starting    *starting     // while a Start or Add runs
	started     bool          // a second Start does nothing
	live        []Component   // what Stop has to stop
	stop        *stopping     // set by the first Stop of a run
}

type phase struct {
	number int           // phases start in this order and stop in the reverse
	parts  []Component   // which start and stop at the same time
	budget time.Duration // the longest stop of its components
	asked  bool          // by a component; else it is the default
}

// New groups the components into phases. It returns an error with
// longshore.CodeDrainBudget if they cannot stop in time, and one with longshore.CodeConfig
// for two components with one name and for containers whose dead letters go round.
func New(cfg Config, parts ...Component) (*Manager, error) {
	m := &Manager{cfg: cfg, log: logs.Of(cfg.Logger), parts: slices.Clone(parts)}
	var budget error
	m.stopTimeout, budget = cfg.stopTimeout(parts)
	return m, errors.Join(checkNames(parts), checkDeadLetters(parts), budget)
}

// stopTimeout returns the bound in force for the components, or an error if they do not
// fit in it.
func (cfg Config) stopTimeout(parts []Component) (time.Duration, error) {
	limit := cfg.StopTimeout
	if limit == 0 {
		limit = DefaultStopTimeout
	}
	if cfg.Grow {
		return max(limit, Budget(parts...)), nil
	}
	return limit, cfg.checkBudget(limit, groupByPhase(parts))
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

// checkDeadLetters refuses containers between which a failing message would circulate.
func checkDeadLetters(parts []Component) error {
	var routes []hops.Route
	add := func(name string, from []string, to string) {
		routes = append(routes, hops.Route{Name: name, From: from, To: to})
	}
	for _, c := range parts {
		if r, ok := c.(DeadLetterRouter); ok {
			from, to := r.DeadLetterRoute()
			add(c.Name(), from, to)
		}
		if r, ok := c.(DeadLetterRouters); ok {
			r.DeadLetterRoutes(add)
		}
	}
	return hops.Cycle(routes)
}

// checkBudget names the component with the largest budget of the most expensive
// phase: shortening that one helps most.
func (cfg Config) checkBudget(limit time.Duration, phases []phase) error {
	total := need(phases)
	var worst *phase
	for i := range phases {
		if worst == nil || phases[i].budget > worst.budget {
			worst = &phases[i]
		}
	}
	if worst == nil || total <= limit {
		return nil
	}
	slow := slices.MaxFunc(worst.parts, func(a, b Component) int { return cmp.Compare(budgetOf(a), budgetOf(b)) })
	left := max(0, limit-(total-worst.budget))
	setting, drain := cfg.Setting, "drain_timeout"
	if setting == "" {
		setting, drain = "lifecycle.Config.StopTimeout", "DrainTimeout"
	}
	return &longshore.Error{
		Code: longshore.CodeDrainBudget, Source: slow.Name(),
		Op:   fmt.Sprintf("lifecycle: %q may take %v to stop but StopTimeout %v leaves it %v", slow.Name(), worst.budget, limit, left),
		Hint: fmt.Sprintf("lower its %s or set %s to %v or more (and the process's kill grace above it)", drain, setting, total),
	}
}

// StopTimeout returns the bound of Stop in force.
func (m *Manager) StopTimeout() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopTimeout
}
