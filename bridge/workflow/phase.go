package workflow

import "fmt"

// Phase is how far a move has come. It names what is done; what is awaited is in its rule.
type Phase uint8

// The phases of a cut-over, in their order, and those of the way back.
const (
	Planned  Phase = iota // nothing has changed
	Seeded                // the target exists and the group of the new consumers has its positions
	OldEnded              // the old consumers have ended: messages are moved from here on
	Flows                 // messages arrive at the new side
	NewRuns               // the new consumers run
	Quiet                 // nothing arrives at the old side any more
	Drained               // the old side is empty, dead letters included
	Finished              // the old side has been given up

	Returning // a rollback has begun: the new consumers are to end
	NewEnded  // the new consumers have ended: messages are moved back from here on
	FlowsBack // messages arrive at the old side again
	OldRuns   // the old consumers run again
	QuietBack // nothing arrives at the new side any more
	phases    // their number
)

// Direction is the way in which messages are moved.
type Direction uint8

// The directions.
const (
	Still Direction = iota // no message is moved
	Forth                  // from the old side to the new one
	Back                   // from the new side to the old one
)

// rule is one row of the table of phases.
type rule struct {
	name  string
	moves Direction // what runs while the phase lasts
	next  Phase     // what follows when its wait is over
	undo  Phase     // what a rollback makes of it
	step  int       // of the 6 of a cut-over, or of the 5 of a rollback; 0 = none
	waits string    // what an operator has to do, or what is awaited
}

// rules is the table. Each phase of a rollback has itself as undo: a rollback goes on.
func rules(p Phase) rule {
	switch p {
	case Planned:
		return rule{"planned", Still, Seeded, Planned, 1, "the target is prepared"}
	case Seeded:
		return rule{"seeded", Still, OldEnded, Planned, 2, "old consumers: stop or drain them now"}
	case OldEnded:
		return rule{"old-ended", Forth, Flows, Returning, 3, "forwarding begins"}
	case Flows:
		return rule{"flows", Forth, NewRuns, Returning, 4, "new consumers: start them now"}
	case NewRuns:
		return rule{"new-runs", Forth, Quiet, Returning, 5, "producers: switch them to the new side, in any order"}
	case Quiet:
		return rule{"quiet", Forth, Drained, Returning, 6, "moving the rest of the old side"}
	case Drained:
		return rule{"drained", Still, Drained, Returning, 0, ""}
	case Finished:
		return rule{"finished", Still, Finished, Finished, 0, ""}
	case Returning:
		return rule{"returning", Still, NewEnded, Returning, 1, "new consumers: stop or drain them now"}
	case NewEnded:
		return rule{"new-ended", Back, FlowsBack, NewEnded, 2, "moving back begins: what the new consumers have not done"}
	case FlowsBack:
		return rule{"flows-back", Back, OldRuns, FlowsBack, 3, "old consumers: start them now"}
	case OldRuns:
		return rule{"old-runs", Back, QuietBack, OldRuns, 4, "producers: switch them back to the old side"}
	case QuietBack:
		return rule{"quiet-back", Back, Planned, QuietBack, 5, "moving the rest of the new side back"}
	case phases:
	}
	return rule{name: fmt.Sprintf("phase %d", p)}
}

// String is the name that the state file has.
func (p Phase) String() string { return rules(p).name }

// Moves is the way in which messages are moved in this phase.
func (p Phase) Moves() Direction { return rules(p).moves }

// Next is the phase that follows.
func (p Phase) Next() Phase { return rules(p).next }

// Undo is what a rollback makes of the phase at once. Planned: nothing has been moved.
func (p Phase) Undo() Phase { return rules(p).undo }

// InRollback tells whether the phase belongs to the way back.
func (p Phase) InRollback() bool { return p >= Returning && p < phases }

// Step is the number of the step that the phase is in, and how many there are.
func (p Phase) Step() (n, of int) {
	if p.InRollback() {
		return rules(p).step, 5
	}
	return rules(p).step, 6
}

// Waits says what has to happen for the phase to end.
func (p Phase) Waits() string { return rules(p).waits }

// Phases are all phases.
func Phases() []Phase {
	all := make([]Phase, 0, phases)
	for p := range phases {
		all = append(all, p)
	}
	return all
}

// ParsePhase is the phase of that name.
func ParsePhase(name string) (Phase, bool) {
	for _, p := range Phases() {
		if p.String() == name {
			return p, true
		}
	}
	return Planned, false
}

// String names the direction.
func (d Direction) String() string {
	switch d {
	case Forth:
		return "forward"
	case Back:
		return "back"
	case Still:
	}
	return "none"
}
