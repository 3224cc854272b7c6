package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
)

// How long leaving the group may take, and go on after Close has returned.
const (
	leaveGrace = 5 * time.Second
	leaveLate  = time.Second
)

// Cancel stops fetching. The member keeps its partitions, so that what is in hand can be
// finished; what waits here was never handed out and is simply not committed.
func (c *consumer) Cancel(context.Context) error {
	c.life.cancel()
	c.turns.clear()
	for _, p := range c.assignments.all() {
		p.stopHandingOut()
	}
	return nil
}

// Release has nothing to give back: see Cancel.
func (c *consumer) Release(context.Context) error { return nil }

// Close loses the deliveries in hand, commits what is done and leaves the group. A cluster that
// does not answer holds it no longer than ctx.
func (c *consumer) Close(ctx context.Context) error {
	first, before := c.life.close()
	if !first {
		return nil
	}
	c.assignments.gate.enter()
	ps := c.assignments.release(fmt.Errorf("the consumer was closed: %w", longshore.ErrLost))
	c.assignments.gate.leave()
	if c.broadcast != nil {
		c.broadcast.remember(ps)
	}
	var err error
	if !errors.Is(before, longshore.CodeUnreachable) && !errors.Is(before, longshore.CodeConnLost) {
		until, cancel := closing(ctx)
		err = c.committer.last(until, ps) // before leaving: the group would refuse it after that
		cancel()
	}
	c.committer.reportRepeats(ps)
	for _, p := range ps {
		p.reportUncommitted()
	}
	c.assignments.remove(ps)
	c.life.finish()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		c.leaveGroup(ctx)
		c.wg.Wait()
	}()
	select {
	case <-gone:
	case <-ctx.Done(): // the rest ends by itself
	}
	if werr := c.reports.Wait(ctx); err == nil {
		err = werr
	}
	return brokerError("close "+c.src.title(), c.src.name(), err)
}

// closing bounds the last commit, so that ctx has time for leaving too.
func closing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := commitTimeout
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		limit = min(limit, left-min(left/4, time.Second))
	}
	return context.WithTimeout(ctx, limit)
}

// abandonOpen ends a consumer that was never handed out.
func (c *consumer) abandonOpen() {
	_, _ = c.life.close()
	c.life.finish()
	late, cancel := context.WithCancel(context.Background())
	cancel()
	c.leaveGroup(late) // a pattern's client may have joined
}

// leaveGroup leaves the group and ends the client. A member that does not leave keeps its
// partitions from the others until its session times out, so this goes on for a moment when
// ctx has ended; but no longer: a coordinator that does not answer must not hold the
// client's goroutines.
func (c *consumer) leaveGroup(ctx context.Context) {
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(leaveLate, cancel) })
	defer stop()
	c.committer.member.Leave(leave, c.src.cfg.Protocol == Classic && !c.src.cast, c.kill)
	c.committer.close(leave) // after leaving, which the others wait for
	if leave.Err() != nil {
		c.kill() // or closing waits for the answers that leaving did not get
	}
	c.cl.Close()
	c.kill()
}

// awaitFailure ends the partitions when a part has ended the consumer. It has a goroutine of
// its own because that part may run inside a callback of the group.
func (c *consumer) awaitFailure() {
	select {
	case <-c.life.failed:
	case <-c.life.over.Done():
	}
	news, err := c.life.failure()
	if err == nil {
		return
	}
	c.assignments.release(fmt.Errorf("the consumer ended: %w", longshore.ErrLost))
	if news {
		c.reports.Down(err)
	}
}
