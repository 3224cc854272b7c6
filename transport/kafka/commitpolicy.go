package kafka

import "context"

// CommitPolicy says when the positions of finished records are committed.
type CommitPolicy uint8

const (
	// CommitByLoad commits after SettleLinger, or sooner after 500 records.
	CommitByLoad CommitPolicy = iota
	// AfterEach commits every record that is done before the next one is handed out. A killed
	// member repeats what its workers had in hand and nothing else, at the price of a
	// commit for each record and worker.
	AfterEach
)

// awaitCommit waits, with AfterEach, until everything acknowledged is committed. A commit
// that can never succeed is reported and not waited for: its partition is lost. Errors: ctx's.
func (c *committer) awaitCommit(ctx context.Context) error {
	if c.src.cfg.Commit != AfterEach || !c.behind() {
		return nil
	}
	if err := c.persist(ctx, c.assignments.all, mayHelp); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// behind reports whether a record is done and not committed.
func (c *committer) behind() bool {
	for _, p := range c.assignments.all() {
		p.mu.Lock()
		open := len(p.ledger.acked) > 0
		p.mu.Unlock()
		if open {
			return true
		}
	}
	return false
}
