package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// onTwoClusters runs f on the embedded cluster and, where there is one, on Kafka.
func onTwoClusters(t *testing.T, partitions int32, f func(t *testing.T, c *cluster)) {
	t.Run("embedded", func(t *testing.T) { f(t, embeddedCluster(t, partitions)) })
	t.Run("kafka", func(t *testing.T) { f(t, realCluster(t, brokertest.Kafka(t), partitions)) })
}

func runGroup(t *testing.T, src transport.Source, w container.Workers, look int, h longshore.HandlerFunc) (*container.ListenerContainer, func()) {
	t.Helper()
	c, err := container.New(src, h, container.Config{Workers: w, Lookahead: look, Order: container.Unordered, Logger: zap.NewNop(),
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return c, stop
}

// Four members in one container: the group has four, every partition is read, each record
// is handled once and committed, and a stop leaves the group empty.
func TestMembersInOneContainer(t *testing.T) {
	onTwoClusters(t, 8, func(t *testing.T, c *cluster) {
		src := c.group(kafka.GroupConfig{Members: 4})
		var mu sync.Mutex
		seen := map[string]int{}
		_, stop := runGroup(t, src, container.Workers{Min: 4, Max: 4}, 0, func(_ context.Context, d *longshore.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			seen[string(d.Body)]++
			return nil
		})
		adm := admin(t, c.addrs)
		members := func() (n, parts int) {
			gs, err := adm.DescribeGroups(t.Context(), c.topic)
			if err != nil { // a new group's coordinator is not there at once
				return -1, 0
			}
			for _, m := range gs[c.topic].Members {
				if a, ok := m.Assigned.AsConsumer(); ok {
					n++
					for _, topic := range a.Topics {
						parts += len(topic.Partitions)
						if len(topic.Partitions) != 2 {
							parts = -100
						}
					}
				}
			}
			return n, parts
		}
		eventually(t, "four members with two partitions each", func() bool { n, parts := members(); return n == 4 && parts == 8 })
		for p := range int32(8) {
			c.produce(int(p)*50, int(p)*50+50, 5, p)
		}
		eventually(t, "every record is handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == 400 })
		stop()
		for p := range int32(8) {
			if at, _ := c.committed(p); at != 50 {
				t.Errorf("partition %d is committed to %d", p, at)
			}
		}
		for body, n := range seen {
			if n != 1 {
				t.Errorf("record %s was handled %d times", body, n)
			}
		}
		if n, _ := members(); n != 0 {
			t.Errorf("%d members after the stop", n)
		}
	})
}

func TestMembersAreBounded(t *testing.T) {
	src := kafka.New([]string{"127.0.0.1:1"}, kafka.Config{}).Group("g", []string{"orders"}, kafka.GroupConfig{Members: -1, Commit: 9})
	err := src.Check()
	if err == nil || !strings.Contains(err.Error(), "Members") || !strings.Contains(err.Error(), "Commit") {
		t.Error(err)
	}
}

// With AfterEach every record that is done is committed before the next is handled, and one
// member with several workers still commits everything.
func TestCommitAfterEach(t *testing.T) {
	onTwoClusters(t, 1, func(t *testing.T, c *cluster) {
		c.produce(0, 30, 1, 0)
		var wrong atomic.Int64
		done := make(chan struct{})
		src := c.group(kafka.GroupConfig{Commit: kafka.AfterEach, SettleLinger: time.Hour})
		_, stop := runGroup(t, src, container.Workers{Max: 1}, -1, func(_ context.Context, d *longshore.Delivery) error {
			if at, _ := c.committed(0); d.Origin.Position > 0 && at != int64(d.Origin.Position) {
				wrong.Add(1)
				t.Errorf("record %d is handled while the group's position is %d", d.Origin.Position, at)
			}
			if d.Origin.Position == 29 {
				close(done)
			}
			return nil
		})
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("not all were handled")
		}
		c.waitCommitted(0, 30)
		stop()
	})
}

// What AfterEach costs, for the documentation: records a second of a handler that does
// nothing.
func BenchmarkCommit(b *testing.B) {
	addrs := brokertest.Kafka(b)
	for name, cfg := range map[string]kafka.GroupConfig{"by load": {}, "after each": {Commit: kafka.AfterEach}} {
		for _, workers := range []int{1, 10} {
			b.Run(fmt.Sprintf("%s, %d workers", name, workers), func(b *testing.B) {
				c := realCluster(b, addrs, 1)
				const n = 2000
				c.produce(0, n, 1, 0)
				for range b.N {
					done := make(chan struct{})
					var handled atomic.Int64
					src := c.broker().Group(fmt.Sprint(c.topic, time.Now().UnixNano()), []string{c.topic}, cfg)
					var first atomic.Int64
					con, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
						first.CompareAndSwap(0, time.Now().UnixNano())
						if handled.Add(1) == n {
							close(done)
						}
						return nil
					}), container.Config{Workers: container.Workers{Min: workers, Max: workers}, Lookahead: -1, Order: container.Unordered,
						Logger: zap.NewNop(), DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}})
					if err != nil {
						b.Fatal(err)
					}
					if err := con.Start(b.Context()); err != nil {
						b.Fatal(err)
					}
					<-done
					b.ReportMetric(n/time.Since(time.Unix(0, first.Load())).Seconds(), "records/s")
					if err := con.Stop(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
