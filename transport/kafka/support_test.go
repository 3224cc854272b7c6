package kafka_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

const patience = 20 * time.Second

// cluster is a broker for a test, embedded or real.
type cluster struct {
	addrs []string
	fake  *kfake.Cluster // nil on a real one
	topic string
	t     testing.TB
	opts  []kgo.Opt
}

func embeddedCluster(t testing.TB, partitions int32) *cluster {
	t.Helper()
	f := fake(t, kfake.SeedTopics(partitions, "orders"))
	return &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
}

// group is a source with a group named like the topic; heartbeats are quick.
func (c *cluster) group(cfg kafka.GroupConfig) transport.Source {
	return c.broker().Group(c.topic, []string{c.topic}, cfg)
}

func (c *cluster) broker() *kafka.Broker {
	return kafka.New(c.addrs, kafka.Config{Options: append([]kgo.Opt{kgo.HeartbeatInterval(200 * time.Millisecond)}, c.opts...)})
}

// produce writes bodies "0".."n-1", all to one partition if it is not negative, with
// the body's number modulo keys as the key.
func (c *cluster) produce(from, to, keys int, partition int32) {
	c.t.Helper()
	p, err := c.broker().Publisher(kafka.PublisherConfig{})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	dest := c.topic
	if partition >= 0 {
		dest = kafka.To(c.topic, partition)
	}
	var msgs []*longshore.Message
	for i := from; i < to; i++ {
		msgs = append(msgs, &longshore.Message{ID: "x", Key: fmt.Appendf(nil, "k%d", i%max(1, keys)), Body: fmt.Appendf(nil, "%d", i)})
	}
	for part := range slices.Chunk(msgs, 2000) {
		if err := p.Publish(context.Background(), dest, part...); err != nil {
			c.t.Fatal(err)
		}
	}
}

// committed is the sum of the group's positions, and one partition's text.
func (c *cluster) committed(partition int32) (offset int64, saved string) {
	c.t.Helper()
	all, err := admin(c.t, c.addrs).FetchOffsets(context.Background(), c.topic)
	if err != nil {
		c.t.Fatal(err)
	}
	o, ok := all.Lookup(c.topic, partition)
	if !ok {
		return -1, ""
	}
	return o.At, o.Metadata
}

func (c *cluster) waitCommitted(partition int32, want int64) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("partition %d committed to %d", partition, want), func() bool {
		at, _ := c.committed(partition)
		return at == want
	})
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not seen within %s: %s", patience, what)
		}
	}
}

// member is an open consumer with an observer.
type member struct {
	transport.Consumer
	*observer
	t testing.TB
}

func open(t testing.TB, src transport.Source) *member {
	t.Helper()
	m := &member{observer: &observer{}, t: t}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := src.Open(ctx, transport.OpenOptions{Observer: m.observer})
	if err != nil {
		t.Fatal(err)
	}
	m.Consumer = c
	t.Cleanup(m.shut)
	return m
}

func (m *member) shut() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		m.t.Errorf("Close: %v", err)
	}
}

func (m *member) take(n int) []*longshore.Delivery {
	m.t.Helper()
	ds, err := m.upTo(n, patience)
	if err != nil {
		m.t.Fatalf("with %d of %d received: %v", len(ds), n, err)
	}
	return ds
}

// upTo receives n, or what comes in the time.
func (m *member) upTo(n int, limit time.Duration) ([]*longshore.Delivery, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var ds []*longshore.Delivery
	for len(ds) < n {
		got, err := m.Receive(ctx, n-len(ds))
		if err != nil {
			return ds, err
		}
		ds = append(ds, got...)
	}
	return ds, nil
}

// none checks that nothing comes.
func (m *member) none(limit time.Duration) {
	m.t.Helper()
	if ds, _ := m.upTo(1, limit); len(ds) > 0 {
		m.t.Errorf("received %s at offset %d, want nothing", ds[0].Body, ds[0].Origin.Position)
	}
}

func (m *member) flush() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Flush(ctx); err != nil {
		m.t.Errorf("Flush: %v", err)
	}
}

func ack(t testing.TB, ds ...*longshore.Delivery) {
	t.Helper()
	for _, d := range ds {
		if err := d.Ack(context.Background()); err != nil {
			t.Errorf("Ack of offset %d: %v", d.Origin.Position, err)
		}
	}
}

// observer records what a consumer tells.
type observer struct {
	mu     sync.Mutex
	lost   int
	failed int
	downs  []error
	events []transport.Event
}

func (o *observer) Lost(ds []*longshore.Delivery, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += len(ds)
}

func (o *observer) SettleFailed(*longshore.Delivery, longshore.Settlement, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed++
}

func (o *observer) Down(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.downs = append(o.downs, err)
}

func (o *observer) Event(e transport.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.events = append(o.events, e)
}

func (o *observer) counts() (lost, failed, downs int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost, o.failed, len(o.downs)
}

// told returns the texts of the events of a kind.
func (o *observer) told(kind transport.EventKind) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var texts []string
	for _, e := range o.events {
		if e.Kind == kind {
			texts = append(texts, strings.TrimPrefix(string(e.Skipped)+": "+e.Text, ": "))
		}
	}
	return texts
}
