package workflow

import (
	"fmt"
	"time"
)

// Side is one broker's side of a route.
type Side struct {
	Ready     int64 // messages that could be delivered now, or that the group has not done
	Unsettled int64 // delivered and not settled
	Delayed   int64 // retries and delayed messages, to be ready later
	Consumers int64 // besides the bridge itself; -1 = the broker does not count them
}

// Messages is all that is there.
func (s Side) Messages() int64 { return s.Ready + s.Unsettled + s.Delayed }

// Observation is what a decision is made of.
type Observation struct {
	Old, New    Side
	Parked      int64         // messages that the target refused
	DeadLetters int64         // on the side that is emptied, where the route has a place for them
	Moved       int64         // by the mover that runs
	Silence     time.Duration // since the last message arrived at the side that is emptied
	Assured     bool          // the operator says that the consumers are as they should be
}

// Verdict is what a phase does next.
type Verdict uint8

// The verdicts.
const (
	Wait    Verdict = iota // not yet
	Advance                // the phase is over
	Refuse                 // it cannot end: the operator has to do something first
	Ask                    // the broker cannot tell: the operator has to
)

// Decision is a verdict with its reason.
type Decision struct {
	Verdict Verdict
	Why     string // what is awaited, or refused; for people
	Hint    string // with Refuse: what to do
}

// Decide says whether a phase is over. quiet is how long nothing may have arrived.
func (p Phase) Decide(o Observation, quiet time.Duration) Decision {
	switch p {
	case Planned:
		return Decision{Verdict: Advance}
	case Seeded:
		return ended(o.Old, o.Assured, "old")
	case Returning:
		return ended(o.New, o.Assured, "new")
	case OldEnded:
		return flows(o.Old, o.Moved)
	case NewEnded:
		return flows(o.New, o.Moved)
	case Flows:
		return started(o.New, o.Assured, "new")
	case FlowsBack:
		return started(o.Old, o.Assured, "old")
	case NewRuns:
		return silent(o.Old, o, quiet)
	case OldRuns:
		return silent(o.New, o, quiet)
	case Quiet:
		return empty(o.Old, o)
	case QuietBack:
		return empty(o.New, o)
	case Drained, Finished, phases:
	}
	return Decision{Verdict: Wait, Why: "nothing follows by itself"}
}

// ended: the consumers of a side are gone, and with them what they held.
func ended(s Side, assured bool, which string) Decision {
	switch {
	case s.Consumers > 0:
		return Decision{Wait, fmt.Sprintf("%s consumers: %d still there", which, s.Consumers), ""}
	case s.Unsettled > 0:
		return Decision{Wait, fmt.Sprintf("%s with a consumer of the %s side", messages(s.Unsettled, " is", " are"), which), ""}
	case s.Consumers < 0 && !assured:
		return Decision{Ask, "the broker does not count consumers: have all " + which + " consumers ended?", ""}
	}
	return Decision{Verdict: Advance}
}

// flows: messages are moved, or none waits. The consumers need not wait until all are: what is
// moved comes in its order, so an early start only makes the gap shorter.
func flows(s Side, moved int64) Decision {
	if s.Messages() == s.Delayed || moved > 0 {
		return Decision{Verdict: Advance}
	}
	return Decision{Wait, messages(s.Ready, " to move", " to move"), ""}
}

func started(s Side, assured bool, which string) Decision {
	switch {
	case s.Consumers > 0:
		return Decision{Verdict: Advance}
	case s.Consumers < 0 && !assured:
		return Decision{Ask, "the broker does not count consumers: do the " + which + " consumers run?", ""}
	case s.Consumers < 0:
		return Decision{Verdict: Advance}
	}
	return Decision{Wait, "no " + which + " consumer yet", ""}
}

// silent: nothing has arrived for long enough, and nothing waits. Delayed messages are left to
// the next phase.
func silent(s Side, o Observation, quiet time.Duration) Decision {
	switch {
	case s.Ready+s.Unsettled > 0:
		return Decision{Wait, messages(s.Ready+s.Unsettled, " to move", " to move"), ""}
	case o.Silence < quiet:
		return Decision{Wait, fmt.Sprintf("quiet for %s of %s", o.Silence.Round(time.Second), quiet), ""}
	}
	return Decision{Verdict: Advance}
}

// empty: no message remains, parked ones and dead letters included.
func empty(s Side, o Observation) Decision {
	switch {
	case s.Messages() > 0 && s.Delayed == s.Messages():
		return Decision{Wait, messages(s.Delayed, " waits for its delay", " wait for their delay"), ""}
	case s.Messages() > 0:
		return Decision{Wait, messages(s.Messages(), " to move", " to move"), ""}
	case o.Parked > 0:
		return Decision{Refuse, messages(o.Parked, " is parked", " are parked"), "remove the cause and run longshore bridge unpark, or move them away"}
	case o.DeadLetters > 0:
		return Decision{Wait, counted(o.DeadLetters, "dead letter", " to move", " to move"), ""}
	}
	return Decision{Verdict: Advance}
}

// messages is "1 message is parked" or "2 messages are parked", with the two endings.
func messages(n int64, one, more string) string { return counted(n, "message", one, more) }

// counted is a number of things, with what follows for one and for several.
func counted(n int64, what, one, more string) string {
	if n == 1 {
		return "1 " + what + one
	}
	return fmt.Sprintf("%d %ss%s", n, what, more)
}
