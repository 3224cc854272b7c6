package container_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// simCoverage counts what the simulation did: verbs by the fault beside them, and how the
// container moved.
type simCoverage struct {
	mu   sync.Mutex
	hits map[[2]string]int
}

func newSimCoverage() *simCoverage { return &simCoverage{hits: map[[2]string]int{}} }

func (c *simCoverage) hit(what, to string) {
	c.mu.Lock()
	c.hits[[2]string{what, to}]++
	c.mu.Unlock()
}

// table shows how often each thing happened.
func (c *simCoverage) table() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rows []string
	for k, n := range c.hits {
		rows = append(rows, fmt.Sprintf("%-26s → %-26s %9d\n", k[0], k[1], n))
	}
	slices.Sort(rows)
	return strings.Join(rows, "")
}

// holes are what happened too rarely, of all that can happen.
func (c *simCoverage) holes(least int) (texts []string) {
	want := simTransitions()
	for _, v := range simVerbs {
		for _, f := range simFaults {
			want = append(want, [2]string{"verb " + v.name, f.name})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range want {
		if n := c.hits[k]; n < least {
			texts = append(texts, fmt.Sprintf("%s → %s happened %d times", k[0], k[1], n))
		}
	}
	return texts
}

// simLeast is how often everything must have happened after so many steps. A busy machine
// makes fewer of them in the same time, which says nothing about the simulation; and after
// a few the rarest combinations may still be missing by chance.
func simLeast(steps int) int {
	if steps < 100_000 {
		return 0
	}
	return min(steps/5000, 100)
}

// simTransitions are the moves on the three axes of the state table, and of the state
// that is reported, which the simulation has to make.
func simTransitions() (all [][2]string) {
	for from, to := range map[string][]string{
		"subscription starting":  {"open", "lost", "suspended", "failed"},
		"subscription open":      {"lost", "suspended", "retained", "yielded"},
		"subscription lost":      {"open"},
		"subscription suspended": {"open"},
		"subscription retained":  {"open"},
		"subscription yielded":   {"open"},
		"hold operator":          {"on", "off"},
		"hold middleware":        {"on", "off"},
		"hold throttle":          {"on", "off"},
		"open and held by": {"operator", "middleware", "throttle", "operator+middleware", "operator+throttle", "middleware+throttle",
			"operator+middleware+throttle"},
		"stop none":        {"finish work", "return only"},
		"stop finish work": {"return only"},
		"stop return only": {"closing", "stopped"},
		"stop closing":     {"stopped"},
		"state starting":   {"running", "paused", "recovering"},
		"state running":    {"paused", "recovering", "draining"},
		"state paused":     {"running", "recovering", "draining"},
		"state recovering": {"running", "paused", "draining"},
		"state draining":   {"stopped"},
		"state stopped":    {"starting"},
	} {
		for _, t := range to {
			all = append(all, [2]string{from, t})
		}
	}
	return all
}

// play runs a history in a bubble of its own, and then brings the container to rest.
func simPlay(t *testing.T, seed uint64, steps []simStep, seen *simCoverage, trace *strings.Builder) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		var w *simWorld
		if w, err = newSimWorld(seed, seen); err != nil {
			return
		}
		w.tracing = trace != nil
		defer func() {
			w.close()
			if err != nil && trace != nil {
				fmt.Fprintf(trace, "queue %+v\norder %v, settle %v, batch %d, lookahead %d, dead letters to %q, throttle %v\n%s\n", w.queue,
					w.cfg.Order, w.cfg.Settle, w.cfg.Batch.Size, w.cfg.Lookahead, w.cfg.DeadLetter.To, w.gate != nil, strings.Join(w.trace, "\n"))
			}
		}()
		w.start(0, 0)
		for i, st := range steps {
			if err = w.apply(st); err != nil {
				err = fmt.Errorf("step %d (%s, %s): %w", i, simVerbs[st.verb].name, simFaults[st.fault].name, err)
				return
			}
		}
		if err = w.rest(); err != nil {
			err = fmt.Errorf("at rest: %w", err)
		}
	})
	return err
}

