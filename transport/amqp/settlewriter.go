package amqp

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

const (
	// After so many settlements, or this time, the sender asks the broker for an
	// answer on the same channel: what was written before it is confirmed by it.
	// Without that a reset of the connection could take back any number of acks
	// that were believed to be done.
	maxUnconfirmed = 512
	confirmEvery   = time.Second
	// shrinkAfter is how long a window must be far too large before it shrinks.
	shrinkAfter = 10 * time.Second
)

// start runs the sender. It is the session's goroutine too: it may hang in a
// call until the connection ends.
func (c *consumer) start() {
	c.sess.Go(func() {
		defer close(c.sender)
		c.send()
		if c.ch != nil {
			_ = c.ch.Close()
		}
	})
}

// do runs f on the sender. If ctx ends first, f may still run.
func (c *consumer) do(ctx context.Context, f func() error) error {
	j := &job{f: f, done: make(chan error, 1)}
	select {
	case c.jobs <- j:
	case <-c.stop:
		return longshore.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *consumer) stopSender() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.stopped = true
		close(c.stop)
	}
}

func (c *consumer) send() {
	linger, confirm, shrink := idleTimer(), idleTimer(), idleTimer()
	defer linger.Stop()
	defer confirm.Stop()
	defer shrink.Stop()
	// An ack above a gap waits for two passes, so a pass comes twice per linger.
	pause := c.cfg.linger() / 2
	lingering, confirming := false, false
	for {
		select {
		case <-c.stop:
			return
		case j := <-c.jobs:
			j.done <- j.f()
		case <-c.wake:
			switch {
			case pause == 0 || c.takeUrgent():
				c.pass(true)
			case !lingering:
				linger.Reset(pause)
				lingering = true
			}
		case <-linger.C:
			lingering = c.pass(false)
			if lingering {
				linger.Reset(pause)
			}
		case <-confirm.C:
			confirming = false
			_ = c.barrier()
		case <-shrink.C:
			_ = c.adjust(c.intake)
		}
		switch n := c.unconfirmed(); {
		case n >= maxUnconfirmed:
			_ = c.barrier()
		case n > 0 && !confirming:
			confirm.Reset(confirmEvery)
			confirming = true
		}
		switch {
		case !c.again.IsZero():
			shrink.Reset(max(time.Until(c.again), time.Millisecond))
		case !c.calm.IsZero():
			shrink.Reset(max(time.Until(c.calm.Add(shrinkAfter)), time.Millisecond))
		}
	}
}

func idleTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (c *consumer) takeUrgent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.urgent
	c.urgent = false
	return u
}

func (c *consumer) unconfirmed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tags.Unconfirmed()
}

// pass writes what was accepted and tells whether something is left for the next
// one. Errors are not looked at: the channel's end reports what was not confirmed.
func (c *consumer) pass(all bool) (more bool) {
	c.mu.Lock()
	if c.writeStopped || c.end != nil {
		c.mu.Unlock()
		return false
	}
	// What goes back before the broker has confirmed the cancel would come here again.
	c.tags.Collect(&c.batch, all, c.leaving && len(c.steps) > 0)
	more = c.tags.Unsent() > 0
	c.mu.Unlock()
	c.write(&c.batch)
	return more
}

func (c *consumer) write(b *tags.Batch) {
	c.noteBurst(len(b.Alone) + len(b.Islands) + 1)
	for _, s := range b.Alone {
		c.writeOne(s)
	}
	if b.UpTo == 0 && len(b.Islands) == 0 {
		return
	}
	began := c.operations.Begin()
	var err error
	if b.UpTo > 0 {
		err = c.ch.Ack(b.UpTo, b.Multiple)
	}
	for _, tag := range b.Islands {
		err = c.ch.Ack(tag, false)
	}
	c.operations.End(longshore.OperationAck, began, codeOr(err))
}

func (c *consumer) writeOne(s tags.Single) {
	began, kind := c.operations.Begin(), longshore.OperationNack
	var err error
	switch s.How {
	case tags.Nack:
		err = c.ch.Nack(s.Tag, false, true)
	case tags.Reject:
		kind, err = longshore.OperationReject, c.ch.Reject(s.Tag, false)
	case tags.Ack:
		kind, err = longshore.OperationAck, c.ch.Ack(s.Tag, false)
	}
	c.operations.End(kind, began, codeOr(err))
}

// codeOr is for what was written without an answer: it fails with the connection.
func codeOr(err error) (code longshore.Code) {
	if err != nil {
		code = longshore.CodeConnLost
	}
	return code
}

// barrier makes the broker answer on the channel: it has then read all that was
// written before.
func (c *consumer) barrier() error {
	if c.unconfirmed() == 0 {
		return nil
	}
	if err := c.ch.Qos(c.qos, 0, false); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tags.Confirm()
	return nil
}
