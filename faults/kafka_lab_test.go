package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// onKafka runs a test on kfake and on a real broker, with both group protocols, each
// with a topic of its own.
func onKafka(t *testing.T, partitions int32, f func(t *testing.T, k *kafkaTopic, p kafka.Protocol)) {
	t.Parallel()
	both := func(t *testing.T, topic func(t *testing.T) *kafkaTopic) {
		for name, p := range map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer} {
			t.Run(name, func(t *testing.T) { f(t, topic(t), p) })
		}
	}
	t.Run("kfake", func(t *testing.T) {
		t.Parallel()
		both(t, func(t *testing.T) *kafkaTopic { return newKafkaTopic(t, newFake(t).ListenAddrs(), partitions) })
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		addrs := brokertest.Kafka(t)
		both(t, func(t *testing.T) *kafkaTopic { return newKafkaTopic(t, addrs, partitions) })
	})
}

func newFake(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{
		"group.initial.rebalance.delay.ms": "0", "group.consumer.heartbeat.interval.ms": "200"})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// group is a source whose group has the topic's name.
func (k *kafkaTopic) group(cfg kafka.GroupConfig) transport.Source {
	return k.broker.Group(k.name, []string{k.name}, cfg)
}

// also makes another topic, for results or dead letters.
func (k *kafkaTopic) also(suffix string) string {
	k.t.Helper()
	name := k.name + suffix
	if _, err := k.adm.CreateTopic(k.t.Context(), 1, 1, nil, name); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _, _ = k.adm.DeleteTopics(context.Background(), name) })
	return name
}

// idle waits until the group is at the end of the topic.
func (k *kafkaTopic) idle() {
	k.t.Helper()
	var at, end int64
	var err error
	eventually(k.t, 60*time.Second, "the group is at the end", func() bool {
		at, end, err = k.committed()
		return err == nil && at == end
	})
}

// records reads the n records of a topic with a raw client, and fails if there are more.
func (k *kafkaTopic) records(topic string, n int) []*kgo.Record {
	k.t.Helper()
	eventually(k.t, 60*time.Second, fmt.Sprintf("%d records are in %s", n, topic), func() bool { return k.length(topic) >= int64(n) })
	if has := k.length(topic); has != int64(n) {
		k.t.Errorf("%d records are in %s, want %d", has, topic, n)
	}
	cl, err := kgo.NewClient(append(k.seeds(), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		k.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(k.t.Context(), 60*time.Second)
	defer cancel()
	var rs []*kgo.Record
	for len(rs) < n {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			k.t.Fatalf("with %d of %d records of %s: %v", len(rs), n, topic, err)
		}
		rs = append(rs, fs.Records()...)
	}
	return rs
}

func (k *kafkaTopic) length(topic string) (n int64) {
	ends, err := k.adm.ListEndOffsets(context.Background(), topic)
	if err != nil {
		return -1
	}
	for _, p := range ends[topic] {
		n += p.Offset
	}
	return n
}

func (k *kafkaTopic) seeds() []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(k.addrs...)} }

// raw produces records with a client that knows nothing of us.
func (k *kafkaTopic) raw(rs ...*kgo.Record) {
	k.t.Helper()
	cl, err := kgo.NewClient(k.seeds()...)
	if err != nil {
		k.t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(k.t.Context(), rs...).FirstErr(); err != nil {
		k.t.Fatal(err)
	}
}

// stops stops a container and returns its report.
func stops(t *testing.T, c *container.ListenerContainer) *container.Report {
	t.Helper()
	var left *container.DrainError
	if err := c.Stop(context.Background()); err != nil && !errors.As(err, &left) {
		t.Errorf("stop: %v", err)
	}
	return c.Report()
}
