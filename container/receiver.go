package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// receiver calls Receive and takes in what it brings. It has no goroutine of its own: an
// idle worker lends it one, or the dispatcher starts one while all workers are busy.
type receiver struct {
	*dispatcher              // whose intake it is
	back        giveBack     // of what has left while a Receive had it in hand
	dead        *deadLetters // gives up what the broker would give up at its next return
}

// giveBack returns deliveries to the broker.
type giveBack interface {
	// releaseAll gives back what was taken out of the Scheduler, in order.
	releaseAll(out []*dispatch.Item[item])
}

// receive fetches deliveries on the calling goroutine. mu is given up meanwhile.
func (c *receiver) receive(by receiving) {
	g, n := c.sub.gen, c.intake.ask(c.free(), c.s.batch)
	ctx := c.intake.begin(by, g)
	var ds []*longshore.Delivery
	var err error
	var keys []laneKey
	var asked, now time.Time
	c.unlocked(func() {
		asked = c.s.clock.Now()
		ds, err = g.c.Receive(ctx, n)
		now = c.s.clock.Now()
		keys = laneKeys(c.s.order, ds)
	})
	c.intake.end(now.Sub(asked), len(ds))
	c.load.cycles.waited = c.load.ahead.received(n, len(ds), now.Sub(asked))
	c.accept(g, ds, keys)
	c.takeLeft(g)
	g.fresh = now // there was no more
	if len(ds) > 0 {
		if at := ds[len(ds)-1].Origin.ReceivedAt; !at.IsZero() {
			g.fresh = at
		}
		c.count.last = now
		c.linger.follow(c.sched.Ready())
	}
	switch {
	case err != nil || len(ds) == 0:
		c.ended(ctx, g, err)
	case ctx.Err() != nil: // whoever interrupted it may wait for its end
		c.changed()
		c.wake()
	case c.axes.Stopping(): // it may have brought nothing that can start
		c.changed()
	}
}

// fetch is a receiver that runs no handler.
func (c *receiver) fetch() {
	c.locked(func() {
		c.intake.by = noReceiver
		for c.mayFetch() && len(c.pool.idle) == 0 {
			c.receive(fetcherReceives)
			c.wakeOne()
		}
		c.changed()
		c.wakeOne() // until now no worker that receives was called back
	})
}

// accept takes deliveries in: each into its lane, or to the ready ones. keys are their
// lanes' names where user code made them.
func (c *receiver) accept(g *generation, ds []*longshore.Delivery, keys []laneKey) {
	c.intake.entering = c.intake.entering[:0]
	again := false
	for i, d := range ds {
		it := c.intake.items.get()
		it.d, it.gen, it.id, it.key, it.headers = d, g, d.ID, d.Key, d.Headers
		it.received = c.receivedAt(d)
		if keys != nil {
			it.name, it.fail = &keys[i], keys[i].err
		}
		if it.fail == nil {
			it.fail = c.dead.lastReturn(d)
		}
		it.Fill(it, &g.Owner, int64(len(d.Body)+len(d.Key)))
		it.Alone = it.fail != nil
		c.count.received++
		if d.Origin.Redelivered || d.Attempt > 1 {
			c.count.redelivered++
			again = true
		}
		c.intake.entering = append(c.intake.entering, &it.Item)
	}
	if again && c.sched.Lanes() > 0 {
		c.sweepLost()
	}
	c.sched.Admit(c.intake.entering...)
	checkInvariants(c.sched)
	if c.sched.Aside().N > 0 {
		c.noteParked()
	}
}

// receivedAt is when a delivery came; a transport need not say it.
func (c *receiver) receivedAt(d *longshore.Delivery) int64 {
	if at := d.Origin.ReceivedAt; !at.IsZero() {
		return at.UnixNano()
	}
	return c.now().UnixNano()
}

// pull receives what is buffered after Cancel.
func (c *receiver) pull(ctx context.Context, g *generation) {
	for {
		ds, err := g.c.Receive(ctx, maxFree)
		keys := laneKeys(c.s.order, ds)
		c.locked(func() {
			c.accept(g, ds, keys)
			c.linger.follow(c.sched.Ready()) // a hold leaves it here, and more may not come
		})
		if err != nil || len(ds) == 0 {
			return
		}
	}
}

// ended looks at why Receive brought nothing.
func (c *receiver) ended(ctx context.Context, g *generation, err error) {
	op := fmt.Sprintf("receive from %q", c.s.name)
	canceled := errors.Is(err, longshore.ErrCanceled)
	switch {
	case ctx.Err() != nil && !canceled: // our own wish
	case canceled && g.stage == stageOpen:
		c.markDown(g, &longshore.Error{Code: longshore.CodeCanceledBy, Source: c.s.name, Op: op, Err: err})
	case canceled:
		g.forward(stageExhausted)
	case err == nil:
		c.markDown(g, &longshore.Error{Code: longshore.CodeInternal, Source: c.s.name, Op: op,
			Err: errors.New("the transport returned neither a delivery nor an error")})
	default:
		c.markDown(g, err)
	}
	c.changed()
	c.wake()
}
