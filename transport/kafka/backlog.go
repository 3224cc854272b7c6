package kafka

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// Backlog counts the records of the assigned partitions that were not handed out yet: what
// waits here, and what the fetches said of the logs' ends. Only for partitions of which
// nothing was fetched is the cluster asked. Gaps count as records. While a leader does not
// answer, the backlog is an error: no new records does not mean that there are none. Offsets
// behind a transaction that has been open for a while count, too.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	now := time.Now()
	ps := c.assignments.all()
	if silent := c.watcher.silentOf(ps); len(silent) > 0 {
		return 0, time.Time{}, c.src.silentError(silent)
	}
	sum := c.watcher.open.behind()
	ask := map[string][]int32{}
	from := map[*partition]int64{}
	paused := c.turns.isPaused()
	for _, p := range ps {
		given, at, end := p.backlog()
		sum += given
		if end < 0 || paused {
			ask[p.key.topic] = append(ask[p.key.topic], p.key.num)
			from[p] = at
			continue
		}
		sum += max(0, end-at)
	}
	if len(ask) == 0 {
		return sum, now, nil
	}
	ends, err := cluster.ListOffsets(ctx, c.cl, ask, cluster.Newest, c.src.committedOnly())
	if err != nil {
		return 0, time.Time{}, c.src.b.failure("read the backlog of "+c.src.title(), c.src.name(), err)
	}
	var silent []*partition
	for p, at := range from {
		end, ok := ends[p.key.tp()]
		if !ok && p.active() {
			silent = append(silent, p)
		}
		sum += max(0, end-at)
	}
	if len(silent) > 0 {
		return 0, time.Time{}, c.src.silentError(silent)
	}
	return sum, now, nil
}

// backlog returns how many records were given back, the offset after the last one handed
// out, and the end of the log; -1 if no fetch keeps that up to date.
func (p *partition) backlog() (given, at, end int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, end = p.t.Base(), p.logEnd
	if n := p.t.Tail(); n > p.t.Head() {
		at = p.t.Offset(n-1) + 1
	}
	if p.buf.held {
		end = -1
	}
	return int64(p.again.count()), max(at, 0), end
}
