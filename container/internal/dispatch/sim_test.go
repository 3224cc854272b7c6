package dispatch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const historyLength = 300

// history draws the steps of one seed.
func history(seed uint64) []step {
	rnd := rand.New(rand.NewPCG(seed, 5))
	var bag []uint8
	for i, op := range operations {
		for range op.odds {
			bag = append(bag, uint8(i))
		}
	}
	steps := make([]step, historyLength)
	for i := range steps {
		steps[i] = step{bag[rnd.IntN(len(bag))], uint16(rnd.Uint32()), uint16(rnd.Uint32())}
	}
	return steps
}

// play runs a history in a new world and then brings that to rest: whatever happened,
// once everything ends nothing may be left.
func play(steps []step, seen *coverage, trace *bytes.Buffer) (err error) {
	w := newWorld(seen)
	w.trace = trace
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for i, st := range steps {
		if err := w.apply(st); err != nil {
			return fmt.Errorf("step %d (%s): %w", i, operations[st.op].name, err)
		}
	}
	return w.rest()
}

// rest ends everything, and counts on nothing being stuck.
func (w *world) rest() error {
	ending := []uint8{opNamed("take orphans"), opNamed("give back"), opNamed("finish"), opNamed("wake"), opNamed("take due"), opNamed("next")}
	for range 10 * (len(w.live) + 10) {
		if len(w.live) == 0 {
			break
		}
		for _, op := range ending {
			if err := w.apply(step{op, 3, 0}); err != nil {
				return fmt.Errorf("at rest (%s): %w", operations[op].name, err)
			}
		}
	}
	if n := w.s.Total(); n != (Sum{}) || w.s.Lanes() != 0 || w.s.Orphans() != 0 {
		return fmt.Errorf("at rest %v are held in %d lanes, with %d orphans", n, w.s.Lanes(), w.s.Orphans())
	}
	return nil
}

func opNamed(name string) uint8 {
	for i := range operations {
		if operations[i].name == name {
			return uint8(i)
		}
	}
	return 0
}

// shrink leaves out what a failure does not need: halves first, then ever smaller parts.
func shrink(steps []step, fails func([]step) bool) []step {
	for part := len(steps) / 2; part > 0; part /= 2 {
		for at := 0; at < len(steps); {
			less := append(append([]step{}, steps[:at]...), steps[min(at+part, len(steps)):]...)
			if fails(less) {
				steps = less
			} else {
				at += part
			}
		}
	}
	return steps
}

// report is what is printed of a failure: how to repeat it, and its shortest history.
func report(seed uint64, steps []step, err error) string {
	short := shrink(steps, func(s []step) bool { return play(s, newCoverage(), nil) != nil })
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %v\nshortest history, %d of %d steps: %v\n", seed, err, len(short), len(steps), play(short, newCoverage(), nil))
	for _, st := range short {
		fmt.Fprintf(&b, "  %s %d %d\n", operations[st.op].name, st.a, st.b)
	}
	return b.String()
}

// Random histories: after each step every invariant holds, every answer is what counting
// anew gives, each lane keeps its order, a lane that stands uses its own account, and in
// the end nothing is left. LONGSHORE_SIMULATE=30s goes on for so long on all processors
// (`make simulate`), from a seed that LONGSHORE_SIMULATE_SEED sets.
//
// F-N33
func TestSimulation(t *testing.T) {
	seeds, forHow, first, least := uint64(150), time.Duration(0), uint64(1), 5
	if v := os.Getenv("LONGSHORE_SIMULATE"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		seeds, forHow, first = 1<<40, d, uint64(time.Now().UnixNano())
		if d >= time.Minute {
			least = 100
		}
	}
	if v := os.Getenv("LONGSHORE_SIMULATE_SEED"); v != "" {
		if _, err := fmt.Sscan(v, &first); err != nil {
			t.Fatal(err)
		}
	}
	s := simulation{last: first + seeds, next: first, began: time.Now(), limit: forHow, seen: newCoverage()}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(s.work)
	}
	wg.Wait()
	took := time.Since(s.began)
	t.Logf("%d steps in %v, %.0f a minute\n%s", s.steps, took.Round(time.Millisecond), float64(s.steps)/took.Minutes(), s.seen.table())
	if s.failure != "" {
		t.Fatal(s.failure)
	}
	for _, hole := range s.seen.holes(least) {
		t.Errorf("%s: fewer than %d prove nothing", hole, least)
	}
}

// simulation is what its workers share.
type simulation struct {
	began time.Time
	limit time.Duration
	last  uint64

	mu      sync.Mutex
	next    uint64
	steps   int
	seen    *coverage
	failure string
}

func (s *simulation) work() {
	seen, steps := newCoverage(), 0
	for {
		s.mu.Lock()
		seed := s.next
		s.next++
		over := seed >= s.last || s.failure != "" || s.limit > 0 && time.Since(s.began) > s.limit
		if over {
			s.steps += steps
			s.seen.add(seen)
		}
		s.mu.Unlock()
		if over {
			return
		}
		hist := history(seed)
		if err := play(hist, seen, nil); err != nil {
			text := report(seed, hist, err)
			s.mu.Lock()
			s.failure = text
			s.mu.Unlock()
		}
		steps += len(hist)
	}
}

// The same seed is the same history, step by step, whatever the process hashes with.
func TestSameSeedIsTheSameTrace(t *testing.T) {
	for seed := range uint64(20) {
		var one, two bytes.Buffer
		if err := play(history(seed), newCoverage(), &one); err != nil {
			t.Fatal(report(seed, history(seed), err))
		}
		if err := play(history(seed), newCoverage(), &two); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one.Bytes(), two.Bytes()) || one.Len() < 1000 {
			t.Fatalf("seed %d: two traces, of %d and %d bytes, differ", seed, one.Len(), two.Len())
		}
	}
}

// A failing history shrinks to the steps that it takes.
func TestFailingHistoryShrinks(t *testing.T) {
	admit, next := opNamed("admit"), opNamed("next")
	fails := func(steps []step) bool {
		admitted := false
		for _, st := range steps {
			switch {
			case st.op == admit && st.a%7 == 0:
				admitted = true
			case st.op == next && st.b%7 == 0 && admitted:
				return true
			}
		}
		return false
	}
	long := history(3)
	if !fails(long) {
		t.Fatal("the history does not fail")
	}
	if short := shrink(long, fails); len(short) != 2 || !fails(short) {
		t.Errorf("it shrinks to %d steps", len(short))
	}
}
