package workflow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
)

// world is two queues with producers, consumers and an operator who does what the phase that
// is saved asks for. It moves on by one tick with each look.
type world struct {
	ledger   string
	messages int // how many are produced in all

	old, new         []int
	oldRuns, newRuns bool
	onNew            bool // where producers write
	next             int
	handled          []int
	letters, moved   int // dead letters on the old side, and moved
	prepared         int
	locked           bool
	running          *fakeMover
	stopped          error // why movers stop by themselves

	calls, stopAt int // the call at which the operator presses Ctrl-C, or the process dies
	stop          func()
	kill          error
	topology      string
}

type fakeMover struct {
	w *world
	d Direction
	n int64
}

func (f *fakeMover) Moved() int64       { return f.n }
func (f *fakeMover) Limits() string     { return "" }
func (f *fakeMover) Age() time.Duration { return 0 }
func (f *fakeMover) Err() error         { return f.w.stopped }
func (f *fakeMover) Stop(context.Context) error {
	f.w.running = nil
	return f.w.stopped
}

// call is a point at which a move can be interrupted.
func (w *world) call() error {
	if w.calls++; w.calls == w.stopAt {
		if w.stop != nil {
			w.stop()
		}
		return w.kill
	}
	return nil
}

func (w *world) Lock(context.Context) (func(context.Context) error, error) {
	if w.locked {
		return nil, &longshore.Error{Code: longshore.CodeExclusive, Op: "lock the route", Err: errors.New("another instance has it")}
	}
	w.locked = true
	return func(context.Context) error { w.locked = false; return nil }, w.call()
}

func (w *world) Topology(context.Context) (string, error) { return w.topology, w.call() }

func (w *world) Prepare(context.Context) error {
	w.prepared++
	return w.call()
}

func (w *world) Unprepare(context.Context) error {
	w.prepared = 0
	return w.call()
}

func (w *world) Letters(_ context.Context, d Direction) (int64, error) {
	from, to := &w.letters, &w.moved
	if d == Back {
		from, to = to, from
	}
	n := *from
	*from, *to = 0, *to+n
	return int64(n), w.call()
}

func (w *world) Start(_ context.Context, d Direction) (Mover, error) {
	if err := w.call(); err != nil {
		return nil, err
	}
	if w.oldRuns && d == Forth || w.newRuns && d == Back {
		return nil, errors.New("messages are moved from under the hands of a consumer")
	}
	w.running = &fakeMover{w: w, d: d}
	return w.running, nil
}

func (w *world) Look(_ context.Context, running Direction) (Observation, error) {
	w.operate()
	w.tick()
	o := Observation{Old: Side{Ready: int64(len(w.old))}, New: Side{Ready: int64(len(w.new))}, DeadLetters: int64(w.letters)}
	if running == Back {
		o.DeadLetters = int64(w.moved)
	}
	if w.oldRuns {
		o.Old.Consumers = 3
	}
	if w.newRuns {
		o.New.Consumers = 3
	}
	return o, w.call()
}

// operate does what the saved phase asks for.
func (w *world) operate() {
	s, err := Load(w.ledger, "orders")
	if err != nil {
		return
	}
	switch s.At() {
	case Seeded:
		w.oldRuns = false
	case Flows:
		w.newRuns = true
	case NewRuns:
		w.onNew = w.onNew || len(w.old) == 0
	case Returning:
		w.newRuns = false
	case FlowsBack:
		w.oldRuns = true
	case OldRuns:
		w.onNew = w.onNew && len(w.new) > 0
	case Planned, OldEnded, Quiet, Drained, Finished, NewEnded, QuietBack, phases:
	}
}

func (w *world) tick() {
	if w.next < w.messages {
		if w.next++; w.onNew {
			w.new = append(w.new, w.next)
		} else {
			w.old = append(w.old, w.next)
		}
	}
	if m := w.running; m != nil {
		from, to := &w.old, &w.new
		if m.d == Back {
			from, to = to, from
		}
		n := min(3, len(*from))
		*to, *from, m.n = append(*to, (*from)[:n]...), slices.Clone((*from)[n:]), m.n+int64(n)
	}
	if w.oldRuns {
		n := min(3, len(w.old))
		w.handled, w.old = append(w.handled, w.old[:n]...), slices.Clone(w.old[n:])
	}
	if w.newRuns {
		n := min(3, len(w.new))
		w.handled, w.new = append(w.handled, w.new[:n]...), slices.Clone(w.new[n:])
	}
}

// rest lets everything be produced and handled.
func (w *world) rest() {
	for range 100 {
		w.tick()
	}
}

func newWorld(t *testing.T) *world {
	return &world{ledger: t.TempDir(), messages: 40, oldRuns: true, letters: 5, topology: "old orders → new orders"}
}

