package amqp

import (
	"context"
	"time"
)

// Before a cancel all that the broker has under way to us must have come. What meets
// the cancel a quorum queue's channel gives back by itself, before what we have or
// behind everything else: behind or before older messages of the same key.

const (
	stillFor = 20 * time.Millisecond
	stillMax = time.Second
	putOff   = time.Second // until a cancel is tried again
)

// quiet waits until the broker has nothing under way to us and says whether it is so.
// Acks are what makes it send more, and they are written by the sender, which waits
// here. So it is over when the window is full, or when nothing came for a while and
// nothing is ready in the queues. It gives up when nothing came for a second though
// it should; answers says whether the queues have answered then.
func (c *consumer) quiet(ctx context.Context) (quiet, answers bool) {
	if c.cfg.AutoAck || c.cfg.Declare.Type == Classic || c.src.streams() {
		return true, true
	}
	tick := time.NewTicker(stillFor / 4)
	defer tick.Stop()
	begin := time.Now()
	last, since, moved := uint64(0), begin, begin
	for time.Since(moved) < stillMax && (ctx.Err() == nil || time.Since(begin) < stillMax) {
		c.mu.Lock()
		top, full, over := c.tags.Top(), c.window > 0 && c.tags.OutstandingFrom(c.stale) >= c.window, c.end != nil
		standby := c.standby
		c.mu.Unlock()
		switch {
		case over || standby:
			return true, true
		case full:
			return true, c.countOthers()
		case top != last:
			last, since = top, time.Now()
			if c.cfg.Prefetch != Unlimited { // else what comes has no end
				moved = since
			}
		case time.Since(since) >= stillFor:
			ready, known := c.anyReady()
			answers = answers || known
			if known && !ready {
				return true, c.countOthers()
			}
			since = time.Now()
		}
		select {
		case <-tick.C:
		case <-c.gone:
			return true, true
		}
	}
	return false, answers
}

// anyReady tells whether a queue has messages that could be sent to us. A queue that
// shows none of our consumers has not answered. It runs on the sender.
func (c *consumer) anyReady() (ready, known bool) {
	known = true
	for _, q := range c.queues {
		st, err := c.ch.QueueDeclarePassive(q, false, false, false, false, nil)
		if err != nil {
			return false, true // the channel has ended
		}
		ready = ready || st.Messages > 0
		known = known && st.Consumers > 0
	}
	return ready, known
}

// countOthers notes how many consumers the queue shows beside ours, and says whether it
// answers at all: else a cancel would wait for it, for minutes. It runs before a cancel.
func (c *consumer) countOthers() (answers bool) {
	c.others = -1
	for range askTimes {
		seen := 0
		for _, q := range c.queues {
			st, err := c.ch.QueueDeclarePassive(q, false, false, false, false, nil)
			if err != nil {
				return true // the channel has ended
			}
			if st.Consumers > 0 {
				seen++
			}
			if len(c.queues) == 1 && seen == 1 {
				c.others = max(st.Consumers-len(c.steps), 0)
			}
		}
		if seen == len(c.queues) {
			return true
		}
	}
	return false
}
