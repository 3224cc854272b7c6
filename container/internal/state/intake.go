package state

// Intake is what becomes of messages at the broker: the mode that the three axes
// and the consumer's traits come to.
type Intake uint8

// The modes.
const (
	// NoIntake: there is no subscription, and nothing holds it back but the broker.
	NoIntake Intake = iota
	// Receiving: messages flow.
	Receiving
	// Paused: subscribed; the transport takes nothing, received work is done.
	Paused
	// InPlace: subscribed and paused, because cancelling would give up a role or a
	// partition; received work waits.
	InPlace
	// Away: not subscribed on purpose, until a hold ends.
	Away
	// Finishing: a stop; what was received is worked off.
	Finishing
	// Returning: a stop; what was not started goes back.
	Returning
	// Ended: the run is closing or over.
	Ended

	// Intakes is how many there are.
	Intakes = iota
)

// String names the mode.
func (i Intake) String() string {
	return [...]string{"none", "receiving", "paused", "in place", "away", "finishing", "returning", "ended"}[i]
}

// Traits is what the mode depends on besides the axes.
type Traits struct {
	// KeepsPlace: cancelling the consumer would give up a role, partitions or a queue, so
	// a hold by a middleware pauses it instead.
	KeepsPlace bool
	// ThrottlePauses: the broker's window follows the container's, so that a throttle
	// of 0 can stop the transport without losing a role or a lease.
	ThrottlePauses bool
	// OpenedPaused: the consumer was opened without taking anything, and stays so
	// until every hold is over.
	OpenedPaused bool
}

// Intake is the mode.
func (a Axes) Intake(t Traits) Intake {
	switch {
	case a.Stop >= Closing:
		return Ended
	case a.Stop == ReturnOnly:
		return Returning
	case a.Stop == FinishWork:
		return Finishing
	}
	switch a.Sub {
	case Open:
		return a.openIntake(t)
	case Suspended, Retained, Yielded:
		return Away
	default:
		return NoIntake
	}
}

// openIntake is the mode of a container that is subscribed and runs.
func (a Axes) openIntake(t Traits) Intake {
	switch {
	case a.Holds.Has(Middleware) && t.KeepsPlace:
		return InPlace
	case a.Holds.Has(Middleware):
		return Away // as soon as the consumer is cancelled
	case a.Holds.Has(Operator), a.Holds.Has(Throttle) && (t.ThrottlePauses || t.OpenedPaused):
		return Paused
	default:
		return Receiving
	}
}

// PausesTransport says whether the transport is to take nothing from the broker.
// During a stop that follows a pause it stays paused; a throttle that reaches 0
// during a stop does not pause what is to be worked off.
func (a Axes) PausesTransport(t Traits) bool {
	if a.Sub != Open {
		return false
	}
	if a.Stop != NoStop {
		a.Holds &^= Throttle
	}
	a.Stop = NoStop
	mode := a.Intake(t)
	return mode == Paused || mode == InPlace
}

// Report is the state that a container reports to people and probes.
type Report uint8

// The reports, in the order of a life.
const (
	ReportStarting Report = iota
	ReportRunning
	ReportRecovering
	ReportPaused
	ReportDraining
	ReportStopped
)

// Report is what the container says of itself. working: it has no subscription and
// works off what a hold left here (Retained), so it does not wait for the broker.
func (a Axes) Report(stays, working bool) Report {
	switch {
	case a.Stop == Stopped:
		return ReportStopped
	case a.Stopping():
		return ReportDraining
	}
	switch a.Sub {
	case Starting, Failed:
		return ReportStarting
	case Lost:
		return ReportRecovering
	case Yielded:
		if a.Holds != None {
			return ReportPaused
		}
		return ReportRecovering
	case Suspended, Retained:
		switch {
		case a.Sub == Suspended && a.Holds.Has(Operator|Throttle) && !a.Holds.Has(Middleware):
			return ReportPaused // the source cannot be opened without taking something
		case a.Sub == Retained && working:
			if a.Holds.Has(Operator) {
				return ReportPaused
			}
			return ReportRunning
		}
		return ReportRecovering
	}
	if a.Holds.Has(Operator) || a.Holds.Has(Middleware) && stays {
		return ReportPaused
	}
	return ReportRunning
}
