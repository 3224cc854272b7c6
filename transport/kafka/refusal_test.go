package kafka_test

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A publisher that was refused its identity is not refused for ever: the permission
// comes, or the node was not well. F-B05.
func TestPublisherRefusedAnIdentityOnce(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	for _, e := range []*kerr.Error{kerr.ClusterAuthorizationFailed, kerr.UnknownServerError} {
		p := publisher(t, c.broker(), kafka.PublisherConfig{})
		c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Err: e})
		m := &longshore.Message{Body: []byte("a")}
		if err := p.Publish(t.Context(), c.topic, m); !errors.Is(err, e) {
			t.Errorf("%s: %v", e.Message, err)
		}
		if err := p.Publish(t.Context(), c.topic, m); err != nil {
			t.Errorf("after %s: %v", e.Message, err)
		}
	}
}

// What joining again cannot cure ends the consumer, which says what to do; until then
// it would stand there, ready and without a partition. F-L04.
func TestGroupThatCannotBeJoined(t *testing.T) {
	t.Parallel()
	for e, code := range map[*kerr.Error]longshore.Code{
		kerr.InvalidSessionTimeout: longshore.CodeConfig, kerr.ClusterAuthorizationFailed: longshore.CodeForbidden, kerr.InvalidRequest: longshore.CodeRefused,
	} {
		c := embeddedCluster(t, 1)
		c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: e, Count: -1})
		m := open(t, c.group(kafka.GroupConfig{}))
		if _, err := m.upTo(1, patience); !errors.Is(err, code) {
			t.Errorf("%s: %v, want %s", e.Message, err, code)
		}
	}
}

// A topic that may not be read any more ends the consumer, where it has no other. F-L04.
func TestTopicsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 1, 1, 0)
	m := open(t, c.group(kafka.GroupConfig{}))
	d := m.take(1)
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: c.topic, Err: kerr.TopicAuthorizationFailed, Count: -1})
	ack(t, d...)
	if _, err := m.upTo(1, patience); !errors.Is(err, longshore.CodeForbidden) {
		t.Errorf("Receive: %v", err)
	}
	m.shut()
	if at, _ := c.committed(0); at != 1 {
		t.Errorf("committed %d, want 1", at)
	}
	if told := m.told(transport.EventNotice); len(told) > 3 {
		t.Errorf("told %d times: %q", len(told), told)
	}
}

// One of two topics may not be read: the other is, and it is told.
func TestOneOfTwoTopicsMayNotBeRead(t *testing.T) {
	t.Parallel()
	f := fake(t, kfake.SeedTopics(1, "orders", "secret"))
	c := &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
	f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "secret", Err: kerr.TopicAuthorizationFailed, Count: -1})
	m := open(t, c.broker().Group("g", []string{"orders", "secret"}, kafka.GroupConfig{}))
	began := time.Now()
	for i := 0; time.Since(began) < 4*time.Second; i++ {
		c.produce(i, i+1, 1, 0)
		ack(t, m.take(1)...)
	}
	if told := m.told(transport.EventNotice); len(told) == 0 || len(told) > 3 {
		t.Errorf("told %d times: %q", len(told), told)
	}
}

// A partition without a leader, of which nobody can tell where it begins, holds none of
// the others up, and is read from where it should be when the leader is back. F-C08, F-E07.
func TestPartitionThatCannotBeMeasured(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]kafka.GroupConfig{
		"earliest": {OutOfRange: kafka.ToLatest}, "fail": {OutOfRange: kafka.Fail}, "latest": {Start: kafka.Latest}, "time": {Start: kafka.StartAt(time.Unix(1, 0))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embeddedCluster(t, 2)
			c.produce(0, 10, 1, 0)
			if _, err := admin(t, c.addrs).DeleteRecords(t.Context(), kadm.Offsets{c.topic: {0: {Topic: c.topic, Partition: 0, At: 5}}}); err != nil {
				t.Fatal(err)
			}
			away := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: c.topic, Partitions: []int32{0}, Err: kerr.LeaderNotAvailable, Count: -1})
			src := c.group(cfg)
			m := open(t, src)
			newOf := func(partition int32) {
				eventually(t, "a new record of the partition", func() bool {
					c.produce(10, 11, 1, partition)
					ds, _ := m.upTo(1, 100*time.Millisecond)
					ack(t, ds...)
					return len(ds) > 0 && ds[0].Origin.Partition == partition
				})
			}
			if cfg.Start == kafka.Latest {
				newOf(1)
				away.Remove()
				newOf(0)
				return
			}
			c.produce(0, 1, 1, 1)
			ack(t, m.take(1)...)
			away.Remove()
			for i, d := range m.take(5) {
				if d.Origin.Position != uint64(5+i) || d.Origin.Partition != 0 {
					t.Errorf("offset %d of partition %d", d.Origin.Position, d.Origin.Partition)
				}
				ack(t, d)
			}
			c.waitCommitted(0, 10)
			if told := m.told(transport.EventSkipped); len(told) > 0 {
				t.Errorf("told of a gap: %q", told)
			}
		})
	}
}

// The seeds are gone, the cluster is not: a topic that is made again is found all the
// same. F-B01.
func TestSeedsThatAreGone(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 1, 1, 0)
	seed := faultproxy.New(t, c.addrs[0])
	src := kafka.New([]string{seed.Addr()}, kafka.Config{}).Group(c.topic, []string{c.topic}, kafka.GroupConfig{})
	m := open(t, src)
	ack(t, m.take(1)...)
	m.flush()
	seed.Close()
	c.remove()
	c.remake(1)
	c.produce(1, 2, 1, 0)
	if d := m.take(1)[0]; string(d.Body) != "1" {
		t.Errorf("%s came", d.Body)
	}
}
