package kafka

import (
	"cmp"
	"context"
	"slices"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// PartitionProgress says how far this member is in each of its partitions. The ends are
// those of the last fetches; where no fetch keeps them up to date the leaders are asked.
func (c *consumer) PartitionProgress(ctx context.Context) []transport.PartitionProgress {
	ps := c.assignments.all()
	list := make([]transport.PartitionProgress, 0, len(ps))
	paused := c.turns.isPaused()
	ask := map[string][]int32{}
	for _, p := range ps {
		at := p.progress()
		if at.End < 0 || paused {
			ask[at.Topic] = append(ask[at.Topic], at.Partition)
		}
		list = append(list, at)
	}
	if len(ask) > 0 {
		ends, err := cluster.ListOffsets(ctx, c.cl, ask, cluster.Newest, c.src.committedOnly())
		for i := range list {
			if end, ok := ends[tp{Topic: list[i].Topic, Num: list[i].Partition}]; err == nil && ok {
				list[i].End = end
			}
		}
	}
	for i := range list { // a fetch may have gone further than the answer
		list[i].End = max(list[i].End, list[i].Position)
	}
	sortProgress(list)
	return list
}

// sortProgress makes lists comparable by eye from one look to the next.
func sortProgress(list []transport.PartitionProgress) {
	slices.SortFunc(list, func(a, b transport.PartitionProgress) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// PartitionProgress joins that of all members.
func (m *members) PartitionProgress(ctx context.Context) (list []transport.PartitionProgress) {
	for _, c := range m.all {
		list = append(list, c.PartitionProgress(ctx)...)
	}
	sortProgress(list)
	return list
}

// progress is how far the partition is, as far as is known here.
func (p *partition) progress() transport.PartitionProgress {
	_, at, end := p.backlog()
	p.mu.Lock()
	defer p.mu.Unlock()
	return transport.PartitionProgress{Topic: p.key.topic, Partition: p.key.num, Position: at, End: end, Committed: p.ledger.at}
}
