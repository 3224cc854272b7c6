package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/tools/faultindex"
)

// stream is what go test -json says of two tests: one whose parts passed, had no broker
// and asked for what is not there, and one that panicked.
const stream = `{"Action":"run","Test":"TestA"}
{"Action":"pass","Test":"TestA/memory"}
{"Action":"output","Test":"TestA/kafka","Output":"    x.go:1: not run here: set KAFKA_ADDRS, or use make test\\n"}
{"Action":"skip","Test":"TestA/kafka"}
{"Action":"output","Test":"TestA/seek","Output":"    x.go:2: it cannot seek\\n"}
{"Action":"skip","Test":"TestA/seek"}
{"Action":"pass","Test":"TestA","Elapsed":1}
{"Action":"run","Test":"TestB"}
`

// What had no turn has no result: not that of a former run, and none that passed.
func TestEveryTestHasAnOutcomeOfThisRun(t *testing.T) {
	results, _, err := read(strings.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	results = complete(results, []string{"TestA", "TestB", "TestC"}, errors.New("exit status 2"))
	for name, want := range map[string]outcome{
		"TestA": {Result: passed, Seconds: 1, Skipped: 2, Parts: 4, Absent: 1}, "TestB": {Result: failed}, "TestC": {Result: notRun},
	} {
		if results[name] != want {
			t.Errorf("%s: %+v, want %+v", name, results[name], want)
		}
	}
	all := complete(map[string]outcome{"TestA": {Result: passed}}, []string{"TestA"}, errors.New("a leak"))
	if all["TestA"].Result != failed {
		t.Errorf("the package failed, and its test has %+v", all["TestA"])
	}
}

// A requirement holds if all of its tests ran to their end; one that cannot be told to is
// an error, and so is one that does not.
func TestVerdictIsHonest(t *testing.T) {
	index, err := faultindex.Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	selected, err := index.Select("F-C07")
	if err != nil {
		t.Fatal(err)
	}
	tests := index.Tests("F-C07")
	for _, c := range []struct {
		first, others outcome
		state, text   string
	}{
		{outcome{Result: passed}, outcome{Result: passed}, stateHolds, ""},
		{outcome{Result: passed, Skipped: 1}, outcome{Result: passed}, stateHolds, ""},
		{outcome{Result: passed, Absent: 1}, outcome{Result: passed}, statePartly, ""},
		{outcome{Result: notRun}, outcome{Result: passed}, statePartly, ""},
		{outcome{Result: failed}, outcome{Result: passed}, stateFailed, "1 requirements do not hold: F-C07"},
		{outcome{Result: notRun}, outcome{Result: notRun}, stateNotRun, "are unproven"},
		{outcome{}, outcome{}, stateNotRun, "are unproven"},
	} {
		s := &store{Tests: map[string]record{}}
		for i, test := range tests {
			o := c.others
			if i == 0 {
				o = c.first
			}
			s.Tests[test.Package+"."+test.Name] = record{outcome: o}
		}
		if got := s.state(tests, selected[0]); got != c.state {
			t.Errorf("%+v, %+v: %s, want %s", c.first, c.others, got, c.state)
		}
		err := verdict(index, s, selected)
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v, %+v: %v, want %q", c.first, c.others, err, c.text)
		}
	}
}

func TestFoldersAreChosen(t *testing.T) {
	for _, c := range []struct {
		folder, listed string
		want           bool
	}{
		{"./faults", "", true}, {"./transport/kafka", "./transport", true}, {"./transport/kafka", "./container,./transport/kafka", true},
		{"./transporter", "./transport", false}, {"./container", "./container/autoscale", false},
	} {
		if got := below(c.folder, c.listed); got != c.want {
			t.Errorf("%q in %q: %v", c.folder, c.listed, got)
		}
	}
}
