package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// onBoth runs a test on kfake and, where there is one, on a real broker.
func onBoth(t *testing.T, partitions int32, f func(t *testing.T, c *cluster, p kafka.Protocol)) {
	t.Helper()
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		eachProtocol(t, func(t *testing.T, p kafka.Protocol) { f(t, embeddedCluster(t, partitions), p) })
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		addrs := brokertest.Kafka(t)
		eachProtocol(t, func(t *testing.T, p kafka.Protocol) { f(t, realCluster(t, addrs, partitions), p) })
	})
}

// onEither is onBoth where the protocol makes no difference.
func onEither(t *testing.T, partitions int32, f func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		f(t, embeddedCluster(t, partitions))
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		f(t, realCluster(t, brokertest.Kafka(t), partitions))
	})
}

// New partitions are read within seconds.
func TestEnlargedTopic(t *testing.T) {
	t.Parallel()
	onBoth(t, 1, func(t *testing.T, c *cluster, p kafka.Protocol) {
		m := open(t, c.group(kafka.GroupConfig{Protocol: p}))
		c.produce(0, 1, 1, 0)
		ack(t, m.take(1)...)
		if _, err := admin(t, c.addrs).CreatePartitions(t.Context(), 2, c.topic); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a record in the new partition", func() bool {
			ps, err := admin(t, c.addrs).ListTopics(t.Context(), c.topic)
			return err == nil && len(ps[c.topic].Partitions) == 3
		})
		c.produce(1, 2, 1, 2)
		if d := m.take(1)[0]; d.Origin.Partition != 2 {
			t.Errorf("received %s from partition %d; told: %q", d.Body, d.Origin.Partition, m.told(transport.EventNotice))
		}
	})
}

// F-E07: a stuck record stops its own partition at the window, and no other. It is
// told.
func TestStuckRecordHoldsItsPartitionOnly(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 4)
	for num := range int32(4) {
		c.produce(0, 3000, 100, num)
	}
	m := open(t, c.group(kafka.GroupConfig{Window: 100}))
	var stuck *longshore.Delivery
	counts := map[int32]int{}
	for n := 0; n < 3*3000+100; {
		ds, err := m.upTo(1, 5*time.Second)
		if err != nil {
			break
		}
		d := ds[0]
		counts[d.Origin.Partition]++
		n++
		if d.Origin.Partition == 0 && stuck == nil {
			stuck = d
			continue
		}
		ack(t, d)
	}
	if counts[0] != 100 || counts[1] != 3000 || counts[2] != 3000 || counts[3] != 3000 {
		t.Errorf("received by partition %v; want 100 of 0 and all of the others", counts)
	}
	var heads []transport.BlockedPartition
	eventually(t, "a notice of the stuck record", func() bool { // there may be other notices before
		heads = m.Consumer.(transport.HeadReporter).BlockedPartitions() //nolint:errcheck // it is one
		return len(heads) > 0 && len(m.told(transport.EventNotice)) > 0
	})
	if len(heads) != 1 {
		t.Fatalf("stuck heads: %+v", heads)
	}
	if h := heads[0]; h.Topic != "orders" || h.Partition != 0 || h.Position != stuck.Origin.Position || string(h.Key) != string(stuck.Key) || h.Behind != 99 || !h.Full() || time.Since(h.Since) < 5*time.Second {
		t.Errorf("the stuck head is %+v", h)
	}
	ack(t, stuck)
	eventually(t, "a notice of its end", func() bool {
		return strings.Contains(strings.Join(m.told(transport.EventCleared), "\n"), "moves again")
	})
	for range 2900 {
		ack(t, m.take(1)...)
	}
}

// Polls are fair: a partition with a deep backlog does not delay the others.
func TestDeepBacklogDelaysNobody(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 4)
	c.produce(0, 60000, 100, 0)
	m := open(t, c.group(kafka.GroupConfig{}))
	ack(t, m.take(1000)...)
	for num := int32(1); num < 4; num++ {
		c.produce(0, 10, 10, num)
	}
	others := 0
	for n := 0; others < 30 && n < 50000; n++ {
		d := m.take(1)[0]
		if d.Origin.Partition > 0 {
			others++
		}
		ack(t, d)
		if n%100 == 0 { // fetching takes a moment, and this could be through before
			wait(2 * time.Millisecond)
		}
		if n == 40000 {
			t.Fatalf("after %d records only %d of the other partitions' 30 were seen", n, others)
		}
	}
}

