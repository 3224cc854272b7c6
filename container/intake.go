package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// mayReceive says whether a worker without work should become the receiver. The
// caller holds mu.
func (r *run) mayReceive() bool {
	g := r.gen
	if r.receiving || !r.axes.Receives() || g.exhausted || g.ctx.Err() != nil {
		return false
	}
	return !r.gateShut && r.free() > 0
}

// free is how many more deliveries may be held. The caller holds mu.
func (r *run) free() int {
	held := r.ready.n + r.queued + r.running
	free := r.window() - held - max(r.waitPark-r.s.parked, 0)
	if r.s.gate != nil {
		free = min(free, r.gateRoom(held))
	}
	room := r.s.maxBytes - r.bytes
	if room <= 0 {
		return 0
	}
	// How large the next ones are is not known: as large as the last ones.
	return min(free, int(max(room/max(r.meanSize, 1), 1)))
}

// receive fetches deliveries on the calling worker. The caller holds mu, which
// is given up meanwhile.
func (r *run) receive() {
	g, n := r.gen, r.free()
	if r.buffered && r.s.batch == 0 {
		n = min(n, receiveChunk)
	}
	ctx := g.ctx
	r.receiving, r.receiver, r.receiverCtx = true, g, ctx
	r.mu.Unlock()
	asked := r.s.clock.Now()
	ds, err := g.c.Receive(ctx, n)
	now := r.s.clock.Now()
	keys := r.keys(ds)
	r.mu.Lock()
	r.receiving = false
	r.slow = now.Sub(asked) >= slowReceive
	r.buffered = len(ds) > 0 && now.Sub(asked) < bufferedReceive
	r.noteReceive(n, len(ds), now.Sub(asked))
	for i, d := range ds {
		var k laneKey
		if keys != nil {
			k = keys[i]
		}
		r.accept(g, d, k)
	}
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
func (r *run) mayFetch() bool {
	return r.slow && !r.fetching && r.mayReceive() && 2*r.free() >= r.window()
}

// fetch is a receiver that runs no handler.
func (r *run) fetch() {
	defer r.wg.Done()
	r.mu.Lock()
	r.fetching = false
	for r.mayFetch() && len(r.idle) == 0 {
		r.fetching = true
		r.receive()
		r.fetching = false
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
func (r *run) keys(ds []*longshore.Delivery) []laneKey {
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

// accept takes a delivery in: into its lane, or to the ready ones. The caller
// holds mu.
func (r *run) accept(g *generation, d *longshore.Delivery, k laneKey) {
	it := r.items.get()
	it.d, it.gen, it.size, it.fail = d, g, int64(len(d.Body)+len(d.Key)), k.err
	if it.fail == nil {
		it.fail = r.lastReturn(d)
	}
	it.id, it.key, it.headers = d.ID, d.Key, d.Headers
	g.items++
	r.bytes += it.size
	r.meanSize += (it.size - r.meanSize) / 8
	r.count.received++
	if d.Origin.Redelivered || d.Attempt > 1 {
		r.count.redelivered++
	}
	if r.s.ordered {
		if !r.s.byFunc {
			k.key, k.ok = r.s.order.laneKey(r.keyBuf, d)
		}
		if r.s.byPartition {
			r.keyBuf = k.key
		}
		if k.ok && !r.enterLane(it, k.key) {
			return
		}
	}
	r.ready.push(it)
}

// enterLane reports whether the item may start now, being the first of its lane.
func (r *run) enterLane(it *item, key []byte) bool {
	l, fresh := r.lanes.get(key)
	it.lane = l
	if fresh {
		return true
	}
	l.push(it)
	if l.parked {
		r.bytes -= it.size
		r.parkBytes += it.size
		r.waitPark++
		r.noteParked()
	} else {
		r.queued++
	}
	return false
}

// receiveEnded looks at why Receive brought nothing. The caller holds mu.
func (r *run) receiveEnded(ctx context.Context, g *generation, err error) {
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
