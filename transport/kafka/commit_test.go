package kafka_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// inBubble runs f on a cluster with a clock of its own.
func inBubble(t *testing.T, partitions int32, f func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var nw kfake.VirtualNetwork
		k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.SeedTopics(partitions, "orders"), kfake.ListenFn(nw.Listen))
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		f(t, &cluster{addrs: k.ListenAddrs(), fake: k, topic: "orders", t: t, opts: []kgo.Opt{kgo.Dialer(nw.DialContext)}})
	})
}

// commits notes when the group commits.
type commits struct {
	mu sync.Mutex
	at []time.Time
}

func (c *cluster) watchCommits() *commits {
	n := &commits{}
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Observe: true, Count: -1, When: func(kmsg.Request) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		// A request is seen once for each thing in it that a fault could be about.
		if now := time.Now(); len(n.at) == 0 || !now.Equal(n.at[len(n.at)-1]) {
			n.at = append(n.at, now)
		}
		return true
	}})
	return n
}

func (n *commits) times() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]time.Time(nil), n.at...)
}

// A commit comes a second after the last, sooner after 500 records, never sooner than
// 20 ms; idle there is none. So what is not committed is bounded by the rate.
func TestCommitsFollowTheLoad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every       time.Duration // 10 records
		least, most time.Duration // between commits
	}{
		"10 a second":     {time.Second, 900 * time.Millisecond, 1100 * time.Millisecond},
		"5 000 a second":  {2 * time.Millisecond, 90 * time.Millisecond, 120 * time.Millisecond},
		"50 000 a second": {200 * time.Microsecond, 19 * time.Millisecond, 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, k *cluster) {
				n := 20
				if c.every < time.Second {
					n = 10000
				}
				k.produce(0, n, 10, 0)
				m := open(t, k.group(kafka.GroupConfig{Window: 20000}))
				ds := m.take(n)
				m.flush()
				seen := k.watchCommits()
				began := time.Now()
				for len(ds) > 0 {
					ack(t, ds[:10]...)
					ds = ds[10:]
					wait(c.every)
				}
				lasted := time.Since(began)
				at := seen.times()
				if want := int(lasted/c.most) - 1; len(at) < want {
					t.Errorf("%d commits in %s, want at least %d", len(at), lasted, want)
				}
				for i := 1; i < len(at); i++ {
					if gap := at[i].Sub(at[i-1]); gap < c.least || gap > c.most {
						t.Errorf("commit %d came %s after the last, want %s to %s", i, gap, c.least, c.most)
					}
				}
				wait(2 * time.Second)
				before := len(seen.times())
				wait(time.Minute)
				if idle := len(seen.times()) - before; idle > 0 {
					t.Errorf("%d commits in an idle minute", idle)
				}
				m.shut()
			})
		})
	}
}

// F-C05: between two runs retention takes the record that was stuck, and some behind
// it: those that are left and not done come, and nothing else; nor does anything else
// after a run that has done nothing.
func TestSavedStateOutlivesADeletedHead(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		c.produce(0, 100, 1, 0)
		src := c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond})
		m := open(t, src)
		for i, d := range m.take(100) {
			if i != 0 && i != 30 && i != 80 {
				ack(t, d)
			}
		}
		m.flush()
		m.shut()
		c.deleteBefore(0, 50)
		idle := open(t, src)
		if d := idle.take(1)[0]; d.Origin.Position != 80 {
			t.Errorf("received offset %d before 80", d.Origin.Position)
		}
		if told := idle.told(transport.EventSkipped); len(told) != 1 {
			t.Errorf("told %q", told)
		}
		idle.flush()
		idle.shut()
		next := open(t, src)
		c.produce(100, 101, 1, 0)
		for _, want := range []uint64{80, 100} {
			d := next.take(1)[0]
			if d.Origin.Position != want {
				t.Errorf("received offset %d before %d", d.Origin.Position, want)
			}
			ack(t, d)
		}
		if told := next.told(transport.EventSkipped); len(told) != 0 {
			t.Errorf("told %q", told)
		}
		next.flush()
		c.noLag(next)
	})
}

// Of two topics one is deleted: its partitions end, the other is read on. It is told
// once, and the errors do not keep a processor busy.
func TestDeletedTopicLeavesTheOthers(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(t *testing.T, c *cluster, p kafka.Protocol) {
		doomed := *c
		doomed.topic = c.topic + "-doomed"
		createTopic(t, c.addrs, doomed.topic, 2)
		c.produce(0, 4, 4, -1)
		doomed.produce(0, 4, 4, -1)
		m := open(t, c.broker().Group(c.topic, []string{c.topic, doomed.topic}, kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond}))
		ack(t, m.take(8)...)
		m.flush() // or the group asks for the place of a topic that is gone
		if _, err := admin(t, c.addrs).DeleteTopics(t.Context(), doomed.topic); err != nil {
			t.Fatal(err)
		}
		for i := 4; i < 24; i++ {
			c.produce(i, i+1, 1, -1)
			d := m.take(1)[0]
			if d.Origin.Topic != c.topic {
				t.Errorf("received from %s", d.Origin.Topic)
			}
			ack(t, d)
			wait(100 * time.Millisecond)
		}
		if n := len(m.told(transport.EventNotice)); n > 4 {
			t.Errorf("told %d times: %q", n, m.told(transport.EventNotice))
		}
		if _, _, downs := m.counts(); downs > 0 {
			t.Errorf("down %d times", downs)
		}
	})
}

// Polls that bring nothing but errors are few.
func TestErrorsAreRateLimited(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 1, 1, 0)
	c.garbled(0)
	m := open(t, c.group(kafka.GroupConfig{}))
	ack(t, m.take(1)...)
	eventually(t, "the error", func() bool { return len(m.told(transport.EventNotice)) > 0 })
	var mu sync.Mutex
	fetches := 0
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1, When: func(kmsg.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		fetches++
		return true
	}})
	_, _ = m.upTo(1, 2*time.Second)
	mu.Lock()
	defer mu.Unlock()
	if fetches > 60 {
		t.Errorf("%d fetches in 2 s", fetches)
	}
	_ = m.Flush(context.Background())
}
