package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// limitsAge is how long what is known of a topic counts.
const limitsAge = time.Minute

// recordOverhead is at most what a batch of one record and the record itself take beside its
// parts, and headerOverhead what a header does.
const recordOverhead, headerOverhead = 61 + 5 + 1 + 10 + 5 + 5 + 5 + 5, 10

// topicLimits knows what topics take, so that a message which its topic refuses fails its own
// handler. In a transaction it would keep all others from being committed.
type topicLimits struct {
	cl   *kgo.Client // asks; set once, before anything is published
	most int32       // Outlet.MaxBatchBytes: the client refuses what is larger; 0: the topic alone limits it

	mu    sync.Mutex            // guards known
	known map[string]topicRules // by topic
}

// topicRules is what one topic takes.
type topicRules struct {
	bytes      int32     // the largest batch
	partitions int32     // how many there are
	keyed      bool      // compacted: records must have keys
	at         time.Time // when it was read
}

// of returns the limits of a topic. What may not be read has the broker's defaults. Errors: the
// topic does not exist, or no broker answers.
func (l *topicLimits) of(ctx context.Context, topic string) (topicRules, error) {
	l.mu.Lock()
	known, ok := l.known[topic]
	l.mu.Unlock()
	if ok && time.Since(known.at) < limitsAge {
		return known, nil
	}
	resp, err := cluster.Metadata(ctx, l.cl, topic)
	if err != nil {
		return known, err
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return known, err
		}
	}
	now := topicRules{bytes: defaultBatch, at: time.Now()}
	for _, t := range resp.Topics {
		now.partitions = int32(len(t.Partitions)) //nolint:gosec // far fewer
	}
	configs, err := kadm.NewClient(l.cl).DescribeTopicConfigs(ctx, topic)
	if err == nil {
		err = now.read(configs)
	}
	if err != nil && !denied(err) {
		return known, err
	}
	if l.most > 0 {
		now.bytes = min(now.bytes, l.most)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[topic] = now
	return now, nil
}

// with is of, read again where a partition is not known yet: one may have been added.
func (l *topicLimits) with(ctx context.Context, topic string, partition int32) (topicRules, error) {
	known, err := l.of(ctx, topic)
	if err != nil || partition < known.partitions {
		return known, err
	}
	l.mu.Lock()
	delete(l.known, topic)
	l.mu.Unlock()
	return l.of(ctx, topic)
}

// read takes a topic's configuration.
func (t *topicRules) read(configs kadm.ResourceConfigs) error {
	for _, r := range configs {
		if r.Err != nil {
			return r.Err
		}
		for _, c := range r.Configs {
			switch {
			case c.Value == nil:
			case c.Key == "max.message.bytes":
				if n, err := strconv.ParseInt(*c.Value, 10, 32); err == nil {
					t.bytes = int32(n)
				}
			case c.Key == "cleanup.policy":
				t.keyed = strings.Contains(*c.Value, "compact")
			}
		}
	}
	return nil
}

// check refuses what the topic would.
func (t topicRules) check(r *kgo.Record, topic string) error {
	op, n := fmt.Sprintf("publish to kafka topic %q", topic), recordOverhead+len(r.Key)+len(r.Value)
	if r.Partition >= t.partitions {
		return &longshore.Error{Code: longshore.CodeNotFound, Op: op, Source: topic,
			Err: fmt.Errorf("the topic has %d partitions, and partition %d is none of them", t.partitions, r.Partition), Hint: "leave the partition out, or add partitions to the topic"}
	}
	for _, h := range r.Headers {
		n += headerOverhead + len(h.Key) + len(h.Value)
	}
	if n > int(t.bytes) {
		return &longshore.Error{Code: longshore.CodeTooLarge, Op: op, Source: topic,
			Err: fmt.Errorf("the record takes %d bytes, and the topic's max.message.bytes, or Outlet.MaxBatchBytes, is %d", n, t.bytes), Hint: "raise the smaller of the two"}
	}
	if t.keyed && r.Key == nil {
		return &longshore.Error{Code: longshore.CodeRefused, Op: op, Source: topic,
			Err: errors.New("the message has no key, and the topic is compacted"), Hint: "set Message.Key"}
	}
	return nil
}

// batch is the largest batch for a topic: the broker refuses a larger one whole.
func (l *topicLimits) batch(topic string, most int32) int32 {
	l.mu.Lock()
	known, ok := l.known[topic]
	l.mu.Unlock()
	n := or(most, int32(defaultBatch))
	if ok && (most == 0 || known.bytes < most) {
		n = known.bytes
	}
	return n
}
