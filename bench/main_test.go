package main

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// What cannot be measured is refused, and names what there is: it does not end as if all
// had been held.
func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	given := func(name string) string { return map[string]string{"AMQP_URL": "amqp://h"}[name] }
	good := options{rounds: 8, scale: 1}
	for _, c := range []struct {
		o    options
		only string
		want string // "" = nothing is wrong
	}{
		{good, "", ""}, {good, "hot,rabbit", ""}, {good, "scale", ""},
		{good, "rabit", `unknown case "rabit"; the cases are hot poison`}, {good, "hot,", `unknown case ""`}, {good, "kafka/no-such", "unknown case"},
		{good, "kafka", "KAFKA_ADDRS"}, {good, "rabbit,kafka/no-op", "case kafka/no-op needs KAFKA_ADDRS"},
		{options{rounds: 0, scale: 1}, "", "-rounds 0"}, {options{rounds: 1, scale: 0}, "", "-scale 0"}, {options{rounds: 1, scale: math.NaN()}, "", "-scale NaN"},
	} {
		err := c.o.refuse(c.only, given)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, -case %q: %v, want %q", c.o, c.only, err, c.want)
		}
	}
}

// A case that fails leaves what stood on the page of it, and what was measured before.
func TestCaseThatFailedHasNoSection(t *testing.T) {
	r := &report{w: io.Discard}
	r.begin("hot", 8)
	r.table("measured", []string{"a"}, [][]string{{"1"}})
	r.begin("drain", 8)
	r.table("unfinished", []string{"a"}, [][]string{{"2"}})
	r.drop()
	if len(r.sections) != 1 || r.sections[0].name != "hot" {
		t.Errorf("%d sections", len(r.sections))
	}
	old := "<!-- case drain -->\nbefore\n<!-- end -->\n"
	got := mergePage(old, map[string]string{"hot": r.sections[0].text(options{rounds: 8, scale: 1}, "here")})
	if !strings.Contains(got, "before") || !strings.Contains(got, "| 1 |") || strings.Contains(got, "unfinished") || strings.Contains(got, "Reduced") {
		t.Error(got)
	}
	if again := mergePage(got, nil); again != got || strings.Count(got, "## How much faster") != 1 {
		t.Errorf("written again it is another page:\n%s", again)
	}
}

// A run that is not whole says so in each of its sections.
func TestReducedRunSaysSo(t *testing.T) {
	for _, o := range []options{{rounds: 7, scale: 1}, {rounds: 8, scale: 0.5}} {
		s := &section{name: "hot", rounds: o.rounds}
		if !strings.Contains(s.text(o, ""), "Reduced run") {
			t.Errorf("%+v: nothing is said", o)
		}
	}
}

// Rounds are interleaved, each begins with another variant, and a failure names its own.
func TestRoundsAreInterleaved(t *testing.T) {
	var ran strings.Builder
	add := func(name string) variant {
		return variant{name, func() (sample, error) { ran.WriteString(name); return sample{n: 1}, nil }}
	}
	if _, err := interleave(3, []variant{add("a"), add("b"), add("c")}); err != nil || ran.String() != "abcbcacab" {
		t.Errorf("%s, %v", ran.String(), err)
	}
	bad := variant{"bad", func() (sample, error) { return sample{}, errors.New("no broker") }}
	if _, err := interleave(1, []variant{bad}); err == nil || !strings.Contains(err.Error(), "bad, round 1: no broker") {
		t.Error(err)
	}
}
