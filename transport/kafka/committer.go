package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// committer commits what the partitions have done: now and then while they are consumed,
// and until the broker has it when they go.
type committer struct {
	src         *Group               // the group, and its name in errors
	member      cluster.Member       // commits carry the generation that the group has given it, so a former member is refused
	life        *lifetime            // ended where a commit shows that the member was removed
	topics      *topics              // identities, so that positions of a deleted topic are not committed for its successor
	assignments *assignments         // whose progress is committed
	settled     *settlements         // how much there is to commit
	health      *topicHealth         // is told of topics that the broker does not know
	reports     *reports             // takes commits that fail and what cannot be saved
	operations  transport.Operations // times each commit
	tx          *transactions        // commits what handlers have published too; nil without Transactional

	turn chan struct{} // holds one token: one commit at a time, and none while a position is moved
}

const (
	// commitTimeout bounds one commit of run.
	commitTimeout = 10 * time.Second
	// retryFirst and retryMost bound the pause between tries of a commit that has to get
	// across.
	retryFirst = 10 * time.Millisecond
	retryMost  = time.Second
	// commitBytes is how much metadata goes into one commit. The coordinator writes a commit
	// as one batch, and refuses it whole where that is larger than its topic allows, 1 MiB
	// by default: 300 partitions, each within its own limit, would never get a position.
	commitBytes = 256 << 10
	// entryBytes is about what a position takes apart from its metadata and its topic.
	entryBytes = 128
	// transactionBytes is about how much handlers have published in one transaction: what has
	// piled up in an outage is written within the time of several.
	transactionBytes = 8 << 20
)

// run commits by time and by count.
func (c *committer) run() {
	linger := c.src.cfg.linger()
	tick := time.NewTicker(linger)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		// Many acknowledgements at once do not wait for the tick, or a crash would repeat all of them.
		case <-c.settled.urgent:
		case <-c.life.over.Done():
			return
		}
		began, spacing := time.Now(), commitSpacing
		if c.settled.each {
			spacing = 0
		}
		ctx, cancel := context.WithTimeout(c.life.over, c.src.cfg.commitLimit())
		if c.commit(ctx, c.assignments.all()) != nil { // reported inside, tried again soon
			spacing = commitRetry
		}
		cancel()
		tick.Reset(linger)
		// From start to start: a commit that takes long does not delay the next.
		gap := time.NewTimer(min(spacing, linger) - time.Since(began))
		select {
		case <-gap.C:
		case <-c.life.over.Done():
			gap.Stop()
			return
		}
	}
}

// flush commits until everything that was acknowledged is committed, as long as another try
// may help and ctx allows. It reports what was lost since the last flush.
func (c *committer) flush(ctx context.Context) error {
	op := "flush " + c.src.title()
	if err := c.persist(ctx, c.assignments.all, mayHelp); err != nil {
		return brokerError(op, c.src.name(), err)
	}
	// Swapped and not read: a loss is reported by one flush.
	n := c.settled.lost.Swap(0)
	if n == 0 {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeSettle, Op: op, Source: c.src.name(),
		Err: fmt.Errorf("%d acknowledged records were not committed before their partitions went away; they will be redelivered", n)}
}

// last is the final commit of partitions that go: what it does not get across is
// redelivered.
func (c *committer) last(ctx context.Context, ps []*partition) error {
	return c.persist(ctx, func() []*partition { return ps }, passes)
}

// persist commits what ps returns, until the broker has it, helps says that another try is
// in vain, or ctx ends.
func (c *committer) persist(ctx context.Context, ps func() []*partition, helps func(error) bool) error {
	wait := retryFirst
	for {
		err := c.commit(ctx, ps())
		if err == nil || !helps(err) || ctx.Err() != nil {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.life.over.Done():
			t.Stop()
			return longshore.ErrClosed
		case <-ctx.Done():
			t.Stop()
			return err
		}
		wait = min(2*wait, retryMost)
	}
}

// mayHelp reports whether another try of a commit can end otherwise.
func mayHelp(err error) bool {
	var ke *kerr.Error
	if errors.Is(err, errUnconfirmed) {
		return true
	}
	if errors.As(err, &ke) {
		return kerr.IsRetriable(ke) || savesTooMuch(ke) || endsTransaction(ke) || ke == kerr.RebalanceInProgress || ke == kerr.IllegalGeneration || ke == kerr.UnknownMemberID || ke == kerr.StaleMemberEpoch
	}
	return true
}

