package container

import (
	"context"
	"slices"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// growth lets running deliveries become larger, as when a middleware unpacks their bodies,
// within Config.MaxBytes together. The Scheduler has the sums; this is who waits for room.
// Guarded by guard.mu.
type growth struct {
	waiting []*growing // in the order in which they came
}

// growing is a delivery that waits to become larger.
type growing struct {
	it   *item               // whose size is charged
	d    *longshore.Delivery // of the item when it began to wait: items are used again
	n    int64               // by how much
	room chan struct{}       // closed when there is room
}

// allow lets those grow for which there is room now, in their order.
func (g *growth) allow(sched *dispatch.Scheduler[item]) {
	for len(g.waiting) > 0 {
		w := g.waiting[0]
		if w.it.d == w.d { // else it has ended
			if !sched.MayGrow(w.it.Grown(), w.n, g.holders()) {
				return
			}
			sched.Resize(&w.it.Item, w.n)
		}
		close(w.room)
		g.waiting = g.waiting[1:]
	}
}

// holders is how many of those that wait have grown before: none of them ends first.
func (g *growth) holders() (n int) {
	for _, w := range g.waiting {
		if w.it.d == w.d && w.it.Grown() > 0 {
			n++
		}
	}
	return n
}

// leave takes one that gives up out of the line. It reports false if it has room already.
func (g *growth) leave(w *growing) bool {
	i := slices.Index(g.waiting, w)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

// Resize implements longshore.Sizer.
func (c *caller) Resize(ctx context.Context, d *longshore.Delivery, n int64, wait bool) (err error) {
	var one *growing
	c.locked(func() { one, err = c.growLocked(d, n, wait) })
	if one == nil {
		return err
	}
	select {
	case <-one.room:
		return nil
	case <-ctx.Done():
	}
	c.locked(func() {
		if c.held.growth.leave(one) { // else there was room at the same moment
			c.held.growth.allow(c.held.sched) // for those behind it
			err = context.Cause(ctx)
		}
	})
	return err
}

// growLocked makes a delivery larger at once, or returns its place in the line; nil: it need not
// wait, or may not.
func (c *caller) growLocked(d *longshore.Delivery, n int64, wait bool) (*growing, error) {
	w, it := c.pool.find(d)
	switch {
	case it == nil: // its handler has returned
		return nil, nil
	case !wait || n <= it.Grown():
		c.held.sched.Resize(&it.Item, n)
		c.held.growth.allow(c.held.sched)
		return nil, nil
	}
	one := &growing{it, d, n, make(chan struct{})}
	c.held.growth.waiting = append(c.held.growth.waiting, one)
	c.held.growth.allow(c.held.sched)
	if othersGrown(w, it) && c.held.growth.leave(one) {
		return nil, longshore.ErrNoRoom
	}
	return one, nil
}

// othersGrown reports whether others of the same batch have grown.
func othersGrown(w *worker, it *item) bool {
	return slices.ContainsFunc(w.batch, func(o *item) bool { return o != it && o.Grown() > 0 })
}
