package container

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/state"
)

// receiver calls Receive and takes in what it brings. It has no goroutine of its own: an
// idle worker lends it one, or handout starts one while all workers are busy.
type receiver struct {
	common
	axes   *axes         // a consumer that ends is lost
	sub    *subscription // the consumer to receive from
	hand   *handout      // whose intake it is
	held   *stock        // what takes the deliveries in
	count  *counters     // what came
	cycles *cycles       // whether the policy's count of waiting applies to this receive
	back   *returner     // of what has left while a Receive had it in hand
	dead   *deadLetters  // gives up what the broker would give up at its next return
}

// receive fetches deliveries on the calling goroutine. The lock is given up meanwhile.
func (c *receiver) receive(by receiving) {
	g, n := c.sub.gen, c.hand.intake.ask(c.hand.free(), c.s.batch)
	ctx := c.hand.intake.begin(by, g)
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
	c.hand.intake.end(now.Sub(asked), len(ds))
	c.cycles.waited = c.hand.ahead.received(n, len(ds), now.Sub(asked))
	c.accept(g, ds, keys)
	c.takeLeft(g)
	g.fresh = now // there was no more
	if len(ds) > 0 {
		if at := ds[len(ds)-1].Origin.ReceivedAt; !at.IsZero() {
			g.fresh = at
		}
		c.count.last = now
		c.held.readyChanged()
	}
	switch {
	case err != nil || len(ds) == 0:
		c.ended(ctx, g, err)
	case ctx.Err() != nil: // whoever interrupted it may wait for its end
		c.axes.changed()
		c.wake()
	case c.axes.Stopping(): // it may have brought nothing that can start
		c.axes.changed()
	}
}

// fetch is a receiver that runs no handler.
func (c *receiver) fetch() {
	c.locked(func() {
		c.hand.intake.by = noReceiver
		for c.hand.mayFetch() && len(c.hand.pool.idle) == 0 {
			c.receive(fetcherReceives)
			c.hand.wakeOne()
		}
		c.axes.changed()
		c.hand.wakeOne() // until now no worker that receives was called back
	})
}

// accept takes deliveries in: each into its lane, or to the ready ones. keys are their
// lanes' names where user code made them.
func (c *receiver) accept(g *generation, ds []*longshore.Delivery, keys []laneKey) {
	c.hand.intake.entering = c.hand.intake.entering[:0]
	again := false
	for i, d := range ds {
		it := c.held.items.get()
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
		c.hand.intake.entering = append(c.hand.intake.entering, &it.Item)
	}
	if again && c.held.sched.Lanes() > 0 {
		c.held.sweepLost()
	}
	c.held.sched.Admit(c.hand.intake.entering...)
	checkInvariants(c.held.sched)
	if c.held.sched.Aside().N > 0 {
		c.hand.noteParked()
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
			c.held.readyChanged() // a hold leaves it here, and more may not come
		})
		if err != nil || len(ds) == 0 {
			return
		}
	}
}

// markDown notes that a consumer is at its end.
func (c *receiver) markDown(g *generation, err error) {
	if g.fail(err) && g == c.sub.gen {
		c.axes.Sub = state.Lost
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
	c.axes.changed()
	c.wake()
}
