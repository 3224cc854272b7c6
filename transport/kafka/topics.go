package kafka

import (
	"encoding/base64"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// topics knows the identities of the cluster and its topics: a topic that is deleted and
// recreated keeps its name, and nothing of the old one may count for the new one.
type topics struct {
	source, group string // for the subscriptions

	mu      sync.Mutex                         // read by the client's hooks too
	cluster string                             // the cluster's identity; "" on brokers that have none
	ids     map[string][16]byte                // by name; zero on brokers that give topics none
	subs    map[string]*longshore.Subscription // what the deliveries of one topic have in common, by identity
}

func newTopics(s *Group) *topics {
	return &topics{source: s.name(), group: s.group, ids: map[string][16]byte{}, subs: map[string]*longshore.Subscription{}}
}

// id is the identity under which a topic is consumed; one that was deleted and made again has
// another.
func (t *topics) id(topic string) [16]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids[topic]
}

// setID follows a topic that was made again.
func (t *topics) setID(topic string, id [16]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids[topic] = id
}

// key names a partition of the topic that has the name now.
func (t *topics) key(at tp) partitionOf {
	return partitionOf{topic: at.Topic, id: t.id(at.Topic), num: at.Num}
}

// adopt takes what the opening has found.
func (t *topics) adopt(found survey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cluster = found.cluster
	for name, f := range found.topics {
		t.ids[name] = f.id
	}
}

// learn takes an answer's identities, and returns the topics that were recreated: they may
// be assigned before their old partitions are seen to be gone, and the client keeps to the
// old identity.
func (t *topics) learn(resp *kmsg.MetadataResponse) (recreated []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range resp.Topics {
		if m.Topic == nil || m.ErrorCode != 0 {
			continue
		}
		if old, known := t.ids[*m.Topic]; known && old != m.TopicID && old != [16]byte{} {
			recreated = append(recreated, *m.Topic)
		}
		t.ids[*m.Topic] = m.TopicID
	}
	if resp.ClusterID != nil {
		t.cluster = *resp.ClusterID
	}
	return recreated
}

// mark is what distinguishes the log of a partition from others of its name.
func (t *topics) mark(key partitionOf) offsets.Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	return offsets.MarkOf(t.cluster, key.id, key.topic)
}

// subscription is what the deliveries of one topic have in common.
func (t *topics) subscription(key partitionOf) *longshore.Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := base64.RawURLEncoding.EncodeToString(key.id[:])
	if key.id == [16]byte{} {
		id = key.topic
	}
	prefix := "k." + t.cluster + "." + id + "."
	if s := t.subs[prefix]; s != nil {
		return s
	}
	s := &longshore.Subscription{Transport: "kafka", Source: t.source, Group: t.group,
		Identify: func(d *longshore.Delivery) string {
			return prefix + strconv.Itoa(int(d.Origin.Partition)) + "." + strconv.FormatUint(d.Origin.Position, 10)
		}}
	t.subs[prefix] = s
	return s
}
