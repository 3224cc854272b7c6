package sqs

import "github.com/longshore-go/longshore/internal/problem"

// batchDone reports whether the next poll may be opened: with BatchByBatch nothing is
// received before SQS has confirmed the deletion or the return of everything received
// before. The caller holds the lock.
func (c *consumer) batchDone() bool {
	return !c.src.cfg.BatchByBatch || c.poller.open == 0 && len(c.held.byToken) == 0
}

// checkBatchByBatch refuses a second poll, which would bring a second batch.
func (c *QueueConfig) checkBatchByBatch(l *problem.List) {
	if c.BatchByBatch && c.MaxPollers > 1 {
		l.Add(problem.Conflict("BatchByBatch", nil, "{MaxPollers}", "each poll receives a batch of its own", "leave {MaxPollers} out"))
	}
}
