package state

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// all calls f for every combination of the three axes.
func all(f func(a Axes)) {
	for sub := range Subscription(Subscriptions) {
		for holds := range AllHolds + 1 {
			for stop := range Stop(Stops) {
				f(Axes{sub, holds, stop})
			}
		}
	}
}

func traits(f func(Traits)) {
	for i := range 8 {
		f(Traits{KeepsPlace: i&1 != 0, ThrottlePauses: i&2 != 0, OpenedPaused: i&4 != 0})
	}
}

// The whole table stands in testdata: a change of any cell is a change of behaviour,
// to be read and to be wanted. LONGSHORE_WRITE_DOCS=1 writes it anew.
func TestTable(t *testing.T) {
	var b strings.Builder
	all(func(a Axes) {
		fmt.Fprintf(&b, "%v | %v | %v:", a.Sub, a.Holds, a.Stop)
		words := map[string]bool{"starts": a.Starts(), "receives": a.Receives(), "accepts": a.Accepts(), "stopping": a.Stopping(),
			"opens": a.WantsSubscription(false), "opens-paused": a.WantsSubscription(true)}
		for _, w := range []string{"starts", "receives", "accepts", "stopping", "opens", "opens-paused"} {
			if words[w] {
				b.WriteString(" " + w)
			}
		}
		fmt.Fprintf(&b, "; stop with %v, %v; ", a.StopWith(false), a.StopWith(true))
		traits(func(x Traits) {
			pause := ""
			if a.PausesTransport(x) {
				pause = "*"
			}
			fmt.Fprintf(&b, "%v%s,", a.Intake(x), pause)
		})
		fmt.Fprintf(&b, " reports %d %d %d %d\n", a.Report(false, false), a.Report(true, false), a.Report(false, true), a.Report(true, true))
	})
	const file = "testdata/table.txt"
	if os.Getenv("LONGSHORE_WRITE_DOCS") != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of the table differs:\n got %q\nwant %q", i+1, at(got, i), at(wanted, i))
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// F-N02: whatever the reason, what must not start is neither received nor started, and a
// stop in that state finishes nothing.
func TestWhatHoldsTakesNothing(t *testing.T) {
	all(func(a Axes) {
		if a.Holds.Has(Middleware) && (a.Receives() || a.Starts()) {
			t.Errorf("%+v: work starts although a middleware holds", a)
		}
		if a.Holds.Has(Operator) && a.Stop == NoStop && a.Receives() {
			t.Errorf("%+v: receives although the operator paused", a)
		}
		if a.Holds != None && a.StopWith(true) != ReturnOnly {
			t.Errorf("%+v: a stop finishes work that was not allowed to start", a)
		}
		if a.Holds != None && a.Accepts() {
			t.Errorf("%+v: accepts work that may not start", a)
		}
		if a.Stop >= ReturnOnly && a.Starts() {
			t.Errorf("%+v: starts work that goes back", a)
		}
		if a.Receives() && a.Sub != Open {
			t.Errorf("%+v: receives without a consumer", a)
		}
		if a.WantsSubscription(false) && a.Holds != None {
			t.Errorf("%+v: opens a source that takes messages at once", a)
		}
		if a.WantsSubscription(true) && a.Sub == Open {
			t.Errorf("%+v: opens a second consumer", a)
		}
	})
}

// Reasons come and go in any order: each is taken out by whoever put it in, and two
// that overlap leave what one alone would.
func TestHoldsAreASet(t *testing.T) {
	reasons := []Holds{Operator, Middleware, Throttle}
	for _, first := range reasons {
		for _, second := range reasons {
			both := None.With(first, true).With(second, true)
			if other := None.With(second, true).With(first, true); both != other {
				t.Errorf("%v then %v is %v, the other way round %v", first, second, both, other)
			}
			if got := both.With(first, false); first != second && got != second {
				t.Errorf("without %v: %v, want %v", first, got, second)
			}
			if got := both.With(first, false).With(second, false); got != None {
				t.Errorf("without both: %v", got)
			}
		}
	}
}

// A mode at an open consumer follows from the set alone, whichever reason came first;
// the stronger reason wins, and when it goes the weaker one is in force.
func TestStrongerReasonsWin(t *testing.T) {
	for _, tc := range []struct {
		holds Holds
		t     Traits
		want  Intake
	}{
		{None, Traits{}, Receiving},
		{None, Traits{KeepsPlace: true, ThrottlePauses: true}, Receiving},
		{Operator, Traits{}, Paused},
		{Throttle, Traits{}, Receiving},
		{Throttle, Traits{ThrottlePauses: true}, Paused},
		{Throttle, Traits{OpenedPaused: true}, Paused},
		{Operator | Throttle, Traits{}, Paused},
		{Middleware, Traits{}, Away},
		{Middleware, Traits{KeepsPlace: true}, InPlace},
		{Middleware | Operator, Traits{}, Away},
		{Middleware | Operator, Traits{KeepsPlace: true}, InPlace},
		{Middleware | Throttle, Traits{KeepsPlace: true}, InPlace},
		{AllHolds, Traits{}, Away},
	} {
		if got := (Axes{Sub: Open, Holds: tc.holds}).Intake(tc.t); got != tc.want {
			t.Errorf("%v with %+v: %v, want %v", tc.holds, tc.t, got, tc.want)
		}
	}
}

// A stop goes one way, and a failed start goes through its stages without being one.
func TestStopGoesForward(t *testing.T) {
	all(func(a Axes) {
		for s := range Stop(Stops) {
			if got := a.Forward(s); got.Stop < a.Stop || got.Stop < s || got.Sub != a.Sub || got.Holds != a.Holds {
				t.Errorf("%+v forward to %v: %+v", a, s, got)
			}
		}
		if a.Sub == Failed && a.Stopping() {
			t.Errorf("%+v is a stop that nobody asked for", a)
		}
		if a.Stop != NoStop && a.Sub != Failed && !a.Stopping() {
			t.Errorf("%+v is no stop", a)
		}
	})
}

func TestNames(t *testing.T) {
	all(func(a Axes) {
		if a.Sub.String() == "" || a.Holds.String() == "" || a.Stop.String() == "" {
			t.Errorf("%d %d %d has no name", a.Sub, a.Holds, a.Stop)
		}
	})
	if got := AllHolds.String(); got != "operator+middleware+throttle" {
		t.Errorf("all holds are %q", got)
	}
	for i := range Intake(Intakes) {
		if i.String() == "" {
			t.Errorf("mode %d has no name", i)
		}
	}
}