// simShrink leaves out what a failure does not need: halves first, then smaller parts.
// The goroutines of a container run in no fixed order, so a history counts as failing if
// one of a few runs does.
func simShrink(steps []simStep, fails func([]simStep) bool) []simStep {
	for part := len(steps) / 2; part > 0; part /= 2 {
		for at := 0; at < len(steps); {
			less := slices.Concat(steps[:at], steps[min(at+part, len(steps)):])
			if fails(less) {
				steps = less
			} else {
				at += part
			}
		}
	}
	return steps
}

// simReport is what is printed of a failure: how to repeat it, and its shortest history.
func simReport(t *testing.T, seed uint64, steps []simStep, err error) string {
	until := time.Now().Add(20 * time.Second)
	last := err
	short := simShrink(steps, func(s []simStep) bool {
		for range 3 {
			if time.Now().After(until) {
				return false
			}
			if err := simPlay(t, seed, s, newSimCoverage(), nil); err != nil {
				last = err
				return true
			}
		}
		return false
	})
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %v\nshortest history, %d of %d steps: %v\n", seed, err, len(short), len(steps), last)
	for _, s := range short {
		fmt.Fprintf(&b, "  %s, %s %d %d\n", simVerbs[s.verb].name, simFaults[s.fault].name, s.a, s.b)
	}
	for range 10 {
		if simPlay(t, seed, short, newSimCoverage(), &b) != nil {
			break
		}
	}
	return b.String()
}

// Random histories of a whole container on the memory transport: verbs of the operator and
// the program, each beside a fault of the broker. After each step and at the end every
// invariant holds: no message is lost, none settled twice, each lane keeps its order, the
// sums are right, nothing is taken or started while work may not start, a handler that
// hangs blocks its own lane only, a stop keeps its time, and in the end all is idle.
// LONGSHORE_SIMULATE=30s goes on for so long on all processors (`make simulate`), from a
// seed that LONGSHORE_SIMULATE_SEED sets.
func TestSimulation(t *testing.T) {
	s := simulation{limit: 0, first: 1, seeds: 60, seen: newSimCoverage(), began: time.Now()}
	if v := os.Getenv("LONGSHORE_SIMULATE"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		s.limit, s.seeds, s.first = d, 1<<40, uint64(time.Now().UnixNano())
	}
	if v := os.Getenv("LONGSHORE_SIMULATE_SEED"); v != "" {
		if _, err := fmt.Sscan(v, &s.first); err != nil {
			t.Fatal(err)
		}
	}
	s.next = s.first
	t.Run("histories", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				s.work(t)
			})
		}
	})
	took := time.Since(s.began)
	t.Logf("%d histories, %d steps in %v, %.0f a minute\n%s", s.next-s.first, s.steps, took.Round(time.Millisecond), float64(s.steps)/took.Minutes(), s.seen.table())
	if s.failure != "" {
		t.Fatal(s.failure)
	}
	least := simLeast(s.steps)
	for _, hole := range s.seen.holes(least) {
		t.Errorf("%s: fewer than %d prove nothing", hole, least)
	}
}

// simulation is what its workers share.
type simulation struct {
	began        time.Time
	limit        time.Duration // 0: as many seeds as there are
	first, seeds uint64
	seen         *simCoverage

	mu      sync.Mutex
	next    uint64
	steps   int
	failure string
}

func (s *simulation) work(t *testing.T) {
	for {
		s.mu.Lock()
		seed := s.next
		over := seed >= s.first+s.seeds || s.failure != "" || s.limit > 0 && time.Since(s.began) > s.limit
		if !over {
			s.next++
		}
		s.mu.Unlock()
		if over {
			return
		}
		steps := simHistory(seed)
		if err := simPlay(t, seed, steps, s.seen, nil); err != nil {
			text := simReport(t, seed, steps, err)
			s.mu.Lock()
			s.failure = text
			s.mu.Unlock()
		}
		s.mu.Lock()
		s.steps += len(steps)
		s.mu.Unlock()
	}
}

// The same seed is the same history.
func TestSimulationRepeatsItsHistories(t *testing.T) {
	for seed := range uint64(50) {
		if one, two := simHistory(seed), simHistory(seed); !slices.Equal(one, two) || len(one) < 12 {
			t.Fatalf("seed %d: %d and %d steps", seed, len(one), len(two))
		}
	}
}
