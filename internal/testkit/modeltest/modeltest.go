package modeltest

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// Check runs a few sequences, always the same, or as many as LONGSHORE_MODEL or
// -rapid.checks says, always others. The test that calls it must not be parallel: rapid's
// settings are for all.
func Check(t *testing.T, few int, f func(t *rapid.T)) {
	t.Helper()
	checks, seed := strconv.Itoa(few), "1"
	if n := os.Getenv("LONGSHORE_MODEL"); n != "" {
		checks, seed = n, "0"
	}
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "rapid.checks":
			checks, seed = f.Value.String(), "0"
		case "rapid.seed":
			seed = f.Value.String()
		}
	})
	for name, value := range map[string]string{"rapid.checks": checks, "rapid.seed": seed} {
		if err := flag.Lookup(name).Value.Set(value); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) { inBubble(t, rt, f) })
}

// inBubble takes what ends f, a failed check also, out of the bubble.
func inBubble(t *testing.T, rt *rapid.T, f func(t *rapid.T)) {
	var caught any
	synctest.Test(t, func(*testing.T) {
		defer func() { caught = recover() }()
		f(rt)
	})
	switch {
	case caught == nil:
	case fmt.Sprintf("%T", caught) == "rapid.invalidData":
		panic(caught) //nolint:forbidigo // rapid's way; the line tells it a sequence that is none from a failure
	default:
		panic(caught) //nolint:forbidigo // rapid's way
	}
}
