package container

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/container/internal/state"
)

// One place judges a container: its state, whether it is live, ready and accepting, and
// what limits it. The health checks, `ctl status`, `ctl why` and the console all say what
// is found here, so that none of them names another cause.

// weight is how much a cause matters to a probe.
type weight int

const (
	// limits: all is well, and this is what keeps more from being done.
	limits weight = iota
	// odd: the container is ready, and a person should know.
	odd
	// stops: the container is not ready.
	stops
	// ends: the container has ended by itself, and only a restart helps.
	ends
)

// cause is one thing that limits a container, in parts.
type cause struct {
	weight weight    // decides which cause is named, and whether the container is ready
	by     string    // one of the constants
	text   string    // what is the matter; "": nothing was found
	since  time.Time // zero: not known
	who    string    // intervened; empty: no person or tool did
	do     string    // what shows more or ends it
}

// sentence joins the parts.
func (c cause) sentence(now time.Time) Bottleneck {
	b := Bottleneck{By: c.by, Text: c.text, Since: c.since, Who: c.who, Do: c.do}
	if !c.since.IsZero() {
		b.Text += ", since " + clockText(c.since, now)
	}
	if c.do != "" {
		b.Text += "; " + c.do
	}
	return b
}

// clockText leaves the date out of a time of the last hours.
func clockText(t, now time.Time) string {
	if now.Sub(t) < 12*time.Hour {
		return t.Local().Format(time.TimeOnly)
	}
	return t.Local().Format(time.DateTime)
}

// looks are the questions, in the order in which the answers are named where several
// weigh the same: what is wrong comes first, then what keeps a healthy container from
// doing more.
//
//nolint:gochecknoglobals // a constant table
var looks = [...]func(*situation) cause{
	(*situation).throttledTo, (*situation).stuckHandlers, (*situation).unmovableLetters, (*situation).failures, (*situation).backedUp,
	(*situation).endless, (*situation).slow, (*situation).blockedPartition, (*situation).notConsuming, (*situation).atLimit, (*situation).idle,
}

// diagnose fills in what is derived: a pure function of everything else.
func (s *situation) diagnose() Stats {
	st := &s.Stats
	st.State = s.state()
	st.Accepting = s.begun && s.axes.Accepts() && st.Permits != 0 && st.Rate != 0 && !s.doubts // the gate may know more than the axes
	if !s.consuming() {
		st.ConsumerCapacity = 0
	}
	c := s.cause()
	if c.text == "" {
		c.text = fmt.Sprintf("nothing: %d of %d workers are busy, and they follow the load", st.Busy, st.Workers)
	}
	st.Bottleneck = c.sentence(s.now)
	st.Live, st.Ready = c.weight < ends, c.weight < stops
	if c.weight >= odd {
		st.Reason = st.Bottleneck.Text
	}
	return *st
}

// cause finds the heaviest cause, the first one of these. While the container does not run
// or is held on purpose, what goes on inside does not matter.
func (s *situation) cause() (named cause) {
	if c := s.lifecycle(); c.text != "" {
		return c
	}
	if c := s.intakeHeld(); c.text != "" {
		return c
	}
	for _, look := range looks {
		if c := look(s); c.text != "" && (named.text == "" || c.weight > named.weight) {
			named = c
		}
	}
	return named
}

// state is the state that is reported.
func (s *situation) state() State {
	if !s.begun {
		return StateNew
	}
	return stateOf(s.axes.Report(s.keepsPlace, s.worksOff))
}

func stateOf(r state.Report) State {
	switch r {
	case state.ReportStarting:
		return StateStarting
	case state.ReportRecovering:
		return StateRecovering
	case state.ReportPaused:
		return StatePaused
	case state.ReportDraining:
		return StateDraining
	case state.ReportStopped:
		return StateStopped
	case state.ReportRunning:
	}
	return StateRunning
}

// consuming says whether a message that comes now could reach a worker at all, so that a
// share of free workers means something.
func (s *situation) consuming() bool {
	return s.begun && s.axes.Sub == state.Open && !s.axes.Stopping() && !s.axes.Holds.Has(state.Middleware)
}
