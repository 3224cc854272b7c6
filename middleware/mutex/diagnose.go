package mutex

// Found says whether something was found where one looked.
type Found uint8

// The answers. The zero value is Unknown: not every queue can be looked into without
// harm, and a message that a consumer holds is invisible.
const (
	Unknown Found = iota
	No
	Yes
)

// String returns "unknown", "no" or "yes".
func (f Found) String() string {
	switch f {
	case No:
		return "no"
	case Yes:
		return "yes"
	case Unknown:
	}
	return "unknown"
}

// Lookup holds the known facts about one mutex id.
type Lookup struct {
	ID string
	// Row: a mutex row exists. Locked: an open transaction has it.
	Row, Locked Found
	// Outbox: its row in the outbox exists.
	Outbox Found
	// DeadLetter and Queue: the message is in the dead-letter queue, in the queue.
	DeadLetter, Queue Found
}

// State names what [Diagnose] found.
type State string

// The states.
const (
	StateWorking      State = "working"      // being processed, its copy is dead-lettered or waits
	StateFailed       State = "failed"       // normal delivery failed
	StateQueued       State = "queued"       // waits, or is being processed
	StatePending      State = "pending"      // committed, not published yet
	StateOrphan       State = "orphan"       // committed, and in no queue
	StateCopyDone     State = "copy-done"    // a copy of a handled message
	StateUnprotected  State = "unprotected"  // in both queues without a row
	StateCopyWaiting  State = "copy-waiting" // in the queue without a row
	StateNothing      State = "nothing"      // nothing outstanding
	StateInsufficient State = "insufficient" // more must be known
)

// Action is what to do about a state.
type Action string

// The actions. Only Rerun, Delete and Relay change anything, and only those are
// offered to be applied.
const (
	ActionNone        Action = "nothing"
	ActionWait        Action = "wait"
	ActionRerun       Action = "rerun"       // send it from the dead-letter queue to the queue
	ActionDelete      Action = "delete"      // delete it from the dead-letter queue
	ActionRelay       Action = "relay"       // let the relay send it
	ActionInvestigate Action = "investigate" // by hand
	ActionLook        Action = "look"        // find out the unknown
)

// Finding is a diagnosis.
type Finding struct {
	Lookup

	State   State
	Meaning string // one sentence
	Action  Action
	Advice  string // one sentence
	// Safe: the action can be applied without looking any further, whatever happens
	// at the same time.
	Safe bool
}

// Diagnose reports what a mutex row, a message in the dead-letter queue and one in the
// queue mean together. The three must have been looked up at about the same time, and
// found the same twice: nothing holds them still. Unknown is not guessed: if it
// makes a difference the state is StateInsufficient.
func Diagnose(in Lookup) Finding {
	f := Finding{Lookup: in}
	switch {
	case in.Row == Yes && in.Locked == Yes:
		f.is(StateWorking, "A consumer is working on it at this moment.", ActionWait, "Wait for it.")
	case in.Row == Unknown:
		f.more("the mutex row")
	case in.Row == Yes:
		f.withRow()
	default:
		f.withoutRow()
	}
	return f
}

func (f *Finding) is(s State, meaning string, a Action, advice string) {
	f.State, f.Meaning, f.Action, f.Advice = s, meaning, a, advice
}

func (f *Finding) more(what string) {
	f.is(StateInsufficient, "This cannot be decided without knowing about "+what+".", ActionLook, "Look at "+what+".")
}

func (f *Finding) withRow() {
	switch {
	case f.DeadLetter == Unknown:
		f.more("the dead-letter queue")
	case f.DeadLetter == Yes && f.Queue == Yes:
		f.is(StateWorking, "A copy was delivered while the first one is still being worked on.", ActionWait, "Wait for the first consumer.")
	case f.DeadLetter == Yes && f.Queue == No:
		// The row makes a rerun harmless even while another consumer handles it: the lock decides.
		f.is(StateFailed, "The delivery failed and nothing of it has happened.", ActionRerun, "Send it from the dead-letter queue to the queue.")
		f.Safe = true
	case f.Queue == Yes:
		f.is(StateQueued, "It waits in the queue, or is being processed.", ActionWait, "Wait for it.")
	case f.Queue == Unknown:
		f.more("the queue")
	case f.Outbox == Yes:
		f.is(StatePending, "It was committed and not published yet.", ActionRelay, "Let the relay send it; see why it has not.")
		f.Safe = true
	case f.Outbox == No:
		f.is(StateOrphan, "It was published and is in no queue: lost by the broker, or a consumer just holds it.", ActionInvestigate,
			"Look again; then check the log for what became of it.")
	default:
		f.is(StatePending, "Publishing failed after the commit, unless a consumer just holds it.", ActionInvestigate,
			"Check the log, or let the relay send it again.")
	}
}

func (f *Finding) withoutRow() {
	switch {
	case f.DeadLetter == Unknown:
		f.more("the dead-letter queue")
	case f.Queue == Unknown && f.DeadLetter == Yes:
		f.more("the queue")
	case f.DeadLetter == Yes && f.Queue == Yes:
		f.is(StateUnprotected, "It is in both queues without a row: does the consumer use the mutex?", ActionInvestigate,
			"See that the producer's and the consumer's tables and headers are the same.")
	case f.DeadLetter == Yes:
		f.is(StateCopyDone, "A copy was dead-lettered, and the first one is done.", ActionDelete, "Delete it from the dead-letter queue.")
		f.Safe = true
	case f.Queue == Yes:
		f.is(StateCopyWaiting, "It waits in the queue without a row: a copy that will be acked, or one that was never protected.", ActionInvestigate,
			"Normal after a crash if it has the header; else see that the producer inserts rows.")
	case f.Queue == Unknown:
		f.more("the queue")
	default:
		f.is(StateNothing, "Nothing is outstanding.", ActionNone, "Nothing.")
	}
}
