package kafka

import (
	"context"
	"time"
)

// Backlog is how many records of the assigned partitions were not handed out yet:
// what waits here and what the fetches told of the logs' ends. Only for partitions
// which nothing was fetched of is the cluster asked. Gaps count as records. While a leader
// does not answer nobody knows: that nothing comes of it does not mean that nothing is there.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	now := time.Now()
	var sum int64
	ask := map[string][]int32{}
	from := map[tp]int64{}
	asked := map[tp]*partition{}
	var silent []*partition
	for _, p := range c.assigned() {
		p.mu.Lock()
		if !p.silent.IsZero() {
			silent = append(silent, p)
		}
		at := p.t.Base()
		if n := p.t.Tail(); n > p.t.Head() {
			at = p.t.Offset(n-1) + 1
		}
		at = max(at, 0)
		end, unknown := p.logEnd, p.logEnd < 0 || p.held || c.isPaused()
		waiting := int64(len(p.again) + len(p.waits))
		p.mu.Unlock()
		sum += waiting
		if unknown {
			ask[p.key.topic] = append(ask[p.key.topic], p.key.num)
			k := tp{p.key.topic, p.key.num}
			from[k], asked[k] = at, p
			continue
		}
		sum += max(0, end-at)
	}
	if len(silent) > 0 {
		return 0, time.Time{}, c.src.silentError(silent)
	}
	if len(ask) == 0 {
		return sum, now, nil
	}
	ends, err := c.listOffsets(ctx, ask, -1)
	if err != nil {
		return 0, time.Time{}, c.src.b.failure("read the backlog of "+c.src.title(), c.src.name(), err)
	}
	for k, p := range asked {
		end, ok := ends[k]
		if !ok && p.active() {
			silent = append(silent, p)
		}
		sum += max(0, end-from[k])
	}
	if len(silent) > 0 {
		return 0, time.Time{}, c.src.silentError(silent)
	}
	return sum, now, nil
}
