package container

import (
	"fmt"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// stock is what a run holds: the deliveries that a handler has, and those that wait for one,
// for their time, for room, or for their place in a lane. Guarded by guard.mu.
type stock struct {
	common
	axes *axes         // a stop, or a suspended subscription, waits for less to be held
	sub  *subscription // whose older consumers are closed when nothing of them is held

	sched   *dispatch.Scheduler[item]     // what is held, in which order, and every sum over it
	manual  map[*longshore.Delivery]*item // with manual settling: what handlers have not settled; else nil
	parking parking                       // when the next parked delivery is due
	linger  linger                        // how long a batch waits to fill
	moves   deadMoves                     // repeats moves to the dead-letter destination
	growth  growth                        // running deliveries that wait for room to become larger
	items   freeItems                     // for the next deliveries
}

func newStock(c common, a *axes, sub *subscription) stock {
	h := stock{common: c, axes: a, sub: sub, sched: newScheduler(c.s)}
	h.parking.clock, h.linger.clock = c.s.clock, c.s.clock
	if c.s.batch > 0 {
		h.linger.wait = c.s.linger
	}
	if c.s.manual {
		h.manual = map[*longshore.Delivery]*item{}
	}
	return h
}

// finish ends an item that runs or was taken: its place is free and its lane goes on.
func (h *stock) finish(it *item) {
	h.sched.Finish(&it.Item)
	h.forget(it)
	h.goesOn()
}

// forget looks after an item that the Scheduler has let go.
func (h *stock) forget(it *item) {
	if g := it.gen; g.Held() == 0 && g != h.sub.gen {
		h.wake() // the supervisor closes it
	}
	h.items.put(it)
}

// goesOn follows a change of what is held: something may be ready, or parked, that was
// not.
func (h *stock) goesOn() {
	if len(h.growth.waiting) > 0 {
		h.growth.allow(h.sched)
	}
	h.parking.follow(h.sched)
	h.readyChanged()
	h.axes.changed()
	checkInvariants(h.sched)
}

// readyChanged lets the wait for a full batch follow what is ready.
func (h *stock) readyChanged() { h.linger.follow(h.sched.Ready()) }

// wakeDue makes ready what was parked until now, and starts the moves that are due.
func (h *stock) wakeDue(wg *sync.WaitGroup) {
	h.sched.Wake(h.s.clock.Now())
	h.moves.begin(h.sched.Waiting(), wg)
	h.readyChanged()
	h.parking.follow(h.sched)
}

// parkingFull reports whether the space for waiting retries is used up.
func (h *stock) parkingFull() bool {
	full, n := h.sched.RetriesFull(), h.sched.Retries().N
	switch h.parking.note(full, n, h.s.parked) {
	case EventParkingFree:
		h.emit(Event{Kind: EventParkingFree, Count: n, Text: fmt.Sprintf("%d retries wait, fewer than Redelivery.Parked allows", n)})
	case EventParkingFull:
		h.emit(Event{Kind: EventParkingFull, Count: n,
			Text: fmt.Sprintf("%d retries wait, as many as Redelivery.Parked allows; new failures go to the broker or the dead-letter destination early, and while nearly all fail nothing more is received", n)})
	}
	return full
}

// orphaned follows a loss: what came behind the lost delivery in its lane has to be given
// back, since the lost one comes again and must be first.
func (h *stock) orphaned() {
	if h.sched.Orphans() > 0 {
		h.axes.changed()
		h.wake()
	}
}

// sweepLost forgets the lost deliveries that wait, and takes out what is behind them. It
// also runs before redelivered messages enter their lanes: the transport marks a delivery as
// lost before the broker delivers it again, but reports that later. What comes again would
// otherwise pass for a follower of the lost delivery, and go back with its followers while
// those behind it stay.
func (h *stock) sweepLost() {
	for _, t := range h.sched.Lose(isLost) {
		h.forget(t.Of)
	}
	h.orphaned()
	h.goesOn()
}

// inventory is a view of everything that is held, to be used before mu is given up.
func (h *stock) inventory(p *pool) inventory {
	return inventory{p.workers, h.manual, h.sched, h.s.lastAttempt()}
}
