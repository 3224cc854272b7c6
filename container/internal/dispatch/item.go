package dispatch

import "time"

// State is where an item is. An item has exactly one, and the sums follow it.
type State uint8

const (
	// Out: the Scheduler does not hold the item.
	Out State = iota
	// Ready: it waits for nothing but a worker.
	Ready
	// Behind: an earlier one of its lane has not ended.
	Behind
	// Running: with a handler, or its verdict is being carried out.
	Running
	// Parked: waits for its time.
	Parked
	// Due: its time has come, but no worker may start it: its owner continues it with
	// TakeDue.
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

// Owner is what items belong to, such as a subscription. The Scheduler only counts its
// items: when none is left, the owner can be let go.
type Owner struct {
	held int // items in any state
}

// Held is how many items of the owner are here, in any state.
func (o *Owner) Held() int { return o.held }

// Item is the Scheduler's part of a delivery that is held. The delivery's own struct
// embeds the item, so that neither costs an allocation of its own. Items can be used again
// after they have left.
type Item[T any] struct {
	// Of is the struct that embeds the item.
	Of *T
	// Apart: when its time has come it is not for a worker: TakeDue gives it out.
	Apart bool
	// Alone: it cannot share a batch with others.
	Alone bool

	owner *Owner    // whose count it is in
	lane  *lane[T]  // nil: nothing has to wait for it
	next  *Item[T]  // the one behind it in its lane's list
	older *Item[T]  // the one admitted before it, of all that are held; see arrivals.go
	newer *Item[T]  // the one admitted after it
	due   time.Time // until when it was parked last; zero: never
	size  int64     // what it adds to the bytes of a sum
	grown int64     // of that, what has become larger since it runs
	pos   int       // its place among the running ones or in the heap
	state State     // which part holds it
	// swept: its loss was noted while it ran. Those behind it are gone already, and what
	// came since comes behind it again.
	swept bool
}

// Fill prepares an item for Admit: what embeds it, whose it is and how many bytes it
// keeps alive.
func (it *Item[T]) Fill(of *T, owner *Owner, size int64) { it.Of, it.owner, it.size = of, owner, size }

// Grown is how much larger the item has become since it runs.
func (it *Item[T]) Grown() int64 { return it.grown }

// State is what the item does.
func (it *Item[T]) State() State { return it.state }

// Due is until when it was parked last; zero: it never was.
func (it *Item[T]) Due() time.Time { return it.due }

// Owner is the subscription, or whatever else, that it belongs to.
func (it *Item[T]) Owner() *Owner { return it.owner }

// Ordered says whether others of its lane wait for it.
func (it *Item[T]) Ordered() bool { return it.lane != nil }

// Returns says whether others of its batch were put back into its lane before it: its own
// next attempt must come after theirs.
func (it *Item[T]) Returns() bool { return it.lane != nil && it.lane.mark != nil }

// joins says whether it can follow its predecessor in the same batch.
func (it *Item[T]) joins() bool { return !it.Alone && !it.Apart && it.due.IsZero() }

// move changes the state, and the sums with it.
func (it *Item[T]) move(to State, sums *ledger) {
	sums.move(it.state, to, it.size)
	it.state = to
}

// forget takes the item off the sums and its owner, and makes it ready to be used again.
func (it *Item[T]) forget(sums *ledger) {
	sums.leave(it.state, it.size)
	it.owner.held--
	it.clear()
}

// clear makes the item new, except for Of. Pointers and times that are zero already are
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
