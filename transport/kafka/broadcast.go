package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// broadcast takes all partitions of all topics, without a group.
type broadcast struct {
	src         *Group       // which topics, and where to begin
	cl          *kgo.Client  // assigns itself partitions, without a group
	life        *lifetime    // ends the reading where a topic cannot be read
	topics      *topics      // the identity of each topic
	start       *startpoints // where new partitions begin
	assignments *assignments // what is read now

	looked time.Time // when it last looked for new partitions; the watcher's own
}

// takeAll takes the partitions that are not taken yet.
func (b *broadcast) takeAll(ctx context.Context) error {
	for _, topic := range b.src.topics {
		if err := b.take(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// take is takeAll for one topic.
func (b *broadcast) take(ctx context.Context, topic string) error {
	resp, err := cluster.Metadata(ctx, b.cl, topic)
	if err != nil {
		return err
	}
	var fresh []int32
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			if b.assignments.get(tp{Topic: topic, Num: p.Partition}) == nil {
				fresh = append(fresh, p.Partition)
			}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	logs, err := b.start.extents(ctx, map[string][]int32{topic: fresh})
	if err != nil {
		return err
	}
	var made []*partition
	offsets := map[int32]kgo.Offset{}
	for _, num := range fresh {
		at := tp{Topic: topic, Num: num}
		if !logs[at].Known {
			return errors.New("a partition has no leader yet, or one that does not answer")
		}
		p, err := b.start.begin(ctx, b.topics.key(at), commitRead{}, false, logs[at])
		if err != nil {
			return err
		}
		made = append(made, p)
		offsets[num] = kgo.NewOffset().At(p.t.Base())
	}
	b.assignments.install(made)
	b.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})
	return nil
}

// subscribe implements subscriber.
func (b *broadcast) subscribe(ctx context.Context, topic string) {
	_ = b.take(ctx, topic) // look tries again
}

// remember notes how far each partition is, for the next opening.
func (b *broadcast) remember(ps []*partition) {
	for _, p := range ps {
		p.mu.Lock()
		at := p.t.Base()
		p.mu.Unlock()
		b.src.starts.set(p.key, at)
	}
}

// look looks for new partitions now and then.
func (b *broadcast) look() {
	b.remember(b.assignments.all())
	if time.Since(b.looked) < metadataAge || b.life.leaving() {
		return
	}
	b.looked = time.Now()
	ctx, cancel := context.WithTimeout(b.life.over, quietAfter)
	defer cancel()
	_ = b.takeAll(ctx) // tried again soon
}
