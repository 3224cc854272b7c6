package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore"
)

// Flush commits until all that was accepted is committed, as long as trying again
// may help and ctx allows.
func (c *consumer) Flush(ctx context.Context) error {
	if err := c.persist(ctx, c.assigned, mayHelp); err != nil {
		return brokerError("flush "+c.src.title(), c.src.name(), err)
	}
	return c.flushed()
}

// lastCommit is for partitions that go: what it does not get across comes again.
func (c *consumer) lastCommit(ctx context.Context, ps []*partition) error {
	return c.persist(ctx, func() []*partition { return ps }, passes)
}

// persist commits what ps tells, until the broker has it, helps says that trying
// again is in vain, or ctx ends.
func (c *consumer) persist(ctx context.Context, ps func() []*partition, helps func(error) bool) error {
	wait := persistFirst
	for {
		err := c.commit(ctx, ps())
		if err == nil || !helps(err) || ctx.Err() != nil {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.over.Done():
			t.Stop()
			return longshore.ErrClosed
		case <-ctx.Done():
			t.Stop()
			return err
		}
		wait = min(2*wait, persistMost)
	}
}

const (
	persistFirst = 10 * time.Millisecond
	persistMost  = time.Second
)

// mayHelp: another try of a commit can end otherwise.
func mayHelp(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return kerr.IsRetriable(ke) || savesTooMuch(ke) || ke == kerr.RebalanceInProgress || ke == kerr.IllegalGeneration || ke == kerr.UnknownMemberID || ke == kerr.StaleMemberEpoch
	}
	return true
}

// passes: and it can while the assignment lasts. A topic that is gone has to be
// subscribed to anew; a member that is not known has to join anew, and then has lost
// what it had.
func passes(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		switch ke {
		case kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.InconsistentTopicID, kerr.IllegalGeneration, kerr.UnknownMemberID:
			return false
		}
	}
	return mayHelp(err)
}

// owns: the partition is this member's, in the same assignment. The broker does not
// look whose a partition is that is committed for.
func (c *consumer) owns(p *partition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.parts[tp{p.key.topic, p.key.num}]
	return q != nil && q.assignmentToken == p.assignmentToken
}
