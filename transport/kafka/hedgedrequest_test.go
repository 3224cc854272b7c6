package kafka_test

import (
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore/transport/kafka"
)

// silent says nothing, as behind a firewall that drops.
func silent(net.Conn) {}

// One address that takes connections and never answers does not take the time of the
// others: what looks at the cluster, consumes and publishes goes on. F-B01
func TestASilentAddressBesideAGoodOne(t *testing.T) {
	t.Parallel()
	f := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	addrs := append([]string{listening(t, silent), listening(t, silent), listening(t, silent)}, f.ListenAddrs()...)
	b := kafka.New(addrs, kafka.Config{})
	src := b.Group("g", []string{"orders"}, kafka.GroupConfig{})
	if err := src.Probe(t.Context()); err != nil {
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

// Nor does it fail some of those who come first and all at once: who asks the cluster
// meanwhile is not disturbed by what another has found out. F-B01
func TestManyWhoPublishFirstBesideASilentAddress(t *testing.T) {
	t.Parallel()
	f := fake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	p := publisher(t, kafka.New(append([]string{listening(t, silent), listening(t, silent)}, f.ListenAddrs()...), kafka.Config{}), kafka.PublisherConfig{})
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if err := p.Publish(t.Context(), "orders", messages("one")...); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
}
