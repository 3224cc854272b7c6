package kafka

import (
	"context"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// extent is from where to where a log goes, if it could be asked.
type extent struct {
	start, end int64
	known      bool
}

// measure asks for the ends of the logs, and the topics' identities.
func (c *consumer) measure(ctx context.Context, nums map[string][]int32) (map[tp]extent, error) {
	names := make([]string, 0, len(nums))
	for t := range nums {
		names = append(names, t)
	}
	if resp, err := metadata(ctx, c.cl, names...); err == nil {
		c.learn(resp)
	}
	logs := map[tp]extent{}
	began := time.Now()
	for try := 0; ; try++ {
		starts, err := c.listOffsets(ctx, nums, -2)
		if err != nil {
			return nil, err
		}
		ends, err := c.listOffsets(ctx, those(nums, starts), -1)
		if err != nil {
			return nil, err
		}
		missing := false
		for k := range each(nums) {
			start, ok1 := starts[k]
			end, ok2 := ends[k]
			if ok1 && ok2 {
				logs[k] = extent{start, end, true}
			}
			missing = missing || !ok1 || !ok2
		}
		if !missing || try == measureTries || time.Since(began) >= measureMost {
			return logs, ctx.Err()
		}
		// The group may know new partitions before the client does.
		c.cl.ForceMetadataRefresh()
		t := time.NewTimer(measurePause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// those are the partitions that an answer knows.
func those(nums map[string][]int32, known map[tp]int64) map[string][]int32 {
	some := map[string][]int32{}
	for k := range each(nums) {
		if _, ok := known[k]; ok {
			some[k.topic] = append(some[k.topic], k.num)
		}
	}
	return some
}

// each goes over all partitions.
func each(nums map[string][]int32) iter.Seq[tp] {
	return func(yield func(tp) bool) {
		for topic, parts := range nums {
			for _, num := range parts {
				if !yield(tp{topic, num}) {
					return
				}
			}
		}
	}
}

// learn keeps the identities of topics and cluster. A topic that was made anew can
// be assigned before its old partitions were seen to be gone; the client goes on with
// the old identity, so it is subscribed to anew.
func (c *consumer) learn(resp *kmsg.MetadataResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range resp.Topics {
		if t.Topic == nil || t.ErrorCode != 0 {
			continue
		}
		if old, known := c.ids[*t.Topic]; known && old != t.TopicID && old != [16]byte{} {
			c.healing[*t.Topic] = &healing{next: time.Now(), renewed: true}
		}
		c.ids[*t.Topic] = t.TopicID
	}
	if resp.ClusterID != nil {
		c.facts.id = *resp.ClusterID
	}
}

const (
	measureTries = 10
	measurePause = 250 * time.Millisecond
	measureMost  = measureTries * measurePause
)

// listOffsets asks for the offset at a time: -2 the start, -1 the end, else
// milliseconds. Partitions that cannot say, or not soon enough, are missing.
func (c *consumer) listOffsets(ctx context.Context, nums map[string][]int32, at int64) (map[tp]int64, error) {
	if len(nums) == 0 {
		return nil, ctx.Err()
	}
	soon, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	req := kmsg.NewPtrListOffsetsRequest()
	if c.src.cfg.Isolation == ReadCommitted {
		req.IsolationLevel = 1
	}
	for topic, parts := range nums {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, num := range parts {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = num, at
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	found := map[tp]int64{}
	for _, shard := range c.cl.RequestSharded(soon, req) {
		resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if shard.Err != nil || !ok {
			continue
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if kerr.ErrorForCode(p.ErrorCode) == nil {
					found[tp{t.Topic, p.Partition}] = p.Offset
				}
			}
		}
	}
	return found, ctx.Err()
}
