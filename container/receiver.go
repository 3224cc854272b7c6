package container

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// receiver calls Receive and takes in what it brings. It has no goroutine of its own: an
// idle worker lends it one, or the dispatcher starts one beside busy workers.
type receiver struct {
	*dispatcher
	back giveBack // of what has left while a Receive had it in hand
}

// giveBack returns deliveries to the broker.
type giveBack interface {
	// releaseAll gives back what was taken out of the Scheduler, in order.
	releaseAll(out []*dispatch.Item[item])
}

// receive fetches deliveries on the calling goroutine. It is called with mu held, which
// is given up meanwhile.
func (c *receiver) receive(by receiving) {
	g, n := c.sub.gen, c.intake.ask(c.free(), c.s.batch)
	ctx := c.intake.begin(by, g)
	c.mu.Unlock()
	asked := c.s.clock.Now()
	ds, err := g.c.Receive(ctx, n)
	now := c.s.clock.Now()
	keys := laneKeys(c.s.order, ds)
	c.mu.Lock()
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
		c.armBatch()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.intake.by = nobodyReceives
	for c.mayFetch() && len(c.pool.idle) == 0 {
		c.receive(fetcherReceives)
		c.wakeOne()
	}
	c.changed()
	c.wakeOne() // until now no worker that receives was called back
}

// pull receives what is buffered after Cancel.
func (c *receiver) pull(ctx context.Context, g *generation) {
	for {
		ds, err := g.c.Receive(ctx, maxFree)
		keys := laneKeys(c.s.order, ds)
		c.mu.Lock()
		c.accept(g, ds, keys)
		c.armBatch() // a hold leaves it here, and more may not come
		c.mu.Unlock()
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
