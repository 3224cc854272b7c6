package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-N17: a record that another client could write to a topic can be written to it again:
// the limit is the topic's, for what is stored, and not one of ours.
func TestWhatCameInCanGoOutOnKafka(t *testing.T) {
	t.Parallel()
	addrs := brokertest.Kafka(t)
	c := realCluster(t, addrs, 1)
	most := largest(t, c)
	p, err := c.broker().Publisher(kafka.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	small := &longshore.Message{Body: []byte("small")}
	for name, body := range map[string][]byte{
		"as large as the topic takes": random(most),
		"20 MB that came compressed":  bytes.Repeat([]byte("0123456789"), 2_000_000),
	} {
		if err := p.Publish(t.Context(), c.topic, small, &longshore.Message{Body: body}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	err = p.Publish(t.Context(), c.topic, &longshore.Message{Body: random(most + 100)})
	if !errors.Is(err, longshore.CodeTooLarge) || !strings.Contains(err.Error(), "max.message.bytes 1048588") {
		t.Errorf("more than the topic takes: %v", err)
	}
	m := open(t, c.group(kafka.GroupConfig{}))
	for _, d := range m.take(4) {
		if n := len(d.Body); n != len(small.Body) && n != most && n != 20_000_000 {
			t.Errorf("received %d bytes", n)
		}
	}
}

// A limit that was set is kept.
func TestBatchLimitThatWasSetHolds(t *testing.T) {
	t.Parallel()
	c := realCluster(t, brokertest.Kafka(t), 1)
	p, err := c.broker().Publisher(kafka.PublisherConfig{MaxBatchBytes: 1 << 19})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	if err := p.Publish(t.Context(), c.topic, &longshore.Message{Body: make([]byte, 600_000)}); !errors.Is(err, longshore.CodeTooLarge) {
		t.Errorf("published: %v", err)
	}
}

// largest is how long a value may be that nothing is beside, with the default limits.
func largest(t *testing.T, c *cluster) int {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.ProducerBatchMaxBytes(2<<20), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	lo, hi := 1_048_000, 1_048_588
	probe := *c
	probe.topic = c.topic + "-probe"
	createTopic(t, c.addrs, probe.topic, 1)
	for lo+1 < hi {
		mid := (lo + hi) / 2
		if cl.ProduceSync(t.Context(), &kgo.Record{Topic: probe.topic, Value: random(mid)}).FirstErr() == nil {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// random does not compress.
func random(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}
