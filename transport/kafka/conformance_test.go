package kafka_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/transporttest"
)

func TestConformance(t *testing.T) {
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, harness(fake(t).ListenAddrs(), p))
		})
	}
}

func TestConformanceOnKafka(t *testing.T) {
	addrs := brokertest.Kafka(t)
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			h := harness(addrs, p)
			h.Patience, h.Quiet = 30*time.Second, time.Second
			transporttest.Run(t, h)
		})
	}
}

func createTopic(t testing.TB, addrs []string, name string, partitions int32) {
	t.Helper()
	if _, err := admin(t, addrs).CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
}

// admin asks and changes what only an administrator does.
func admin(t testing.TB, addrs []string) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

func protocols() map[string]kafka.Protocol {
	return map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer}
}

// fake starts an embedded cluster.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{
		"group.initial.rebalance.delay.ms": "0", "group.consumer.heartbeat.interval.ms": "200"})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func harness(addrs []string, p kafka.Protocol) transporttest.Harness {
	h := transporttest.Harness{Patience: 10 * time.Second, Quiet: 300 * time.Millisecond, Delay: 300 * time.Millisecond, UserID: "somebody"}
	source := func(t testing.TB, change func(*kafka.GroupConfig)) transport.Source {
		cfg := kafka.GroupConfig{Protocol: p, Declare: kafka.Declare{Partitions: 3}, SettleLinger: 50 * time.Millisecond}
		change(&cfg)
		name := transporttest.Name(t)
		if n := cfg.Declare.Partitions; n > 0 { // some checks publish first
			createTopic(t, addrs, name, n)
		}
		return kafka.New(addrs, kafka.Config{}).Group(name, []string{name}, cfg)
	}
	h.Source = func(t testing.TB) transport.Source { return source(t, func(*kafka.GroupConfig) {}) }
	h.Batched = func(t testing.TB) transport.Source {
		return source(t, func(c *kafka.GroupConfig) { c.SettleLinger = time.Hour })
	}
	h.Windowed = func(t testing.TB) (transport.Source, int) {
		return source(t, func(c *kafka.GroupConfig) { c.Window, c.Declare.Partitions = 5, 1 }), 5
	}
	h.Missing = func(t testing.TB) transport.Source {
		return source(t, func(c *kafka.GroupConfig) { c.Declare = kafka.Declare{} })
	}
	return h
}
