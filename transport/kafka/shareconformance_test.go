package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// Not beside other tests, as TestConformance.
func TestShareGroupConformance(t *testing.T) { transporttest.Run(t, embeddedShare(t)) }

func TestShareGroupConformanceOnKafka(t *testing.T) {
	transporttest.Run(t, shareHarness(brokertest.Kafka(t), func(testing.TB, string) []kgo.Opt { return nil }))
}

// shareHarness is of a cluster; opts are those of the source with this name.
func shareHarness(addrs []string, opts func(t testing.TB, name string) []kgo.Opt) transporttest.Harness {
	h := transporttest.Harness{Parallel: true, Patience: time.Minute, Quiet: 2 * time.Second, UserID: "somebody",
		Operations: []longshore.OperationKind{longshore.OperationReceive, longshore.OperationAck, longshore.OperationNack}}
	source := func(t testing.TB, change func(*kafka.ShareConfig)) transport.Source {
		cfg := kafka.ShareConfig{Declare: kafka.Declare{Partitions: 3}}
		change(&cfg)
		name := transporttest.Name(t)
		if n := cfg.Declare.Partitions; n > 0 { // some checks publish first
			createTopic(t, addrs, name, n)
		}
		return kafka.New(addrs, kafka.Config{Options: opts(t, name)}).ShareGroup(name, []string{name}, cfg)
	}
	h.Source = func(t testing.TB) transport.Source { return source(t, func(*kafka.ShareConfig) {}) }
	h.Missing = func(t testing.TB) transport.Source {
		return source(t, func(c *kafka.ShareConfig) { c.Declare = kafka.Declare{} })
	}
	h.Depth = func(t testing.TB, src transport.Source) (int, int) {
		rest, ok := src.(transport.Remainder)
		if !ok {
			t.Fatal("it does not count what remains")
		}
		r, err := rest.Remaining(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return int(r.Ready), -1
	}
	return h
}

// embeddedShare is the harness of kfake, behind proxies and with faults.
func embeddedShare(t *testing.T) transporttest.Harness {
	c := fake(t, kfake.BrokerConfigs(map[string]string{"group.share.heartbeat.interval.ms": "200",
		"group.share.record.lock.duration.ms": "3000", "share.record.lock.sweep.interval.ms": "100"}))
	front := proxies{of: map[string]*faultproxy.Proxy{}}
	h := shareHarness(c.ListenAddrs(), func(t testing.TB, name string) []kgo.Opt {
		proxy := faultproxy.New(t, c.ListenAddrs()[0])
		front.mu.Lock()
		defer front.mu.Unlock()
		front.of[name] = proxy
		return []kgo.Opt{proxied(proxy)}
	})
	h.Leased = func(t testing.TB) (transport.Source, time.Duration) { return h.Source(t), 3 * time.Second }
	h.Drop = func(_ testing.TB, src transport.Source) {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareGroupHeartbeat}, Group: nameOf(src), Err: kerr.GroupAuthorizationFailed})
	}
	h.TakeBack = func(_ testing.TB, src transport.Source) {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareFetch, kmsg.ShareAcknowledge}, Group: nameOf(src), Err: kerr.ShareSessionNotFound, Count: 1})
	}
	h.FailSettle = func(_ testing.TB, src transport.Source) {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ShareAcknowledge}, Group: nameOf(src), Err: kerr.ShareSessionNotFound, Count: 1})
	}
	h.Latency = func(_ testing.TB, src transport.Source, d time.Duration) { front.get(src).Latency(d / 2) }
	h.Stall = func(_ testing.TB, src transport.Source) func() {
		proxy := front.get(src)
		proxy.BlackHole(true)
		return func() { proxy.BlackHole(false) }
	}
	h.FailPublish = func(_ testing.TB, src transport.Source) {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: nameOf(src), Err: kerr.TopicAuthorizationFailed})
	}
	locked := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "right"))
	h.BadAuth = func(testing.TB) transport.Source {
		cfg := kafka.Config{SASL: kafka.SASL{User: "app", Password: transport.Static("wrong")}}
		return kafka.New(locked.ListenAddrs(), cfg).ShareGroup("g", []string{"t"}, kafka.ShareConfig{})
	}
	return h
}
