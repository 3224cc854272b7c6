package container

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// receiving says who receives: at most one at a time, so that deliveries enter their
// lanes in the order in which they came.
type receiving uint8

const (
	nobodyReceives  receiving = iota
	workerReceives            // a worker without work, which can be called back to work
	fetcherStarts             // a goroutine beside the workers is about to
	fetcherReceives           // it does
)

// pace is how long the last receive took.
type pace uint8

const (
	paceUsual    pace = iota
	paceSlow          // long enough to be worth a goroutine of its own
	paceBuffered      // it came out of the transport's memory
)

const (
	// slowReceive is what makes a receive worth a goroutine of its own. From a buffer it
	// takes a microsecond; a poll over the network takes milliseconds, in which workers
	// would use up what is held and then wait.
	slowReceive = time.Millisecond

	// A receive that is shorter than bufferedReceive came out of the transport's memory:
	// then as few are taken as still share its price. Many of them lie about until their
	// turn comes, and by then the caches and the garbage collector have seen them once
	// more than necessary.
	bufferedReceive = 50 * time.Microsecond
	receiveChunk    = 16
)

// paceOf classes a receive.
func paceOf(took time.Duration, got int) pace {
	switch {
	case took >= slowReceive:
		return paceSlow
	case got > 0 && took < bufferedReceive:
		return paceBuffered
	}
	return paceUsual
}

// intake is who receives, from which consumer, and at which pace. Guarded by
// dispatcher.mu.
type intake struct {
	fetch func() // receives beside the workers, in a goroutine of its own

	by       receiving
	pace     pace                   // says whether to receive beside the workers, and how much at once
	gen      *generation            // of the Receive that runs
	ctx      context.Context        //nolint:containedctx // of that Receive: tells whether it was interrupted; lives and ends with its struct, not with a call
	entering []*dispatch.Item[item] // scratch of whoever receives
}

// under says whether a Receive is under way.
func (in *intake) under() bool { return in.by == workerReceives || in.by == fetcherReceives }

// has says whether a Receive of that consumer is under way, and may have something in hand.
func (in *intake) has(g *generation) bool { return in.under() && in.gen == g }

// fetches says whether there is a receiver beside the workers, or soon will be.
func (in *intake) fetches() bool { return in.by == fetcherStarts || in.by == fetcherReceives }

// begin notes that a Receive begins and returns its context.
func (in *intake) begin(by receiving, g *generation) context.Context {
	in.by, in.gen, in.ctx = by, g, g.ctx
	return in.ctx
}

// end notes that the Receive has returned.
func (in *intake) end(took time.Duration, got int) {
	in.by, in.pace = nobodyReceives, paceOf(took, got)
}

// ask is how many to ask for where so many may be held; a batch fills best at once.
func (in *intake) ask(free, batch int) int {
	if in.pace == paceBuffered && batch == 0 {
		return min(free, receiveChunk)
	}
	return free
}

// recall makes the receiver come back. Its consumer may be received from again at once.
func (in *intake) recall() {
	if in.ctx.Err() == nil {
		in.gen.interrupt()
		in.gen.rearm()
	}
}

// mayReceive says whether a worker without work should become the receiver.
func (r *dispatcher) mayReceive() bool {
	g := r.sub.gen
	if r.intake.by != nobodyReceives || !r.axes.Receives() || !g.delivers() || g.ctx.Err() != nil {
		return false
	}
	return !r.gate.shut && r.free() > 0 && !r.triesHeld()
}

// trialSoon is how near a parked retry has to be for a trial to wait for it.
const trialSoon = time.Second

// triesHeld says whether a middleware only tries if work may start, and what is held is
// enough to find out. To receive more for each trial would fill the memory for as long as
// the trials fail: behind parked heads, followers take no place in the window.
func (r *dispatcher) triesHeld() bool {
	due, parked := r.sched.NextDue()
	return parked && (r.sched.InWindow() > 0 || due.Sub(r.now()) < trialSoon) && r.gate.doubts()
}

