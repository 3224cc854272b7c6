package kafka_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-C07: who starts at the end does not pass over what is in partitions that were added
// while the topic was read, nor in topics that came to match a pattern: their records
// are older than their assignment. Here they come between two openings of a source.
func TestWhatCameWhileItWasReadIsReadFromItsFirstRecord(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]kafka.Start{"latest": kafka.Latest, "a time": kafka.StartAt(time.Now().Add(time.Hour))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEither(t, 1, func(t *testing.T, c *cluster) {
				for name, src := range map[string]transport.Source{
					"group": c.group(kafka.GroupConfig{Start: start}),
					"consumer protocol": c.broker().Group(c.topic+"-848", []string{c.topic}, kafka.GroupConfig{
						Start: start, Protocol: kafka.Consumer}),
					"broadcast": c.broker().Broadcast([]string{c.topic}, kafka.BroadcastConfig{Start: start}),
				} {
					t.Run(name, func(t *testing.T) { c.readsWhatIsAdded(t, src) })
				}
			})
		})
	}
}

// readsWhatIsAdded: what was there is not read, what is in an added partition is.
func (c *cluster) readsWhatIsAdded(t *testing.T, src transport.Source) {
	adm := admin(t, c.addrs)
	ts, err := adm.ListTopics(t.Context(), c.topic)
	if err != nil {
		t.Fatal(err)
	}
	had := len(ts[c.topic].Partitions)
	c.produce(0, 1, 1, 0)
	m := open(t, src)
	m.none(100 * time.Millisecond)
	m.shut()
	if _, err := adm.CreatePartitions(t.Context(), 1, c.topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new partition", func() bool {
		ts, err := adm.ListTopics(t.Context(), c.topic)
		return err == nil && len(ts[c.topic].Partitions) == had+1
	})
	c.produce(7, 8, 1, int32(had)) //nolint:gosec // a few
	if d := open(t, src).take(1)[0]; string(d.Body) != "7" {
		t.Errorf("first comes %s, want 7", d.Body)
	}
}

func TestTopicThatComesToMatchIsReadFromItsFirstRecord(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 1, 1, 0)
	src := c.broker().Group("g", []string{"^ord"}, kafka.GroupConfig{Pattern: true, Start: kafka.Latest})
	m := open(t, src)
	eventually(t, "a position", func() bool {
		at, err := admin(t, c.addrs).FetchOffsets(t.Context(), "g")
		return err == nil && len(at) > 0
	})
	m.shut()
	later := *c
	later.topic = "ordinary"
	createTopic(t, c.addrs, later.topic, 1)
	later.produce(7, 8, 1, 0)
	if d := open(t, src).take(1)[0]; string(d.Body) != "7" {
		t.Errorf("first comes %s, want 7", d.Body)
	}
}

// What is in a topic that the source itself made came later.
func TestDeclaredTopicIsReadFromItsFirstRecord(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	made := *c
	made.topic = "made"
	joining := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	m := open(t, made.group(kafka.GroupConfig{Start: kafka.Latest, Declare: kafka.Declare{Partitions: 1}}))
	made.produce(7, 8, 1, 0)
	joining.Remove()
	if d := m.take(1)[0]; string(d.Body) != "7" {
		t.Errorf("first comes %s, want 7", d.Body)
	}
}