func (w *world) move() *Move {
	return New(Config{Route: "orders", Ledger: w.ledger, Ends: w, Quiet: 10 * time.Second, Poll: time.Second})
}

// try is one command, interrupted at a call: by Ctrl-C, or by an error of a broker.
func (w *world) try(t *testing.T, at int, dies bool, command func(*Move, context.Context) (State, error)) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.calls, w.stopAt, w.stop, w.kill = 0, at, cancel, nil
	if dies {
		w.stop, w.kill = nil, errors.New("the broker is gone")
	}
	_, err := command(w.move(), ctx)
	w.stopAt = 0
	if w.running != nil {
		t.Fatalf("interrupted at call %d it leaves a mover behind", at)
	}
	w.locked = false // a process that has ended holds no lock
	return err
}

// F-M: a cut-over that is interrupted at any point goes on with the next command: every message
// is handled once and in its order, and the dead letters are moved.
func TestCutoverGoesOnWhereItWasInterrupted(t *testing.T) {
	for _, dies := range []bool{false, true} {
		for at := 1; ; at++ {
			done := false
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				done = w.try(t, at, dies, (*Move).Cutover) == nil && w.calls < at
				if _, err := w.move().Cutover(t.Context()); err != nil {
					t.Fatalf("interrupted at call %d (dies: %v), it does not go on: %v", at, dies, err)
				}
				if _, err := w.move().Finish(t.Context()); err != nil {
					t.Fatalf("interrupted at call %d: %v", at, err)
				}
				w.rest()
				if len(w.handled) != w.messages || !slices.IsSorted(w.handled) || w.moved != 5 || w.prepared == 0 {
					t.Fatalf("interrupted at call %d (dies: %v): handled %v, %d dead letters moved", at, dies, w.handled, w.moved)
				}
			})
			if t.Failed() || done {
				break
			}
			if at > 1000 {
				t.Fatal("the cut-over does not end")
			}
		}
	}
}

