package transporttest

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func (c *mutantConsumer) Cancel(ctx context.Context) error {
	c.canceled.Store(true)
	switch c.bug() {
	case "cancel-does-not-reach-broker":
		return nil
	case "cancel-loses-buffer":
		if err := c.inner.Cancel(ctx); err != nil {
			return err
		}
		return c.inner.Release(ctx)
	case "cancel-closes":
		return c.Close(ctx)
	}
	return c.inner.Cancel(ctx)
}

func (c *mutantConsumer) Release(ctx context.Context) error {
	switch c.bug() {
	case "release-drops":
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		for {
			ds, err := c.receiveAlone(short, 100)
			if err != nil {
				return nil
			}
			for _, d := range ds {
				_ = d.Ack(ctx)
			}
		}
	case "release-counts":
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		for {
			ds, err := c.receiveAlone(short, 100)
			if err != nil {
				return nil
			}
			for _, d := range ds {
				_ = d.Nack(ctx, 0)
			}
		}
	case "release-keeps":
		return nil
	}
	return c.inner.Release(ctx)
}

func (c *mutantConsumer) Flush(ctx context.Context) error {
	switch c.bug() {
	case "flush-does-nothing":
		return nil
	case "flush-returns-early":
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_ = c.inner.Flush(short)
		return nil
	case "flush-hides-failures":
		_ = c.inner.Flush(ctx)
		return nil
	case "flush-ignores-context":
		return c.inner.Flush(c.m.untilCleanup())
	}
	return c.inner.Flush(ctx)
}

func (c *mutantConsumer) Close(ctx context.Context) error {
	switch c.bug() {
	case "close-acks":
		c.mu.Lock()
		for _, d := range c.held {
			_ = d.Ack(ctx)
		}
		c.mu.Unlock()
	case "second-return-goes-behind":
		c.returnBehind(ctx)
	case "close-drops-accepted":
		c.silent.Store(true)
		c.m.b.Drop(c.m.name())
	case "close-ignores-context":
		ctx = c.m.untilCleanup()
	case "close-twice-fails":
		if c.closed.Load() {
			return longshore.ErrClosed
		}
	case "close-tells-down":
		if !c.closed.Load() && c.obs != nil {
			c.obs.Down(longshore.ErrClosed)
		}
	}
	err := c.inner.Close(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(true)
	switch c.bug() {
	case "close-keeps-deliveries", "settle-after-close-accepted", "stale-tag-settles-new-delivery":
	default:
		for _, d := range c.byInner {
			d.Lose(longshore.ErrLost)
		}
	}
	return err
}

// returnBehind puts what the second consumer of a source has in hand behind everything
// else, as a quorum queue does.
func (c *mutantConsumer) returnBehind(ctx context.Context) {
	c.m.mu.Lock()
	c.m.ends++
	second := c.m.ends == 2
	c.m.mu.Unlock()
	if !second {
		return
	}
	p, self, err := c.m.fullSource.Publisher(ctx)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for tag := uint64(1); tag <= c.tag; tag++ {
		if d := c.held[tag]; d != nil && d.Owned() {
			_ = p.Publish(ctx, self, d.Received())
			_ = d.Ack(ctx)
		}
	}
	_ = p.Close(ctx)
}

func (c *mutantConsumer) Resize(ctx context.Context, n int) error {
	if c.bug() == "resize-does-nothing" {
		return nil
	}
	return c.inner.Resize(ctx, n)
}

func (c *mutantConsumer) Buffered() int {
	return c.inner.Buffered() + len(c.stash)
}

func (c *mutantConsumer) Pause(ctx context.Context) error {
	switch c.bug() {
	case "pause-does-nothing":
		return nil
	case "pause-cancels":
		return c.inner.Cancel(ctx)
	case "pause-gives-back":
		c.mu.Lock()
		defer c.mu.Unlock()
		for in, d := range c.byInner {
			_ = in.Nack(ctx, 0)
			d.Lose(longshore.ErrLost)
		}
	}
	return c.inner.Pause(ctx)
}

func (c *mutantConsumer) Resume(ctx context.Context) error {
	return c.inner.Resume(ctx)
}

func (c *mutantConsumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	n, at, err := c.inner.Backlog(ctx)
	if c.bug() == "backlog-is-zero" {
		n = 0
	}
	return n, at, err
}

func (c *mutantConsumer) Capabilities() transport.Capabilities {
	return c.inner.Capabilities()
}

// The consumer is the observer of the memory transport's consumer.

func (c *mutantConsumer) ours(d *longshore.Delivery) *longshore.Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byInner[d]
}

func (c *mutantConsumer) Lost(ds []*longshore.Delivery, cause error) {
	var lost []*longshore.Delivery
	for _, in := range ds {
		d := c.ours(in)
		switch {
		case d == nil:
		case c.bug() == "loss-accepts-late-settlements", c.bug() == "loss-keeps-contexts",
			c.bug() == "settle-hangs-after-loss", c.bug() == "stale-tag-settles-new-delivery":
			lost = append(lost, d)
		case d.Lose(cause):
			lost = append(lost, d)
		}
	}
	switch {
	case c.obs == nil || c.silent.Load() || len(lost) == 0 || c.bug() == "loss-untold":
	case c.bug() == "lease-loss-untold" && longshore.CodeOf(cause) == longshore.CodeLeaseLost:
	case c.bug() == "loss-without-cause":
		c.obs.Lost(lost, errors.New("connection gone"))
	case c.bug() == "loss-told-twice":
		c.obs.Lost(lost, cause)
		c.obs.Lost(lost, cause)
	default:
		c.obs.Lost(lost, cause)
	}
}

func (c *mutantConsumer) SettleFailed(d *longshore.Delivery, s longshore.Settlement, err error) {
	if c.obs == nil || c.silent.Load() || c.bug() == "failure-swallowed" {
		return
	}
	if c.bug() == "observer-called-inside-verb" {
		c.untold <- func() { c.obs.SettleFailed(c.ours(d), s, err) }
		return
	}
	if c.bug() == "failure-with-wrong-verb" {
		s.Verb = longshore.VerbNack
	}
	c.obs.SettleFailed(c.ours(d), s, err)
}

func (c *mutantConsumer) Down(err error) {
	switch {
	case c.obs == nil || c.silent.Load() || c.bug() == "down-never":
	case c.bug() == "down-twice":
		c.obs.Down(err)
		c.obs.Down(err)
	default:
		c.obs.Down(err)
	}
}

func (c *mutantConsumer) Event(e transport.Event) {
	if c.obs != nil {
		c.obs.Event(e)
	}
}
