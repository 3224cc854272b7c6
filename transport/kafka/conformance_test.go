package kafka_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
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

// Not beside other tests: one of the checks counts goroutines. The others run side
// by side.
func TestConformance(t *testing.T) {
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			transporttest.Run(t, embedded(t, p))
		})
	}
}

func TestConformanceOnKafka(t *testing.T) {
	addrs := brokertest.Kafka(t)
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			h := harness(addrs, p, direct)
			transporttest.Run(t, h)
		})
	}
}

func createTopic(t testing.TB, addrs []string, name string, partitions int32) {
	t.Helper()
	adm := admin(t, addrs)
	if _, err := adm.CreateTopic(t.Context(), partitions, 1, nil, name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic is there", func() bool {
		ts, err := adm.ListTopics(t.Context(), name)
		return err == nil && ts[name].Err == nil && len(ts[name].Partitions) == int(partitions)
	})
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

// proxies are in front of a cluster, one for each source, so that a fault touches
// one source only.
type proxies struct {
	mu sync.Mutex
	of map[string]*faultproxy.Proxy // by the source's name
}

func (p *proxies) get(src transport.Source) *faultproxy.Proxy {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[nameOf(src)]
}

// embedded is the harness of kfake, behind proxies and with faults.
func embedded(t *testing.T, p kafka.Protocol) transporttest.Harness {
	c := fake(t)
	front := proxies{of: map[string]*faultproxy.Proxy{}}
	h := harness(c.ListenAddrs(), p, func(t testing.TB, name string) []kgo.Opt {
		proxy := faultproxy.New(t, c.ListenAddrs()[0])
		front.mu.Lock()
		defer front.mu.Unlock()
		front.of[name] = proxy
		return []kgo.Opt{proxied(proxy), kgo.HeartbeatInterval(200 * time.Millisecond)}
	})
	beats := []kmsg.Key{kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat}
	h.Drop = func(_ testing.TB, src transport.Source) {
		c.Fault(kfake.Fault{Keys: beats, Group: nameOf(src), Err: kerr.GroupAuthorizationFailed})
	}
	fenced := map[kafka.Protocol]*kerr.Error{kafka.Classic: kerr.UnknownMemberID, kafka.Consumer: kerr.FencedMemberEpoch}
	h.TakeBack = func(_ testing.TB, src transport.Source) {
		c.Fault(kfake.Fault{Keys: beats, Group: nameOf(src), Err: fenced[p]})
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
	h.Depth = func(t testing.TB, src transport.Source) (int, int) {
		lags, err := admin(t, c.ListenAddrs()).Lag(t.Context(), nameOf(src))
		if err != nil {
			t.Fatal(err)
		}
		return int(lags[nameOf(src)].Lag.Total()), -1
	}
	locked := fake(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "app", "right"))
	h.BadAuth = func(testing.TB) transport.Source {
		cfg := kafka.Config{SASL: kafka.SASL{User: "app", Password: transport.Static("wrong")}}
		return kafka.New(locked.ListenAddrs(), cfg).Group("g", []string{"t"}, kafka.GroupConfig{Protocol: p})
	}
	return h
}

// direct is without a proxy.
func direct(testing.TB, string) []kgo.Opt { return []kgo.Opt{kgo.HeartbeatInterval(time.Second)} }

// proxied makes a client connect to the proxy, whatever address the one broker behind
// it advertises.
func proxied(p *faultproxy.Proxy) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.Addr())
	})
}

func nameOf(src transport.Source) string {
	d, _ := src.(transport.Describer)
	return d.Describe().Name
}

// harness is of a cluster; opts are those of the source with this name.
func harness(addrs []string, p kafka.Protocol, opts func(t testing.TB, name string) []kgo.Opt) transporttest.Harness {
	h := transporttest.Harness{Parallel: true, Patience: time.Minute, Quiet: 2 * time.Second, Delay: 3 * time.Second, UserID: "somebody",
		Operations: []longshore.OperationKind{longshore.OperationReceive, longshore.OperationAck}}
	source := func(t testing.TB, change func(*kafka.GroupConfig)) transport.Source {
		cfg := kafka.GroupConfig{Protocol: p, Declare: kafka.Declare{Partitions: 3}, SettleLinger: 50 * time.Millisecond}
		change(&cfg)
		name := transporttest.Name(t)
		if n := cfg.Declare.Partitions; n > 0 { // some checks publish first
			createTopic(t, addrs, name, n)
		}
		return kafka.New(addrs, kafka.Config{Options: opts(t, name)}).Group(name, []string{name}, cfg)
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
