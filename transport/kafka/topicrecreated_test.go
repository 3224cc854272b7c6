package kafka_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// remove deletes the topic. It is gone when the broker says so: until then it takes
// commits.
func (c *cluster) remove() {
	c.t.Helper()
	adm := admin(c.t, c.addrs)
	if _, err := adm.DeleteTopics(context.Background(), c.topic); err != nil {
		c.t.Fatal(err)
	}
	eventually(c.t, "no topic", func() bool {
		ts, err := adm.ListTopics(context.Background(), c.topic)
		return err == nil && errors.Is(ts[c.topic].Err, kerr.UnknownTopicOrPartition)
	})
}

// remake makes the topic again once the broker allows it. It is there when the broker
// tells its new identity: until then a producer would write to the old log.
func (c *cluster) remake(partitions int32) {
	c.t.Helper()
	adm := admin(c.t, c.addrs)
	var id [16]byte
	eventually(c.t, "the topic can be made again", func() bool {
		made, err := adm.CreateTopic(context.Background(), partitions, 1, nil, c.topic)
		id = made.ID
		return err == nil
	})
	eventually(c.t, "the new topic", func() bool {
		ts, err := adm.ListTopics(context.Background(), c.topic)
		return err == nil && ts[c.topic].Err == nil && ts[c.topic].ID == id && len(ts[c.topic].Partitions) == int(partitions)
	})
}

// takeAnew takes from a topic that was made anew. Where that lasted long the consumer
// has ended, as without a topic it must, and is opened again.
func (m *member) takeAnew(src transport.Source, n int) (*member, []*longshore.Delivery) {
	m.t.Helper()
	ds, err := m.upTo(n, patience)
	if errors.Is(err, longshore.CodeNotFound) && len(ds) == 0 {
		m.shut()
		m = open(m.t, src)
		return m, m.take(n)
	}
	if err != nil {
		m.t.Fatalf("with %d of %d received: %v", len(ds), n, err)
	}
	return m, ds
}

// A topic that is deleted and made anew is read again, from its beginning, also by who
// starts at the end: what is in it came while it was read. Late acks of the old one
// change nothing.
func TestTopicMadeAnew(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(t *testing.T, c *cluster, p kafka.Protocol) {
		c.produce(0, 10, 10, -1)
		src := c.group(kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond})
		m := open(t, src)
		old := m.take(10)
		ack(t, old[:6]...)
		m.flush()
		c.remove()
		c.remake(2)
		c.produce(10, 40, 10, -1)
		m, ds := m.takeAnew(src, 30)
		for _, d := range ds {
			if string(d.Body) < "10" || len(d.Body) < 2 {
				t.Errorf("received %s of the old topic", d.Body)
			}
		}
		for _, d := range old[6:] {
			if err := d.Ack(t.Context()); !errors.Is(err, longshore.ErrLost) {
				t.Errorf("Ack of a record of the old topic: %v", err)
			}
		}
		ack(t, ds[:5]...)
		m.flush()
		ack(t, ds[5:]...)
		m.flush()
		if n := c.sum(); n != 30 {
			t.Errorf("the new topic's positions: %d in all", n)
		}
	})
}

// While the only topic of a container is deleted it is not ready and says what to do;
// when the topic is made again, all of it is handled, from its first record.
func TestContainerOverADeletedTopic(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(t *testing.T, c *cluster, p kafka.Protocol) {
		c.produce(0, 10, 10, -1)
		var seen handled
		k := seeker(t, c, kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond, Start: kafka.Latest}, func(_ context.Context, d *longshore.Delivery) error {
			seen.add(string(d.Body))
			return nil
		}, func(conf *container.Config) {
			conf.Reopen = container.Backoff{Initial: 50 * time.Millisecond, Max: 200 * time.Millisecond}
		})
		eventually(t, "positions at the end", func() bool {
			all, err := admin(t, c.addrs).FetchOffsets(t.Context(), c.topic)
			sum := int64(0)
			all.Each(func(o kadm.OffsetResponse) { sum += o.At })
			return err == nil && sum == 10
		})
		c.remove()
		eventually(t, "not ready", func() bool { return !k.Stats().Ready })
		for _, part := range []string{c.topic, "UNKNOWN_TOPIC_OR_PARTITION", "create it", "set Declare"} {
			if reason := k.Stats().Reason; !strings.Contains(reason, part) {
				t.Errorf("the reason is %q, want %q in it", reason, part)
			}
		}
		c.remake(2)
		c.produce(10, 40, 10, -1)
		eventually(t, "the new records", func() bool { return seen.count(10, 40) >= 30 })
		eventually(t, "ready", func() bool { return k.Stats().Ready })
		eventually(t, "the new positions", func() bool { return c.sum() == 30 })
		if n := seen.count(0, 40); n != 30 {
			t.Errorf("%d runs of 30 records", n)
		}
	})
}

