package kafka_test

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// frontage reaches each broker of a cluster through a proxy of its own, which is made when it
// is first dialled.
type frontage struct {
	t  testing.TB
	mu sync.Mutex
	to map[string]*faultproxy.Proxy
}

func (p *frontage) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	p.mu.Lock()
	through := p.to[addr]
	if through == nil {
		through = faultproxy.New(p.t, addr)
		p.to[addr] = through
	}
	p.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, through.Addr())
}

// refuse ends all connections, and refuses new ones for a while.
func (p *frontage) refuse(d time.Duration) {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.to))
	p.mu.Unlock()
	for _, one := range all {
		one.Refuse()
		one.CutAll()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	for _, one := range all {
		if err := one.Listen(); err != nil {
			p.t.Error(err)
		}
	}
}

// Brokers that refuse connections for less than the session timeout end no session: what is
// out stays this member's, and acks during it count. F-N08
func TestRefusedConnectionsEndNoSession(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]time.Duration{"1s": time.Second, "8s": 8 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, 4, func(t *testing.T, c *cluster, p kafka.Protocol) {
				const n = 200
				c.produce(0, n, n, -1)
				through := &frontage{t: t, to: map[string]*faultproxy.Proxy{}}
				c.opts = []kgo.Opt{kgo.Dialer(through.dial)}
				src := c.group(kafka.GroupConfig{Protocol: p, SettleLinger: 100 * time.Millisecond, Start: kafka.Earliest})
				m := open(t, src)
				ds := m.take(n)
				ack(t, ds[:n/4]...)
				done := make(chan struct{})
				go func() { defer close(done); through.refuse(outage) }()
				ack(t, ds[n/4:n/2]...)
				<-done
				for _, d := range ds[n/2:] {
					if !d.Owned() {
						t.Fatalf("after %s of refused connections %s is lost: %v", outage, d.Body, m.told(transport.EventNotice))
					}
				}
				ack(t, ds[n/2:]...)
				m.flush()
				if lost, failed, downs := m.counts(); lost+failed+downs > 0 {
					t.Errorf("%d lost, %d settlements failed, down %d times", lost, failed, downs)
				}
				m.shut()
				open(t, src).none(time.Second)
			})
		})
	}
}
