package amqp

import (
	"errors"
	"testing"
)

// The table of endState's comment, walked.
func TestEndStates(t *testing.T) {
	type seen struct{ leaving, exhausted, holdsReturns, writable bool }
	look := func(s endState) seen { return seen{s.leaving(), s.exhausted(), s.holdsReturns(), s.writable()} }
	for name, c := range map[string]struct {
		do   func(*endState)
		want seen
	}{
		"open":                   {func(*endState) {}, seen{writable: true}},
		"leaving":                {(*endState).leave, seen{leaving: true, holdsReturns: true, writable: true}},
		"canceled":               {func(s *endState) { s.leave(); s.cancel(true) }, seen{leaving: true, exhausted: true, writable: true}},
		"ignoring":               {func(s *endState) { s.leave(); s.cancel(false) }, seen{leaving: true, exhausted: true, writable: true}},
		"canceled, closing":      {func(s *endState) { s.leave(); s.cancel(true); s.leave() }, seen{leaving: true, exhausted: true, writable: true}},
		"canceled after all":     {func(s *endState) { s.cancel(false); s.cancel(true) }, seen{leaving: true, exhausted: true, writable: true}},
		"the last writes":        {func(s *endState) { s.leave(); s.cancel(true); s.written = true }, seen{leaving: true}},
		"taken away":             {func(s *endState) { s.written = true }, seen{}},
		"taken away and leaving": {func(s *endState) { s.written = true; s.leave() }, seen{leaving: true, holdsReturns: true}},
		"ended":                  {func(s *endState) { s.err = errors.New("lost") }, seen{}},
	} {
		var s endState
		c.do(&s)
		if got := look(s); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if s.ended() != (name == "ended") {
			t.Errorf("%s: ended is %v", name, s.ended())
		}
	}
}