// F-M: a rollback from any point of a cut-over, itself interrupted at any point, loses nothing,
// handles nothing twice, and can be followed by another cut-over.
func TestRollbackFromAnyPoint(t *testing.T) {
	for from := 1; from < 80; from += 8 {
		for at := 1; at < 40; at += 9 {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				_ = w.try(t, from, false, (*Move).Cutover) // interrupted, or done
				_ = w.try(t, at, at%2 == 0, (*Move).Rollback)
				s, err := w.move().Rollback(t.Context())
				if err != nil || s.At() != Planned {
					t.Fatalf("from call %d, interrupted at %d: phase %s, %v", from, at, s.Phase, err)
				}
				w.oldRuns = true // where nothing had been asked of the old consumers
				if w.newRuns || w.onNew || len(w.new) > 0 {
					t.Fatalf("from call %d: new consumers %v, producers on the new side %v, %v left there", from, w.newRuns, w.onNew, w.new)
				}
				if _, err := w.move().Cutover(t.Context()); err != nil {
					t.Fatalf("the second cut-over: %v", err)
				}
				w.rest()
				slices.Sort(w.handled)
				if len(slices.Compact(w.handled)) != w.messages || len(w.handled) != w.messages {
					t.Fatalf("from call %d, interrupted at %d: handled %v", from, at, w.handled)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

// Every phase leads to its goal, names itself, and moves messages only where no consumer of the
// emptied side can be running.
func TestTableOfPhases(t *testing.T) {
	for _, p := range Phases() {
		back, ok := ParsePhase(p.String())
		if !ok || back != p {
			t.Errorf("phase %d is called %q, which is %d", p, p, back)
		}
		goal, at := Drained, p
		if p.InRollback() {
			goal = Planned
		}
		for range phases {
			if at != goal && at != Finished {
				at = at.Next()
			}
		}
		if at != goal && at != Finished {
			t.Errorf("%s does not lead to %s", p, goal)
		}
		if undo := p.Undo(); undo != Planned && undo != Finished && !undo.InRollback() {
			t.Errorf("a rollback of %s leads to %s", p, undo)
		}
		if p.Moves() != Still && p.Undo() == Planned {
			t.Errorf("%s moves messages, and a rollback forgets them", p)
		}
		if (p.Moves() == Back) != (p.InRollback() && p != Returning) {
			t.Errorf("%s moves %s", p, p.Moves())
		}
	}
}

func TestDecisions(t *testing.T) {
	const quiet = time.Minute
	for _, c := range []struct {
		name string
		p    Phase
		o    Observation
		want Verdict
	}{
		{"old consumers still there", Seeded, Observation{Old: Side{Consumers: 2}}, Wait},
		{"they hold messages", Seeded, Observation{Old: Side{Unsettled: 1}}, Wait},
		{"gone", Seeded, Observation{Old: Side{Ready: 100}}, Advance},
		{"SQS counts no consumers", Seeded, Observation{Old: Side{Consumers: -1}}, Ask},
		{"the operator says so", Seeded, Observation{Old: Side{Consumers: -1}, Assured: true}, Advance},
		{"the operator says so, and messages are in flight", Seeded, Observation{Old: Side{Consumers: -1, Unsettled: 3}, Assured: true}, Wait},
		{"nothing moves yet", OldEnded, Observation{Old: Side{Ready: 900}}, Wait},
		{"it moves", OldEnded, Observation{Old: Side{Ready: 500}, Moved: 1}, Advance},
		{"none waits", OldEnded, Observation{Old: Side{Delayed: 20}}, Advance},
		{"no new consumer", Flows, Observation{}, Wait},
		{"a new consumer", Flows, Observation{New: Side{Consumers: 1}}, Advance},
		{"producers still write", NewRuns, Observation{Old: Side{Ready: 1}, Silence: 2 * quiet}, Wait},
		{"not quiet long enough", NewRuns, Observation{Silence: quiet - 1}, Wait},
		{"quiet", NewRuns, Observation{Old: Side{Delayed: 20}, Silence: quiet}, Advance},
		{"delayed messages", Quiet, Observation{Old: Side{Delayed: 20}}, Wait},
		{"parked messages", Quiet, Observation{Parked: 1}, Refuse},
		{"dead letters", Quiet, Observation{DeadLetters: 5}, Wait},
		{"empty", Quiet, Observation{New: Side{Ready: 7, Consumers: 3}}, Advance},
		{"new consumers still there", Returning, Observation{New: Side{Consumers: 1}}, Wait},
		{"no old consumer", FlowsBack, Observation{New: Side{Consumers: 1}}, Wait},
		{"new side not empty", QuietBack, Observation{New: Side{Ready: 1}}, Wait},
		{"after the end", Drained, Observation{}, Wait},
	} {
		if got := c.p.Decide(c.o, quiet); got.Verdict != c.want || got.Verdict != Advance && got.Why == "" {
			t.Errorf("%s: %s decides %d (%s), want %d", c.name, c.p, got.Verdict, got.Why, c.want)
		}
	}
}

// Refusals leave everything as it is, and say why.
func TestRefusals(t *testing.T) {
	refusal := func(t *testing.T, err error, text string) {
		t.Helper()
		if _, is := errors.AsType[*PreconditionError](err); !is || !strings.Contains(err.Error(), text) {
			t.Errorf("want a refusal with %q, got %v", text, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_ = w.try(t, 12, false, (*Move).Cutover)
		w.topology = "old orders → new other"
		_, err := w.move().Cutover(t.Context())
		refusal(t, err, "changed topology")
		w.topology = "old orders → new orders"
		_, err = w.move().Finish(t.Context())
		refusal(t, err, "not drained yet")

		w.locked = true
		if _, err := w.move().Cutover(t.Context()); !errors.Is(err, longshore.CodeExclusive) {
			t.Errorf("two cut-overs at once: %v", err)
		}
		w.locked = false
		if _, err := w.move().Cutover(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.old = append(w.old, 99) // a producer that was forgotten
		_, err = w.move().Finish(t.Context())
		refusal(t, err, "not empty")
		if _, err := w.move().Cutover(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.move().Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = w.move().Rollback(t.Context())
		refusal(t, err, "finished")
	})
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "orders"), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"version": 2, "route": "orders", "phase": "planned"}`:  "newer release",
		`{"version": 1, "route": "orders", "phase": "sideways"}`: "sideways",
		`{"version": 1, "route": "other", "phase": "planned"}`:   `"other"`,
		`{"version":`: "damaged",
	} {
		if err := os.WriteFile(fileOf(dir, "orders"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, "orders"); !errors.Is(err, longshore.CodeState) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A mover that stops by itself ends the command, which says why, once.
func TestAMoverThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stopped = errors.New("the source was made again")
		s, err := w.move().Cutover(t.Context())
		if !errors.Is(err, w.stopped) || strings.Count(err.Error(), w.stopped.Error()) != 1 || s.At() != OldEnded || w.running != nil || w.locked {
			t.Errorf("in phase %s: %v", s.Phase, err)
		}
	})
}

// Of two commands that saved at the same moment, one is refused.
func TestTwoWritersOfOneState(t *testing.T) {
	dir := t.TempDir()
	a, _ := Load(dir, "orders")
	b, _ := Load(dir, "orders")
	if err := a.reach(dir, Seeded, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := b.reach(dir, Seeded, time.Now()); !errors.Is(err, longshore.CodeState) {
		t.Errorf("the second writer gets %v", err)
	}
}
