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
	noReceiver      receiving = iota
	workerReceives            // a worker without work, which can be called back to work
	fetcherStarts             // a goroutine of its own is about to
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
// guard.mu.
type intake struct {
	fetch func() // receives while all workers are busy, in a goroutine of its own

	by       receiving              // who receives now
	pace     pace                   // says whether to receive while all workers are busy, and how much at once
	gen      *generation            // of the Receive that runs
	ctx      context.Context        //nolint:containedctx // of that Receive: tells whether it was interrupted; lives and ends with its struct, not with a call
	entering []*dispatch.Item[item] // scratch of whoever receives
}

// under says whether a Receive is under way.
func (in *intake) under() bool { return in.by == workerReceives || in.by == fetcherReceives }

// has says whether a Receive of that consumer is under way, and may have something in hand.
func (in *intake) has(g *generation) bool { return in.under() && in.gen == g }

// fetches says whether a goroutine of its own receives, or soon will.
func (in *intake) fetches() bool { return in.by == fetcherStarts || in.by == fetcherReceives }

// begin notes that a Receive begins and returns its context.
func (in *intake) begin(by receiving, g *generation) context.Context {
	in.by, in.gen, in.ctx = by, g, g.ctx
	return in.ctx
}

// end notes that the Receive has returned.
func (in *intake) end(took time.Duration, got int) {
	in.by, in.pace = noReceiver, paceOf(took, got)
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

// laneKey is a lane's name that user code made.
type laneKey struct {
	key []byte // its name
	ok  bool   // false: the delivery is in no lane
	err error  // the order function panicked
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
