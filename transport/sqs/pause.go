package sqs

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
)

// cancelGrace is how long the end of polling waits for answers that are on their
// way before it cuts the polls off. A long poll on an empty queue always takes this
// long to end.
const cancelGrace = 200 * time.Millisecond

// endPolls waits for open polls, which are cut off when cancelGrace is over. A
// caller that is called off earlier leaves them what remains of it: the broker may
// have handed out what they are about to bring. The caller holds mu.
func (c *consumer) endPolls(ctx context.Context) error {
	in := &c.intake
	if in.polls > 0 && in.cutAt.IsZero() {
		in.cutAt = time.Now().Add(c.grace())
		c.wake()
	}
	return c.until(ctx, func() bool { return in.polls == 0 || in.cutAt.IsZero() })
}

// grace is longer where the broker has lately been slow: it may be about to answer. A
// FIFO queue is asked again after the cut.
func (c *consumer) grace() time.Duration {
	if c.fifo {
		return cancelGrace
	}
	return c.atLeast(cancelGrace)
}

// cutLate cuts off polls that are unwanted when their time is over, and returns
// when to look again. The caller holds mu.
func (c *consumer) cutLate(now time.Time) time.Time {
	at := c.intake.cutAt
	if at.After(now) {
		return at
	}
	if !at.IsZero() {
		c.cutPolls()
	}
	return now.Add(time.Hour)
}

// cutPolls ends open polls without their answers. The caller holds mu.
func (c *consumer) cutPolls() {
	c.intake.cut()
	c.intake.ctx, c.intake.cut = context.WithCancel(c.life)
}

// Pause stops polling. What was handed out stays held; what was not goes back,
// unless the queue counts that against its messages.
func (c *consumer) Pause(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	in := &c.intake
	in.paused = true
	if c.maxReceives == 0 && !in.waiting && in.interrupted.IsZero() {
		in.interrupted = time.Now() // what nobody has begun goes back soon
		c.wake()
	}
	return c.endPolls(ctx)
}

// Resume polls again.
func (c *consumer) Resume(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return longshore.ErrClosed
	}
	c.intake.paused, c.intake.cutAt = false, time.Time{}
	c.startPolls()
	c.announce()
	return nil
}
