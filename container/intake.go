package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// mayReceive says whether a worker without work should become the receiver. The
// caller holds mu.
func (r *engine) mayReceive() bool {
	g := r.sub.gen
	if r.intake.receiving || !r.axes.Receives() || g.exhausted || g.ctx.Err() != nil {
		return false
	}
	return !r.gateShut && r.free() > 0
}

// free is how many more deliveries may be held. The caller holds mu.
func (r *engine) free() int {
	window := r.window()
	free := r.sched.Free(window)
	if free <= 0 && r.sched.Relieve(window) {
		free = r.sched.Free(window)
	}
	if r.s.gate != nil {
		free = min(free, r.gateRoom(r.sched.InWindow()))
	}
	return free
}

// receive fetches deliveries on the calling worker. The caller holds mu, which
// is given up meanwhile.
func (r *engine) receive() {
	g, n := r.sub.gen, r.free()
	if r.intake.buffered && r.s.batch == 0 {
		n = min(n, receiveChunk)
	}
	ctx := g.ctx
	r.intake.receiving, r.intake.receiver, r.intake.receiverCtx = true, g, ctx
	r.mu.Unlock()
	asked := r.s.clock.Now()
	ds, err := g.c.Receive(ctx, n)
	now := r.s.clock.Now()
	keys := r.keys(ds)
	r.mu.Lock()
	r.intake.receiving = false
	r.intake.slow = now.Sub(asked) >= slowReceive
	r.intake.buffered = len(ds) > 0 && now.Sub(asked) < bufferedReceive
	r.noteReceive(n, len(ds), now.Sub(asked))
	r.accept(g, ds, keys)
	r.receivedLeaving(g)
	g.fresh = now // there was no more
	if len(ds) > 0 {
		if at := ds[len(ds)-1].Origin.ReceivedAt; !at.IsZero() {
			g.fresh = at
		}
		r.count.last = now
		r.armBatch()
	}
	switch {
	case err != nil || len(ds) == 0:
		r.receiveEnded(ctx, g, err)
	case ctx.Err() != nil: // whoever interrupted it may wait for its end
		r.changed()
		r.wake()
	case r.axes.Stopping(): // it may have brought nothing that can start
		r.changed()
	}
}

// slowReceive is what makes a receive worth a goroutine of its own. From a buffer
// it takes a microsecond; a poll over the network takes milliseconds, in which
// workers would use up what is held and then wait.
const slowReceive = time.Millisecond

// A receive this short came out of the transport's memory: then as few are taken as
// still share its price. Many of them lie about until their turn comes, and by then
// the caches and the garbage collector have seen them once more than necessary.
const (
	bufferedReceive = 50 * time.Microsecond
	receiveChunk    = 16
)

// mayFetch says whether to receive beside the workers, all of which are busy: when
// receives are slow and half of the window is free, so that they are large ones.
// The caller holds mu.
func (r *engine) mayFetch() bool {
	return r.intake.slow && !r.intake.fetching && r.mayReceive() && 2*r.free() >= r.window()
}

// fetch is a receiver that runs no handler.
func (r *engine) fetch() {
	defer r.pool.wg.Done()
	r.mu.Lock()
	r.intake.fetching = false
	for r.mayFetch() && len(r.pool.idle) == 0 {
		r.intake.fetching = true
		r.receive()
		r.intake.fetching = false
		r.wakeOne()
	}
	r.changed()
	r.wakeOne() // until now nobody called a worker that receives
	r.mu.Unlock()
}

// laneKey is a lane's name that user code made.
type laneKey struct {
	key []byte
	ok  bool
	err error
}

// keys asks the user's order function, without the mutex.
func (r *engine) keys(ds []*longshore.Delivery) []laneKey {
	f, ok := r.s.order.(OrderFunc)
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

// accept takes deliveries in: each into its lane, or to the ready ones. keys are their
// lanes' names where user code made them. The caller holds mu.
func (r *engine) accept(g *generation, ds []*longshore.Delivery, keys []laneKey) {
	r.intake.entering = r.intake.entering[:0]
	for i, d := range ds {
		it := r.items.get()
		it.d, it.gen, it.id, it.key, it.headers = d, g, d.ID, d.Key, d.Headers
		if keys != nil {
			it.name, it.fail = &keys[i], keys[i].err
		}
		if it.fail == nil {
			it.fail = r.lastReturn(d)
		}
		it.Fill(it, &g.Owner, int64(len(d.Body)+len(d.Key)))
		it.Alone = it.fail != nil
		r.count.received++
		if d.Origin.Redelivered || d.Attempt > 1 {
			r.count.redelivered++
		}
		r.intake.entering = append(r.intake.entering, &it.Item)
	}
	r.sched.Admit(r.intake.entering...)
	r.checkInvariants()
	if r.sched.Aside().N > 0 {
		r.noteParked()
	}
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

// receiveEnded looks at why Receive brought nothing. The caller holds mu.
func (r *engine) receiveEnded(ctx context.Context, g *generation, err error) {
	switch {
	case ctx.Err() != nil && !errors.Is(err, longshore.ErrCanceled): // our own wish
	case errors.Is(err, longshore.ErrCanceled):
		g.exhausted = true
		if !g.canceled && g.down == nil {
			r.markDown(g, &longshore.Error{Code: longshore.CodeCanceledBy, Source: r.s.name,
				Op: fmt.Sprintf("receive from %q", r.s.name), Err: err})
		}
	case g.down != nil:
	case err == nil:
		r.markDown(g, &longshore.Error{Code: longshore.CodeInternal, Source: r.s.name,
			Op: fmt.Sprintf("receive from %q", r.s.name), Err: errors.New("the transport returned neither a delivery nor an error")})
	default:
		r.markDown(g, err)
	}
	r.changed()
	r.wake()
}

// interrupt makes the receiver come back. The caller holds mu.
func (g *generation) interrupt() { g.cancel() }

// rearm lets a generation receive again after an interrupt. The caller holds mu.
func (g *generation) rearm(parent context.Context) {
	if g.ctx == nil || g.ctx.Err() != nil {
		g.ctx, g.cancel = context.WithCancel(parent)
	}
}
