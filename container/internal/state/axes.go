package state

// Subscription is how a container stands with its broker.
type Subscription uint8

// The subscriptions. Only Open has a consumer.
const (
	// Starting: the first opening has not been decided yet.
	Starting Subscription = iota
	// Open: a consumer is subscribed.
	Open
	// Lost: the consumer ended, or the source could not be opened; it is tried again.
	Lost
	// Suspended: the consumer was cancelled because a middleware holds the intake, or
	// the source was not opened for that reason. What it had buffered went back.
	Suspended
	// Retained is Suspended where the broker counts returns: what the consumer had
	// buffered was taken in and is worked off before the container subscribes again.
	Retained
	// Yielded: a hold outlasted the time for which the broker leaves deliveries
	// unsettled. Everything went back, and the container subscribes when it ends.
	Yielded
	// Failed: the first start failed for good.
	Failed

	// Subscriptions is how many there are.
	Subscriptions = iota
)

// String names the subscription for logs and tests.
func (s Subscription) String() string {
	return [...]string{"starting", "open", "lost", "suspended", "retained", "yielded", "failed"}[s]
}

// Holds is the set of reasons why no work may start. Each reason is taken out by
// whoever put it in: a resume by the operator leaves the breaker's hold alone.
type Holds uint8

// The reasons.
const (
	// Operator: Pause, or StartPaused. What was received is still worked on.
	Operator Holds = 1 << iota
	// Middleware: a middleware holds the intake, as a breaker that is open. Nothing
	// starts, whether it was received or not.
	Middleware
	// Throttle: the gate gives out 0 permits or a rate of 0. Nothing starts, because
	// the gate refuses it.
	Throttle

	// None: work may start.
	None Holds = 0
	// AllHolds is every reason at once.
	AllHolds = Operator | Middleware | Throttle
)

// Has says whether any of the reasons is in the set.
func (h Holds) Has(any Holds) bool { return h&any != 0 }

// With returns the set with the reason in it, or without it.
func (h Holds) With(reason Holds, on bool) Holds {
	if on {
		return h | reason
	}
	return h &^ reason
}

// String lists the reasons.
func (h Holds) String() string {
	s := ""
	for i, name := range []string{"operator", "middleware", "throttle"} {
		if h.Has(1 << i) {
			if s != "" {
				s += "+"
			}
			s += name
		}
	}
	if s == "" {
		return "none"
	}
	return s
}

// Stop is how far a stop has come. It only moves forward.
type Stop uint8

// The stages.
const (
	// NoStop: the container runs.
	NoStop Stop = iota
	// FinishWork: what was received still starts, because the broker counts what is
	// given back.
	FinishWork
	// ReturnOnly: nothing starts any more; what has not started goes back.
	ReturnOnly
	// Closing: nothing is worked on; the consumers are flushed and closed.
	Closing
	// Stopped: the run is over.
	Stopped

	// Stops is how many there are.
	Stops = iota
)

// String names the stage.
func (s Stop) String() string {
	return [...]string{"none", "finish work", "return only", "closing", "stopped"}[s]
}

// Axes is where a container stands. The zero value is one that starts.
type Axes struct {
	Sub   Subscription // the subscription
	Holds Holds        // what keeps work from starting
	Stop  Stop         // how far a stop has come
}

// Stopping says whether a stop was asked for, or is over. A first start that failed
// goes through the stages of a stop too, and is none.
func (a Axes) Stopping() bool { return a.Stop != NoStop && a.Sub != Failed }

// Starts says whether a delivery that was received may be given to a handler. The
// gate has its own word besides.
func (a Axes) Starts() bool { return a.Stop < ReturnOnly && !a.Holds.Has(Middleware) }

// Receives says whether the container may ask its consumer for more.
func (a Axes) Receives() bool {
	if a.Sub != Open || a.Holds.Has(Middleware) {
		return false
	}
	return a.Stop == NoStop && !a.Holds.Has(Operator) || a.Stop == FinishWork
}

// Accepts says whether a message that arrives at the broker now would be worked on:
// without it more instances bring something, and a larger window here does not.
func (a Axes) Accepts() bool { return a.Sub == Open && a.Holds == None && a.Stop == NoStop }

// StopWith is the stage in which a stop begins. Work is finished only where giving
// it back costs something, and only if work was allowed to start at all: a stop while
// something holds the container starts nothing.
func (a Axes) StopWith(countsReturns bool) Stop {
	if a.Sub == Open && countsReturns && a.Holds == None {
		return FinishWork
	}
	return ReturnOnly
}

// Forward moves the stop on, never back.
func (a Axes) Forward(s Stop) Axes {
	a.Stop = max(a.Stop, s)
	return a
}

// WantsSubscription says whether the source is to be opened as far as the axes go;
// when, and whether retained work has to be finished first, is the caller's.
// opensPaused says that the source can be opened without taking anything.
func (a Axes) WantsSubscription(opensPaused bool) bool {
	if a.Stop != NoStop || a.Holds.Has(Middleware) {
		return false
	}
	switch a.Sub {
	case Starting, Lost, Suspended, Retained:
		return a.Holds == None || opensPaused
	case Yielded: // an operator's pause is what it was given up for
		return !a.Holds.Has(Operator) && (a.Holds == None || opensPaused)
	default:
		return false
	}
}