// passes reports whether it can while the assignment lasts. A recreated topic has to be
// subscribed again; a member that is not known has to join again, and then has lost what it
// had.
func passes(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) && !errors.Is(err, errUnconfirmed) {
		switch ke {
		case kerr.UnknownTopicID, kerr.UnknownTopicOrPartition, kerr.InconsistentTopicID, kerr.IllegalGeneration, kerr.UnknownMemberID:
			return false
		}
	}
	return mayHelp(err)
}

// exclude keeps commits out until release is called.
func (c *committer) exclude(ctx context.Context) (release func(), err error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.life.over.Done():
		return nil, longshore.ErrClosed
	}
}

// commit sends the newest state of those that have changed. A failure is never the end: the
// state stays, and the next commit carries it.
func (c *committer) commit(ctx context.Context, ps []*partition) error {
	if c.src.cast {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.commitNow(ctx, ps)
}

// commitNow is commit for a caller that has the turn.
func (c *committer) commitNow(ctx context.Context, ps []*partition) error {
	if c.tx.unsettled() {
		if err := c.tx.settle(ctx, c.committable, c.assignments); err != nil {
			c.troubled(err)
			return err
		}
	}
	c.settled.recent.Store(0)
	var all error
	for {
		batch, more := c.collect(ps)
		var failed error
		for _, part := range parts(batch, c.tx.apart) {
			failed = worse(failed, c.send(ctx, part))
			if c.tx.unsettled() {
				break
			}
		}
		all = worse(all, failed)
		if failed != nil {
			// A partition whose topic is refused does not hold up the pieces of the others.
			more = slices.DeleteFunc(more, func(p *partition) bool { return c.tx.apart(p.key.tp()) })
			if !topicRefused(failed) || c.tx.unsettled() || len(more) == len(ps) {
				return all
			}
		}
		if len(more) == 0 {
			return all
		}
		ps = more
	}
}

// collect takes what partitions have to commit. more are those of which there is more than goes
// into one transaction.
func (c *committer) collect(ps []*partition) (batch map[tp]*pending, more []*partition) {
	batch = map[tp]*pending{}
	for _, p := range ps {
		// Asked again for each batch: a revocation may have ended the assignment since the list was made.
		if !c.committable(p) { // it went while others committed, or its topic did
			p.leftOut()
			continue
		}
		one := p.uncommitted()
		if one == nil {
			continue
		}
		batch[p.key.tp()] = one
		if one.more {
			more = append(more, p)
		}
	}
	return batch, more
}

// worse keeps the error that a retry depends on: one that passes over one that does not.
func worse(failed, err error) error {
	if err != nil && (failed == nil || passes(err) && !passes(failed)) {
		return err
	}
	return failed
}

// parts cuts a commit into those that the coordinator can write.
//
// A transaction has its time, too: what handlers have published is written in pieces.
// One refusal aborts all of a transaction, so a partition that was refused before goes by itself.
func parts(batch map[tp]*pending, apart func(tp) bool) (all []map[tp]*pending) {
	size, written := commitBytes, int64(0)
	var alone []map[tp]*pending
	for k, one := range batch {
		if apart(k) {
			alone = append(alone, map[tp]*pending{k: one})
			continue
		}
		n, bytes := len(one.s.Saved)+len(k.Topic)+entryBytes, weigh(one.outputs)
		size, written = size+n, written+bytes
		// A position that alone is too large goes in a part of its own: it cannot be cut, and the broker's
		// answer for it is then its own.
		if size > commitBytes || written > transactionBytes && written > bytes {
			all, size, written = append(all, map[tp]*pending{}), n, bytes
		}
		all[len(all)-1][k] = one
	}
	return append(all, alone...)
}

// close ends the producer of transactions. Nothing can be committed with one afterwards. Where a
// commit or a broker holds it up beyond ctx, it ends by itself.
func (c *committer) close(ctx context.Context) {
	if c.tx == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The producer must not end under a commit, or its transaction would stay open until the broker's
		// transaction timeout and hold up everyone who reads committed records.
		c.turn <- struct{}{} // a commit in progress ends with the consumer
		defer func() { <-c.turn }()
		c.tx.close()
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// committable reports whether the partition is this member's, and its topic the one that
// has the name now, as far as is known here. A commit by name would reach whatever topic has
// it: brokers before 4.1 are told no identity.
func (c *committer) committable(p *partition) bool {
	if !c.assignments.owns(p) || c.topics.id(p.key.topic) != p.key.id {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.deleted
}

// send commits a batch, and takes the answers.
func (c *committer) send(ctx context.Context, batch map[tp]*pending) error {
	positions := make(map[tp]cluster.Position, len(batch))
	for k, one := range batch {
		positions[k] = cluster.Position{TopicID: one.p.key.id, Offset: one.s.Offset, Epoch: one.s.Epoch, Metadata: one.s.Saved}
	}
	began := c.operations.Begin()
	still := func(k tp) bool { return c.committable(batch[k].p) }
	var answers map[tp]error
	var failed error
	if c.tx.carries(batch) {
		answers, failed = c.tx.commit(ctx, batch, positions, still)
	} else {
		answers, failed = c.member.Commit(ctx, positions, still)
	}
	if failed == nil {
		failed = c.answered(batch, positions, answers)
	}
	// A commit during a rebalance is held back by us (cluster/commitduringjoin.go).
	if !errors.Is(failed, cluster.ErrJoining) { // otherwise nothing was sent
		c.operations.End(longshore.OperationAck, began, codeOr(failed))
	}
	if failed == nil {
		c.reports.over(conditionCommit, c.src.title()+": commits work again")
	} else {
		c.troubled(failed)
	}
	return failed
}

// troubled reports a commit that failed.
func (c *committer) troubled(failed error) {
	if !errors.Is(failed, context.Canceled) {
		c.reports.troubled(conditionCommit, fmt.Sprintf("%s: a commit failed: %v; the next commit carries it too", c.src.title(), failed), failed)
	}
}

// answered looks at the answer of each partition that was sent: an answer has no error as a
// whole.
func (c *committer) answered(batch map[tp]*pending, sent map[tp]cluster.Position, answers map[tp]error) (failed error) {
	missing := 0
	for k := range sent {
		err, known := answers[k]
		one := batch[k]
		if !known {
			if c.committable(one.p) { // otherwise it went meanwhile
				missing++
			}
			continue
		}
		// Each for itself: one topic that was deleted must not keep the others from counting as committed.
		one.p.committed(one, err)
		if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) {
			c.health.markBroken(k.Topic)
		}
		if err != nil {
			failed = worse(failed, c.src.b.failure("commit "+one.p.key.String()+" for "+c.src.title(), c.src.name(), err))
		}
	}
	if failed == nil && missing > 0 {
		failed = &longshore.Error{Code: longshore.CodeSettle, Op: "commit for " + c.src.title(), Source: c.src.name(),
			Err: fmt.Errorf("the answer leaves out %d partitions", missing)}
	}
	return failed
}

// reportRepeats reports what is done in partitions that go and that their last commit could
// not describe: their next owner repeats it.
func (c *committer) reportRepeats(ps []*partition) {
	repeats := 0
	for _, p := range ps {
		p.mu.Lock()
		repeats += p.ledger.forgotten
		p.mu.Unlock()
	}
	if repeats > 0 {
		c.reports.Event(transport.Event{Kind: transport.EventNotice, Repeats: repeats,
			Text: fmt.Sprintf("%s: %d records that are done will be handled again: the metadata of a commit could not describe them; check that the broker's offset.metadata.max.bytes is 4096 or more",
				c.src.title(), repeats)})
	}
}

// uncommitted returns what the broker does not have yet; nil if it has everything.
func (p *partition) uncommitted() *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The version counts every change of the tracker, so an ack above a gap, which moves no offset, is
	// committed too: it is in the metadata.
	if p.t.Version() == p.ledger.committed || p.t.Base() < 0 {
		return nil
	}
	one := &pending{p: p, s: p.t.Snapshot(p.ledger.budget, p.mark), acked: len(p.ledger.acked)}
	one.outputs = p.outputs.covered(&one.s, p.mark)
	one.left = weigh(p.outputs.done) - weigh(one.outputs)
	first, cut, whole := piece(one.outputs, transactionBytes)
	if whole {
		return one
	}
	s, ok := p.t.SnapshotBelow(cut, p.ledger.told.saved(p.mark), p.ledger.budget, p.mark)
	if !ok { // then all of it goes at once
		return one
	}
	s.Version = p.ledger.committed // the rest is still to be committed
	return &pending{p: p, s: s, outputs: first, left: one.left, more: true}
}

// committed takes the broker's answer to a commit.
func (p *partition) committed(one *pending, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ledger.settled(one, err)
	if err == nil {
		p.outputs.carried(one.outputs)
		p.outputs.stay(one.left)
		p.unblock() // where too much was uncommitted
	} else if topicRefused(err) {
		p.outputs.stay(weigh(p.outputs.done))
	}
}

// leftOut notes that no commit takes the partition now: a Publish that waits for room may do so
// in vain.
func (p *partition) leftOut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outputs.stay(weigh(p.outputs.done))
}
