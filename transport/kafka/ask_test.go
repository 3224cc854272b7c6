package kafka_test

import (
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// silentAddress takes connections and says nothing, as behind a firewall that drops.
func silentAddress(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String()
}

// One address that takes connections and never answers does not take the time of the
// others: what looks at the cluster, consumes and publishes goes on. F-B01
func TestASilentAddressBesideAGoodOne(t *testing.T) {
	t.Parallel()
	f := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	addrs := append([]string{silentAddress(t), silentAddress(t), silentAddress(t)}, f.ListenAddrs()...)
	b := kafka.New(addrs, kafka.Config{})
	src := b.Group("g", []string{"orders"}, kafka.GroupConfig{})
	if probe, ok := src.(transport.Prober); !ok {
		t.Error("it cannot be probed")
	} else if err := probe.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
	p := publisher(t, b, kafka.PublisherConfig{})
	if err := p.Publish(t.Context(), "orders", messages("one")...); err != nil {
		t.Errorf("Publish: %v", err)
	}
	g := open(t, src)
	ack(t, g.take(1)...)
	if err := g.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
}
