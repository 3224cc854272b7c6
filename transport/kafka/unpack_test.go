package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
)

const narrow = 1 << 20 // what a batch may unpack to

// packed writes one record in a batch of its own, compressed.
func (c *cluster) packed(codec kgo.CompressionCodec, body []byte) {
	c.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.ProducerBatchMaxBytes(64<<20), kgo.ProducerBatchCompression(codec), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: c.topic, Value: body}).FirstErr(); err != nil {
		c.t.Fatal(err)
	}
}

// noted is a handler that notes bodies.
type noted struct {
	mu     sync.Mutex
	bodies []string
}

func (h *noted) Handle(_ context.Context, d *longshore.Delivery) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bodies = append(h.bodies, string(d.Body))
	return nil
}

func (h *noted) seen() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.bodies, " ")
}

// F-N23: a batch that unpacks to too much goes to the dead-letter destination with its offsets,
// whatever it is packed with, and those around it are handled.
func TestOversizedBatchIsDeadLettered(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		bomb := bytes.Repeat([]byte("bomb"), 2<<20)
		c.packed(kgo.NoCompression(), []byte("before"))
		for _, codec := range []kgo.CompressionCodec{kgo.ZstdCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression()} {
			c.packed(codec, bomb)
		}
		c.packed(kgo.ZstdCompression(), []byte("behind"))
		createTopic(t, c.addrs, c.topic+".dead", 1)
		h := &noted{}
		b := kafka.New(c.addrs, kafka.Config{MaxUnpacked: narrow})
		ctr, err := container.New(b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{}), h, container.Config{DeadLetter: container.DeadLetter{To: c.topic + ".dead"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := ctr.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "what is behind the batches is handled", func() bool { return strings.HasSuffix(h.seen(), "behind") && ctr.Stats().InFlight == 0 })
		if err := ctr.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		c.waitCommitted(0, 6)
		if h.seen() != "before behind" {
			t.Errorf("handled %.100q", h.seen())
		}
		dead := *c
		dead.topic += ".dead"
		for i, d := range open(t, dead.group(kafka.GroupConfig{})).take(4) {
			first, next := d.Headers.String(kafka.HeaderBatchFirst), d.Headers.String(kafka.HeaderBatchNext)
			if first != fmt.Sprint(i+1) || next != fmt.Sprint(i+2) || len(d.Body) > 0 || d.Headers.String(container.HeaderDeadReason) != "too-large" {
				t.Errorf("dead letter %d: %v, %d bytes", i, d.Headers, len(d.Body))
			}
		}
	})
}

// F-N23: by choice reading ends there, when all before it is done, with an error that says
// where and what to do.
func TestOversizedBatchStops(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.packed(kgo.NoCompression(), []byte("before"))
	c.packed(kgo.ZstdCompression(), bytes.Repeat([]byte("bomb"), 2<<20))
	c.packed(kgo.NoCompression(), []byte("behind"))
	b := kafka.New(c.addrs, kafka.Config{MaxUnpacked: narrow})
	m := open(t, b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{OversizedBatch: kafka.StopAtBatch}))
	ds := m.take(1)
	m.none(1500e6)
	ack(t, ds...)
	_, err := m.upTo(1, patience)
	if !errors.Is(err, longshore.CodeTooLarge) || !strings.Contains(err.Error(), "offsets 1 to 1") || !strings.Contains(err.Error(), "MaxUnpacked") {
		t.Errorf("reading ended with %v", err)
	}
	m.shut()
	c.waitCommitted(0, 1)
}

// F-N23: many batches that are each within the limit are unpacked a few at a time, and all
// of them come, once and in order.
func TestManyLargeBatchesComeInParts(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		const batches = 40
		body := bytes.Repeat([]byte("x"), 700<<10)
		for range batches {
			c.packed(kgo.ZstdCompression(), body)
		}
		b := kafka.New(c.addrs, kafka.Config{MaxUnpacked: narrow})
		m := open(t, b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{}))
		for i, d := range m.take(batches) {
			if d.Origin.Position != uint64(i) || len(d.Body) != len(body) { //nolint:gosec // not negative
				t.Errorf("record %d: offset %d, %d bytes", i, d.Origin.Position, len(d.Body))
			}
			ack(t, d)
		}
		m.flush()
		c.waitCommitted(0, batches)
	})
}
