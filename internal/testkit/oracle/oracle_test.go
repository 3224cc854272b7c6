package oracle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/internal/testkit/oracle"
)

// The oracle itself must be able to say no.
func TestEveryKindOfDamageIsSeen(t *testing.T) {
	l := oracle.New()
	for _, id := range []string{"1", "2", "3", "4"} {
		l.Published(id, "k")
	}
	l.Begin("2", "k")(true)
	end1 := l.Begin("1", "k") // after 2: inverted
	l.Begin("3", "k")(true)   // while 1 runs: overlap
	end1(true)
	l.Begin("3", "k")(true) // twice
	l.Dead("2")             // done and dead
	l.Dead("2")             // dead twice
	l.Begin("9", "")(true)  // foreign
	got := l.Report().Problems(oracle.Allow{Ordered: true})
	for _, want := range []string{"lost: 1", "done and dead: 1", "dead twice: 1", "never published: 1", "done twice: 1", "out of order: 2", "overlapping in their key: 1"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

func TestNothingWrongIsNothingSaid(t *testing.T) {
	l := oracle.New()
	l.Published("1", "k")
	l.Published("2", "k")
	l.Begin("1", "k")(false)
	l.Begin("1", "k")(true)
	l.Begin("2", "k")(false)
	l.Dead("2")
	if got := l.Report().Problems(oracle.Allow{Ordered: true}); len(got) > 0 {
		t.Error(got)
	}
}

func TestFileSurvivesItsWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := oracle.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Published("1", "k")
	l.Begin("1", "k") // never ends
	l.Killed(os.Getpid())
	l.Begin("1", "k")(true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	back, err := oracle.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := back.Report()
	if r.Done != 1 || r.Calls != 2 || len(r.Problems(oracle.Allow{Ordered: true})) > 0 {
		t.Errorf("%+v", r)
	}
}
