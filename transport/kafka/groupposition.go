package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// Positions are positions by topic and partition.
type Positions map[string]map[int32]Position

// Position is where a group goes on in a partition.
type Position struct {
	// Offset is that of the first record that is not done.
	Offset int64 `json:"offset"`
	// Saved is the text that a member committed with the offset. It says which records above
	// the offset are done, and goes with the position to another group.
	Saved string `json:"saved,omitempty"`
	// Done is what Saved says, if it belongs to this offset of this topic.
	Done []OffsetRange `json:"done,omitempty"`
}

// OffsetRange is a run of offsets; To is the offset after the last one.
type OffsetRange struct {
	From int64 `json:"from"` // the first offset
	To   int64 `json:"to"`   // the offset after the last one
}

// Has reports whether a record is done.
func (p *Position) Has(offset int64) bool {
	return offset < p.Offset || slices.ContainsFunc(p.Done, func(r OffsetRange) bool { return r.From <= offset && offset < r.To })
}

// set puts a position.
func (p Positions) set(topic string, partition int32, at Position) {
	if p[topic] == nil {
		p[topic] = map[int32]Position{}
	}
	p[topic][partition] = at
}

// topics are their names in order.
func (p Positions) topics() []string { return slices.Sorted(maps.Keys(p)) }

// GroupPositions reads what a group has committed and what is done above it, without joining
// it. A group that does not exist has no positions.
func (b *Broker) GroupPositions(ctx context.Context, group string) (Positions, error) {
	return withAdmin(b, func(cl *kgo.Client, adm *kadm.Client) (Positions, error) {
		op := fmt.Sprintf("read the positions of kafka group %q at %s", group, b.address())
		found, err := b.committed(ctx, cl, adm, group)
		return found, b.failure(op, group, err)
	})
}

// Ends returns the position after the newest record of each partition: for SeedGroup, so that
// a group begins with what is published from now on.
func (b *Broker) Ends(ctx context.Context, topics ...string) (Positions, error) {
	return b.extents(ctx, topics, func(x cluster.Extent) int64 { return x.End })
}

// Beginnings returns the position of the oldest record of each partition.
func (b *Broker) Beginnings(ctx context.Context, topics ...string) (Positions, error) {
	return b.extents(ctx, topics, func(x cluster.Extent) int64 { return x.Start })
}

// withAdmin runs f with a client of its own.
func withAdmin[T any](b *Broker, f func(*kgo.Client, *kadm.Client) (T, error)) (none T, err error) {
	if err := b.problem(); err != nil {
		return none, err
	}
	cl, err := kgo.NewClient(b.options()...)
	if err != nil {
		return none, badOptions(err)
	}
	defer cl.Close()
	return f(cl, kadm.NewClient(cl))
}

// committed reads positions; what was committed in a deleted topic of the same name is left
// out.
func (b *Broker) committed(ctx context.Context, cl *kgo.Client, adm *kadm.Client, group string) (Positions, error) {
	read, err := adm.FetchOffsets(kadm.RequireStable(ctx), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return Positions{}, nil
	}
	if err != nil {
		return nil, err
	}
	resp, err := cluster.Metadata(ctx, cl, slices.Sorted(maps.Keys(read))...)
	if err != nil {
		return nil, err
	}
	clusterID := ""
	if resp.ClusterID != nil {
		clusterID = *resp.ClusterID
	}
	marks := map[string]offsets.Mark{}
	for _, t := range resp.Topics {
		if t.Topic != nil && t.ErrorCode == 0 {
			marks[*t.Topic] = offsets.MarkOf(clusterID, t.TopicID, *t.Topic)
		}
	}
	found := Positions{}
	for topic, partitions := range read {
		mark, exists := marks[topic]
		for num, r := range partitions {
			switch {
			case r.Err != nil:
				return nil, fmt.Errorf("partition %s/%d: %w", topic, num, r.Err)
			case !exists, r.At < 0, offsets.FromDeletedTopic(r.Metadata, mark, r.At):
				continue
			}
			found.set(topic, num, positionOf(r.Offset, mark))
		}
	}
	return found, nil
}

// positionOf adds what the metadata of a commit says is done above its offset; metadata of other
// clients says nothing.
func positionOf(r kadm.Offset, mark offsets.Mark) Position {
	at := Position{Offset: r.At, Saved: r.Metadata}
	if saved, ok := offsets.Decode(r.Metadata, mark, r.At); ok {
		for _, done := range saved.Done() {
			at.Done = append(at.Done, OffsetRange{done.From, done.To})
		}
	}
	return at
}

// extents asks for the ends of the topics' partitions, of which all must answer.
func (b *Broker) extents(ctx context.Context, topics []string, which func(cluster.Extent) int64) (Positions, error) {
	return withAdmin(b, func(cl *kgo.Client, _ *kadm.Client) (Positions, error) {
		op := fmt.Sprintf("read the ends of kafka topics %q at %s", topics, b.address())
		logs, err := logsOf(ctx, cl, topics, true)
		if err != nil {
			return nil, b.failure(op, "", err)
		}
		found := Positions{}
		for key, log := range logs {
			found.set(key.Topic, key.Num, Position{Offset: which(log)})
		}
		return found, nil
	})
}

// logsOf asks for the ends of all partitions of topics. One that does not answer is an error.
func logsOf(ctx context.Context, cl *kgo.Client, topics []string, committed bool) (map[cluster.Partition]cluster.Extent, error) {
	resp, err := cluster.Metadata(ctx, cl, topics...)
	if err != nil {
		return nil, err
	}
	nums := map[string][]int32{}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, fmt.Errorf("topic %q: %w", orEmpty(t.Topic), err)
		}
		for _, p := range t.Partitions {
			nums[*t.Topic] = append(nums[*t.Topic], p.Partition)
		}
	}
	logs, err := cluster.Extents(ctx, cl, nums, committed)
	if err != nil {
		return nil, err
	}
	for key := range cluster.Each(nums) {
		if !logs[key].Known {
			return nil, &longshore.Error{Code: longshore.CodeTimeout, Op: "read the ends of a log", Source: key.Topic,
				Err: fmt.Errorf("the leader of partition %d did not answer", key.Num), Hint: "check that the partition has a leader"}
		}
	}
	return logs, nil
}

// orEmpty is a string of the protocol, in which nil stands for none.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