// F-C05: a position of the deleted topic that was committed by name after the new one
// was made, as brokers before 4.1 allow, does not count: no record is skipped. One that
// an administrator sets does.
func TestLatePositionOfADeletedTopic(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		saved bool
		from  int
	}{"of a member": {true, 10}, "of an administrator": {false, 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEither(t, 1, func(t *testing.T, c *cluster) {
				c.produce(0, 10, 10, 0)
				m := open(t, c.group(kafka.GroupConfig{}))
				ack(t, m.take(10)...)
				m.flush()
				at, saved := c.committed(0)
				m.shut()
				c.remove()
				c.remake(1)
				c.produce(10, 40, 10, 0)
				if !tc.saved {
					saved = ""
				}
				c.commitByName(at, saved)
				next := open(t, c.group(kafka.GroupConfig{Start: kafka.Latest}))
				ds := next.take(40 - tc.from)
				if first := string(ds[0].Body); first != "10" && tc.saved || first != "20" && !tc.saved {
					t.Errorf("begins at %s", first)
				}
				if told := next.told(transport.EventNotice); tc.saved && (len(told) != 1 || !strings.Contains(told[0], "was deleted")) {
					t.Errorf("told %q", told)
				}
				ack(t, ds...)
				next.flush()
				c.waitCommitted(0, 30)
			})
		})
	}
}

// F-C05: on a broker that is told no identity of topics a commit is under way while the
// topic is made anew, and lands in the new one. All of that is read all the same.
func TestCommitUnderWayWhileTheTopicIsMadeAnew(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		f := fake(t, kfake.SeedTopics(1, "orders"), kfake.MaxVersions(kversion.V4_0_0()))
		c := &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
		c.produce(0, 10, 1, 0)
		src := c.group(kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond})
		m := open(t, src)
		ds := m.take(10)
		var under atomic.Bool
		release := make(chan struct{})
		f.ControlKey(int16(kmsg.OffsetCommit), func(r kmsg.Request) (kmsg.Response, error, bool) {
			f.KeepControl()
			if r.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0].Offset == 10 { //nolint:errcheck // by the key
				under.Store(true)
				f.SleepControl(func() { <-release })
			}
			return nil, nil, false
		})
		ack(t, ds...)
		eventually(t, "a commit under way", under.Load)
		c.remove()
		c.remake(1)
		c.produce(10, 40, 1, 0)
		close(release)
		_, ds = m.takeAnew(src, 30)
		if first := string(ds[0].Body); first != "10" {
			t.Errorf("begins at %s", first)
		}
		ack(t, ds...)
		c.waitCommitted(0, 30)
	})
}

// commitByName sets a position as brokers before 4.1 let their clients do.
func (c *cluster) commitByName(at int64, saved string) {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.MaxVersions(kversion.V4_0_0()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = c.topic, -1
	topic, part := kmsg.NewOffsetCommitRequestTopic(), kmsg.NewOffsetCommitRequestTopicPartition()
	part.Offset, part.Metadata = at, &saved
	topic.Topic, topic.Partitions = c.topic, append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	eventually(c.t, "the group is empty and takes a position", func() bool {
		resp, err := req.RequestWith(context.Background(), cl)
		return err == nil && resp.Topics[0].Partitions[0].ErrorCode == 0
	})
}

// A broadcast begins a topic that was made anew at its first record, wherever it
// started.
func TestBroadcastOfATopicMadeAnew(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		c.produce(0, 10, 1, 0)
		src := c.broker().Broadcast([]string{c.topic}, kafka.BroadcastConfig{Start: kafka.Latest})
		m := open(t, src)
		c.produce(10, 11, 1, 0)
		ack(t, m.take(1)...)
		c.remove()
		c.remake(1)
		c.produce(20, 23, 1, 0)
		_, ds := m.takeAnew(src, 3)
		if first := string(ds[0].Body); first != "20" {
			t.Errorf("begins at %s", first)
		}
	})
}

// A stop does not wait for commits to a topic that is gone: what was done is reported.
func TestStopAfterTheTopicWasDeleted(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		c.produce(0, 2, 1, 0)
		m := open(t, c.group(kafka.GroupConfig{SettleLinger: time.Minute}))
		ds := m.take(2)
		c.waitCommitted(0, 0) // the first commit does not wait for the linger
		ack(t, ds...)
		c.remove()
		if err := m.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := m.Flush(ctx); !errors.Is(err, longshore.CodeSettle) {
			t.Errorf("Flush: %v", err)
		}
		m.shut()
		if _, failed, _ := m.counts(); failed != 2 {
			t.Errorf("%d failed settlements told, want 2", failed)
		}
		c.remake(1)
	})
}
