package kafka_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-L01: open, consume, settle, be cut, go on, close, many times, and openings that
// fail: goroutines and connections are back at the baseline.
func TestNothingSurvivesClose(t *testing.T) {
	c := embeddedCluster(t, 2)
	proxy := faultproxy.New(t, c.addrs[0])
	var links atomic.Int64
	c.opts = []kgo.Opt{kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, proxy.Addr())
		if err != nil {
			return nil, err
		}
		links.Add(1)
		return &countedConn{Conn: conn, open: &links}, nil
	})}
	src := c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond})
	next := 0
	cycle := func() {
		c.produce(next, next+10, 10, -1)
		m := open(t, src)
		ds := m.take(10)
		ack(t, ds[:5]...)
		m.flush()
		proxy.CutAll()
		ack(t, ds[5:]...)
		m.flush()
		m.shut()
		next += 10
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := c.broker().Group("g", []string{"missing"}, kafka.GroupConfig{}).Open(ctx, transport.OpenOptions{})
		if !errors.Is(err, longshore.CodeNotFound) {
			t.Errorf("missing topic: %v", err)
		}
	}
	cycle()
	eventually(t, "no connection is left", func() bool { return links.Load() == 0 })
	before := runtime.NumGoroutine()
	for range 8 {
		cycle()
	}
	eventually(t, "no connection is left", func() bool { return links.Load() == 0 })
	eventually(t, "goroutines are back at the baseline", func() bool { return runtime.NumGoroutine() <= before })
}

// countedConn is a connection that counts until it is closed.
type countedConn struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// F-K03: a cluster on addresses of IPv6.
func TestClusterOfIPv6(t *testing.T) {
	t.Parallel()
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("no IPv6 here:", err)
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f := fake(t, kfake.SeedTopics(1, "orders"), kfake.ListenFn(func(network, address string) (net.Listener, error) {
		return net.Listen(network, strings.Replace(address, "127.0.0.1", "[::1]", 1))
	}))
	c := &cluster{addrs: f.ListenAddrs(), topic: "orders", t: t}
	c.produce(0, 1, 1, 0)
	m := open(t, c.group(kafka.GroupConfig{SettleLinger: time.Millisecond}))
	ack(t, m.take(1)...)
	c.waitCommitted(0, 1)
	m.shut()
	if !strings.HasPrefix(c.addrs[0], "[::1]:") {
		t.Errorf("it was on %s", c.addrs[0])
	}
}