// A partition that stays with its member through a rebalance goes on all the while,
// though of both one record is running and one parked, and the one that goes is
// drained for 4 s: no record waits for more than 2 s.
func TestRetainedPartitionGoesOnThroughARebalance(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(t *testing.T, c *cluster, p kafka.Protocol) {
		src := c.group(kafka.GroupConfig{Protocol: p, RebalanceDrain: 4 * time.Second, SettleLinger: 50 * time.Millisecond})
		first := open(t, src)
		c.produce(0, 2, 2, 0)
		c.produce(0, 2, 2, 1)
		for i, d := range first.take(4) {
			if i%2 == 0 { // the others run and never end
				if err := d.Nack(t.Context(), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := newStream(t, c, first)
		second := open(t, src)
		moved := second.take(1)[0].Origin.Partition
		if lost, _, _ := first.counts(); lost == 0 {
			t.Error("nothing was running in the partition that went")
		}
		wait(time.Second)
		if worst, n := s.stop(1 - moved); worst > 2*time.Second || n < 20 {
			t.Errorf("in partition %d a record waited for %s, among %d", 1-moved, worst, n)
		}
	})
}

// stream writes a record into each of two partitions ten times a second, and reads
// what comes to one member.
type stream struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
	mu     sync.Mutex
	sent   [2]map[string]time.Time
	waited [2][]time.Duration
}

func newStream(t *testing.T, c *cluster, m *member) *stream {
	t.Helper()
	s := &stream{sent: [2]map[string]time.Time{{}, {}}}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	t.Cleanup(func() { cancel(); s.all.Wait() })
	pub := publisher(t, c.broker(), kafka.PublisherConfig{})
	s.all.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			for num := range int32(2) {
				body := fmt.Sprintf("%d/%d", num, i)
				s.mu.Lock()
				s.sent[num][body] = time.Now()
				s.mu.Unlock()
				_ = pub.Publish(ctx, kafka.To(c.topic, num), messages(body)...) // what is not written is not waited for
			}
			<-tick.C
		}
	})
	s.all.Go(func() {
		for {
			ds, err := m.Receive(ctx, 10)
			if err != nil {
				return
			}
			s.mu.Lock()
			for _, d := range ds {
				num := d.Origin.Partition
				if at, ok := s.sent[num][string(d.Body)]; ok {
					s.waited[num] = append(s.waited[num], time.Since(at))
				}
				_ = d.Ack(ctx)
			}
			s.mu.Unlock()
		}
	})
	return s
}

// stop returns how long a record of the partition has waited at the most.
func (s *stream) stop(num int32) (worst time.Duration, n int) {
	s.cancel()
	s.all.Wait()
	return slices.Max(append(s.waited[num], 0)), len(s.waited[num])
}

// The cluster is away: the consumer is down within seconds, with a reason; when it
// is back, the same source can be opened again and nothing is lost.
func TestClusterAway(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	proxy := faultproxy.New(t, c.addrs[0])
	b := kafka.New([]string{proxy.Addr()}, kafka.Config{Options: []kgo.Opt{proxied(proxy)}})
	src := b.Group("g", []string{c.topic}, kafka.GroupConfig{})
	c.produce(0, 3, 1, 0)
	m := open(t, src)
	ds := m.take(3)
	ack(t, ds[0])
	m.flush()
	proxy.Refuse()
	proxy.CutAll()
	_, err := m.upTo(1, patience)
	if !errors.Is(err, longshore.CodeUnreachable) {
		t.Fatalf("Receive: %v, want unreachable", err)
	}
	eventually(t, "2 lost, and down once", func() bool { lost, _, downs := m.counts(); return lost == 2 && downs == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = m.Close(ctx) // it cannot leave
	if _, err := src.Open(t.Context(), transport.OpenOptions{}); !errors.Is(err, longshore.CodeUnreachable) {
		t.Errorf("Open: %v, want unreachable", err)
	}
	if err := proxy.Listen(); err != nil {
		t.Fatal(err)
	}
}