// mayFetch says whether to receive beside the workers, all of which are busy: when
// receives are slow and half of the window is free, so that they are large ones.
func (r *dispatcher) mayFetch() bool {
	return r.intake.pace == paceSlow && r.mayReceive() && 2*r.free() >= r.window()
}

// free is how many more deliveries may be held.
func (r *dispatcher) free() int {
	window := r.window()
	free := r.sched.Free(window)
	if free <= 0 && r.sched.Relieve(window) {
		free = r.sched.Free(window)
	}
	return r.gate.room(free, r.sched.InWindow(), r.sched.Active())
}

// accept takes deliveries in: each into its lane, or to the ready ones. keys are their
// lanes' names where user code made them.
func (r *dispatcher) accept(g *generation, ds []*longshore.Delivery, keys []laneKey) {
	r.intake.entering = r.intake.entering[:0]
	again := false
	for i, d := range ds {
		it := r.items.get()
		it.d, it.gen, it.id, it.key, it.headers = d, g, d.ID, d.Key, d.Headers
		it.received = r.receivedAt(d)
		if keys != nil {
			it.name, it.fail = &keys[i], keys[i].err
		}
		if it.fail == nil {
			it.fail = r.dead.lastReturn(d)
		}
		it.Fill(it, &g.Owner, int64(len(d.Body)+len(d.Key)))
		it.Alone = it.fail != nil
		r.count.received++
		if d.Origin.Redelivered || d.Attempt > 1 {
			r.count.redelivered++
			again = true
		}
		r.intake.entering = append(r.intake.entering, &it.Item)
	}
	if again && r.sched.Lanes() > 0 {
		r.sweepLost()
	}
	r.sched.Admit(r.intake.entering...)
	r.checkInvariants()
	if r.sched.Aside().N > 0 {
		r.noteParked()
	}
}

// laneKey is a lane's name that user code made.
type laneKey struct {
	key []byte
	ok  bool
	err error
}

// laneKeys asks the user's order function, without the lock; nil if there is none.
func laneKeys(order Order, ds []*longshore.Delivery) []laneKey {
	f, ok := order.(OrderFunc)
	if !ok {
		return nil
	}
	keys := make([]laneKey, len(ds))
	for i, d := range ds {
		keys[i] = safeKey(f, d)
	}
	return keys
}

func safeKey(f OrderFunc, d *longshore.Delivery) (k laneKey) {
	defer func() {
		if p := recover(); p != nil {
			k = laneKey{err: panicError(p)}
		}
	}()
	k.key, k.ok = f.laneKey(nil, d)
	return k
}

// receivedAt is when a delivery came; a transport need not say it.
func (r *dispatcher) receivedAt(d *longshore.Delivery) int64 {
	if at := d.Origin.ReceivedAt; !at.IsZero() {
		return at.UnixNano()
	}
	return r.now().UnixNano()
}

// newScheduler makes the Scheduler of a run. By partition the names of lanes are made
// here, in a buffer of their own.
func newScheduler(s *settings) *dispatch.Scheduler[item] {
	limits := dispatch.Limits{Bytes: s.maxBytes, Retries: s.parked, Aside: asideMost}
	var buf []byte
	switch {
	case !s.ordered:
		return dispatch.New[item](limits, nil)
	case s.byFunc:
		return dispatch.New(limits, func(it *item) ([]byte, bool) {
			name := it.name
			it.name = nil
			return name.key, name.ok
		})
	case s.byPartition:
		return dispatch.New(limits, func(it *item) (name []byte, ok bool) {
			buf, ok = s.order.laneKey(buf, it.d)
			return buf, ok
		})
	}
	return dispatch.New(limits, func(it *item) ([]byte, bool) { return s.order.laneKey(nil, it.d) })
}
