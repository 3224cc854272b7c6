package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// broadcast takes all partitions of all topics.
func (c *consumer) broadcast(ctx context.Context) error {
	for _, topic := range c.src.topics {
		if err := c.broadcastTopic(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// broadcastTopic takes those partitions of a topic that are not taken yet.
func (c *consumer) broadcastTopic(ctx context.Context, topic string) error {
	resp, err := metadata(ctx, c.cl, topic)
	if err != nil {
		return err
	}
	c.learn(resp)
	var fresh []int32
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			c.mu.Lock()
			if c.parts[tp{topic, p.Partition}] == nil {
				fresh = append(fresh, p.Partition)
			}
			c.mu.Unlock()
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	logs, err := c.measure(ctx, map[string][]int32{topic: fresh})
	if err != nil {
		return err
	}
	var made []*partition
	offsets := map[int32]kgo.Offset{}
	for _, num := range fresh {
		log := logs[tp{topic, num}]
		if !log.known {
			return errors.New("a partition has no leader yet, or one that does not answer")
		}
		p, err := c.begin(ctx, partitionOf{topic, c.topicID(topic), num}, commitRead{}, false, log)
		if err != nil {
			return err
		}
		made = append(made, p)
		offsets[num] = kgo.NewOffset().At(p.t.Base())
	}
	c.install(made)
	c.cl.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})
	return nil
}

// remember notes how far each partition is, for the next opening.
func (c *consumer) remember(ps []*partition) {
	for _, p := range ps {
		p.mu.Lock()
		at := p.t.Base()
		p.mu.Unlock()
		c.src.starts.set(p.key, at)
	}
}

// enlarged looks for new partitions now and then.
func (c *consumer) enlarged() {
	c.remember(c.assigned())
	c.mu.Lock()
	due := time.Since(c.looked) >= metadataAge && !c.leaving
	if due {
		c.looked = time.Now()
	}
	c.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(c.over, quietAfter)
	defer cancel()
	_ = c.broadcast(ctx) // asked again soon
}
