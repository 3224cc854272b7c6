package container

import (
	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container/internal/dispatch"
)

// The concluder also ends deliveries without a verdict, for the returner: it implements
// dropper.

func (c *concluder) takeOrphans() (out []*dispatch.Item[item]) {
	c.locked(func() { out = c.held.sched.TakeOrphans() })
	return out
}

func (c *concluder) takenBack(n int) (open []*item) {
	c.locked(func() {
		c.countLost(n)
		open = c.dropLost()
		c.hand.wakeOne()
	})
	return open
}

func (c *concluder) loseAll(g *generation) (open []*item) {
	c.locked(func() {
		c.countLost(c.markLost(g))
		open = c.dropLost()
		c.hand.wakeOne()
	})
	return open
}

// markLost marks what a consumer delivered as lost. It returns how many of them the
// transport will not report: it finds them lost already.
func (c *concluder) markLost(g *generation) (ours int) {
	for t := range c.held.sched.All() {
		if it := t.Of; it.gen == g && it.d.Root().Lose(longshore.ErrLost) && g.isDown() {
			ours++
		}
	}
	return ours
}

func (c *concluder) abandon(out []*dispatch.Item[item]) {
	c.locked(func() {
		if c.axes.Stopping() {
			c.log.drained(tally{released: len(out)})
		}
		c.count.verdicts[longshore.VerdictRelease] += int64(len(out))
		for _, t := range out {
			c.held.finish(t.Of)
		}
	})
}

// dropLost forgets the lost deliveries that no handler has, under the lock. It returns those
// that a handler left open.
func (c *concluder) dropLost() (open []*item) {
	c.held.sweepLost()
	for d, it := range c.held.manual {
		if !d.Owned() && it.returned {
			delete(c.held.manual, d)
			open = append(open, it)
		}
	}
	return open
}

// countLost counts deliveries that the broker took back, under the lock. Each is counted
// once: by the transport or by the container, whichever marked the delivery first.
func (c *concluder) countLost(n int) {
	c.count.lost += int64(n)
	if c.axes.reporting() {
		c.log.drained(tally{lost: n})
	}
}
