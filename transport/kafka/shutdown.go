package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
)

// Cancel stops fetching. The member keeps its partitions, so that what is out can
// be worked off; what waits here was never handed out and simply is not committed.
func (c *consumer) Cancel(context.Context) error {
	c.mu.Lock()
	c.leaving, c.canceled = true, true
	c.line = nil
	c.mu.Unlock()
	c.halt()
	for _, p := range c.assigned() {
		p.mu.Lock()
		p.drop()
		p.queued = true // never again
		p.mu.Unlock()
	}
	signal(c.ready)
	return nil
}

// Release has nothing to give back: see Cancel.
func (c *consumer) Release(context.Context) error { return nil }

// Close loses what is out, commits what is done and leaves the group. A cluster that
// does not answer holds it no longer than ctx.
func (c *consumer) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed, c.leaving = true, true
	away := c.away
	c.end = longshore.ErrClosed
	c.mu.Unlock()
	signal(c.ready)
	c.halt()
	c.gate.enter()
	ps := c.assigned()
	for _, p := range ps {
		p.close(fmt.Errorf("the consumer was closed: %w", longshore.ErrLost))
	}
	c.gate.leave()
	if c.src.cast {
		c.remember(ps)
	}
	var err error
	if !away {
		until, cancel := c.closing(ctx)
		err = c.lastCommit(until, ps) // before leaving: the group would refuse it after that
		cancel()
	}
	c.tellRepeats(ps)
	for _, p := range ps {
		c.forfeit(p)
	}
	c.remove(ps)
	c.finish()
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
	if werr := c.tell.wait(ctx); err == nil {
		err = werr
	}
	return brokerError("close "+c.src.title(), c.src.name(), err)
}

// closing bounds the last commit, so that ctx has time for leaving too.
func (c *consumer) closing(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := commitTimeout
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		limit = min(limit, left-min(left/4, time.Second))
	}
	return context.WithTimeout(ctx, limit)
}

// leaveGroup leaves the group and ends the client. A member that does not leave keeps its
// partitions from the others until its session times out, so this goes on for a moment
// when ctx has ended; but no longer: a coordinator that does not answer must not hold
// the client's goroutines.
func (c *consumer) leaveGroup(ctx context.Context) {
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(leaveLate, cancel) })
	defer stop()
	member, _ := c.cl.GroupMetadata()
	c.leave(leave, member)
	c.removeMember(leave, member)
	if leave.Err() != nil {
		c.kill() // or closing waits for the answers that leaving did not get
	}
	c.cl.Close()
	c.kill()
}

// How long leaving the group may take, and go on behind Close.
const (
	leaveGrace = 5 * time.Second
	leaveLate  = time.Second
)

// leave leaves the group. A client that joins would see that through first, which lasts
// until all others have drained, and the group would wait for a member that has gone: so
// the group is told beside it, as soon as it has given the member its name.
func (c *consumer) leave(ctx context.Context, member string) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = c.cl.LeaveGroupContext(ctx)
	}()
	cfg := &c.src.cfg
	patience := time.NewTicker(joinPatience)
	defer patience.Stop()
	for {
		select {
		case <-left:
			return
		case <-patience.C:
		}
		if c.src.cast || cfg.Protocol != Classic || cfg.InstanceID != "" {
			continue
		}
		if member == "" {
			member, _ = c.cl.GroupMetadata()
		}
		if member != "" {
			break
		}
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.src.group, member
	m := kmsg.NewLeaveGroupRequestMember()
	m.MemberID = member
	req.Members = append(req.Members, m)
	_, _ = req.RequestWith(ctx, c.cl)
	c.kill() // the client would wait for an answer to its joining
	<-left
}

// removeMember lets a static member of the consumer protocol come back under its name. The
// client says that it goes, but not under which name, which the broker refuses: the
// name would be taken until the session times out.
func (c *consumer) removeMember(ctx context.Context, member string) {
	cfg := &c.src.cfg
	if cfg.InstanceID == "" || cfg.Protocol != Consumer || member == "" {
		return
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = c.src.group, member, -2
	req.InstanceID = &cfg.InstanceID
	_, _ = req.RequestWith(ctx, c.cl) // the session's timeout is the other way
}

// fail ends the consumer from inside: it is down until it is opened again. What is
// done may still be committed by Close, unless the cluster is away.
func (c *consumer) fail(err error) {
	c.mu.Lock()
	if c.end != nil {
		c.mu.Unlock()
		return
	}
	c.end = err
	c.away = errors.Is(err, longshore.CodeUnreachable) || errors.Is(err, longshore.CodeConnLost)
	leaving := c.leaving
	c.wg.Go(func() { // the caller may be inside a callback of the group
		for _, p := range c.assigned() {
			p.close(fmt.Errorf("the consumer ended: %w", longshore.ErrLost))
		}
		if !leaving {
			c.tell.down(err)
		}
	})
	c.mu.Unlock()
	signal(c.ready)
	c.halt()
}
