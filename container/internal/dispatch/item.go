package dispatch

import "time"

// State is where an item is. An item has exactly one, and the sums follow it.
type State uint8

const (
	// Out: the Scheduler does not hold the item.
	Out State = iota
	// Ready: nothing is in its way but a worker.
	Ready
	// Behind: an earlier one of its lane has not ended.
	Behind
	// Running: with a handler, or its verdict is being carried out.
	Running
	// Parked: waits for its time.
	Parked
	// Due: its time has come, but a worker must not start it: it waits for other hands.
	Due
	// Taken: on its way back to the broker. It never runs again, and until it has left
	// its lane waits for it.
	Taken

	states
)

// String names the state.
func (s State) String() string {
	return [states]string{"out", "ready", "behind", "running", "parked", "due", "taken"}[s]
}

// Owner is what items belong to, such as a subscription. The Scheduler knows nothing of
// it but how many items it has here: at zero it can be let go.
type Owner struct{ held int }

// Held is how many items of the owner are here, whatever they do.
func (o *Owner) Held() int { return o.held }

// Item is the Scheduler's part of something that is held. Whoever holds it embeds the
// item in its own struct, so that neither costs an allocation of its own. Items can be
// used again after they have left.
type Item[T any] struct {
	// Of is the struct that embeds the item.
	Of *T
	// Apart says that other hands than a worker's continue when its time has come.
	Apart bool
	// Alone says that it cannot share a batch with others.
	Alone bool

	owner *Owner
	lane  *lane[T] // nil: nothing has to wait for it
	next  *Item[T] // the one behind it in its lane
	due   time.Time
	size  int64
	pos   int // its place among the running ones or in the heap
	state State
	// swept says that its loss was heard of while it ran: those behind it are gone
	// already, and what came since comes behind it again.
	swept bool
}

// Fill prepares an item for Admit: what embeds it, whose it is and how many bytes it
// keeps alive.
func (it *Item[T]) Fill(of *T, owner *Owner, size int64) { it.Of, it.owner, it.size = of, owner, size }

// State is what the item does.
func (it *Item[T]) State() State { return it.state }

// Due is until when it was parked last; zero: it never was.
func (it *Item[T]) Due() time.Time { return it.due }

// Owner is whose it is.
func (it *Item[T]) Owner() *Owner { return it.owner }

// Ordered says whether others of its lane wait for it.
func (it *Item[T]) Ordered() bool { return it.lane != nil }

// Returns says that others of its batch were put back into its lane before it: whatever
// becomes of it must come after them.
func (it *Item[T]) Returns() bool { return it.lane != nil && it.lane.mark != nil }

// joins says whether it can follow its predecessor in the same batch.
func (it *Item[T]) joins() bool { return !it.Alone && !it.Apart && it.due.IsZero() }

// clear makes the item new, but for Of. Pointers and times that are zero already are
// left alone: while the garbage collector marks, each pointer written costs, and this
// happens to every message.
func (it *Item[T]) clear() {
	it.owner, it.size, it.state = nil, 0, Out
	it.Apart, it.Alone, it.swept = false, false, false
	if it.lane != nil {
		it.lane = nil
	}
	if !it.due.IsZero() {
		it.due = time.Time{}
	}
}
