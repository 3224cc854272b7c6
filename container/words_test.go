package container

import (
	"strings"
	"testing"
	"time"
)

// A stop that abandoned nothing has no advice about handlers.
func TestTheAdviceOfADrainFitsWhatWasLeft(t *testing.T) {
	for _, c := range []struct {
		rep  Report
		want string
		not  string
	}{
		{Report{Unflushed: 3, Budget: time.Second}, "check the broker", "handlers"},
		{Report{Unflushed: 3, Budget: 25 * time.Second}, "CancelGrace", "handlers"},
		{Report{Abandoned: 1, Budget: time.Second}, "let handlers obey their context", "confirm"},
		{Report{Abandoned: 1, Budget: 25 * time.Second}, "raise DrainTimeout", "confirm"},
	} {
		got := (&DrainError{Report: &c.rep, wanted: 25 * time.Second}).hint()
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("%+v: %q", c.rep, got)
		}
	}
}
