package kafka_test

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// muteNode is a dialer through which one broker answers no requests of some kinds.
type muteNode struct {
	keys []kmsg.Key // zero: those to read logs

	mu   sync.Mutex
	addr string
	dead []net.Conn
}

func (m *muteNode) drops(key kmsg.Key) bool {
	if m.keys == nil {
		return key == kmsg.Fetch || key == kmsg.ListOffsets
	}
	return slices.Contains(m.keys, key)
}

func (m *muteNode) mute(addr string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addr = addr
}

// heal ends the silence, and the connections that had it.
func (m *muteNode) heal() {
	m.mute("")
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.dead {
		_ = c.Close()
	}
}

func (m *muteNode) died(c net.Conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = append(m.dead, c)
}

func (m *muteNode) muted(addr string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addr == addr
}

func (m *muteNode) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &muteConn{Conn: c, m: m, addr: addr}, nil
}

type muteConn struct {
	net.Conn
	m    *muteNode
	addr string
	dead atomic.Bool
}

// Write drops requests, and those that come behind them: the answers must be in order. The
// client writes each whole.
func (c *muteConn) Write(b []byte) (int, error) {
	if len(b) > 6 && c.m.muted(c.addr) {
		if key := kmsg.Key(binary.BigEndian.Uint16(b[4:])); c.m.drops(key) {
			c.dead.Store(true)
			c.m.died(c.Conn)
		}
	}
	if c.dead.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// lead returns a cluster of two brokers of which each leads one of two partitions, and
// the address of the one that leads partition 0.
func lead(t *testing.T, m *muteNode) (c *cluster, addr string) {
	t.Helper()
	f := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(2, "orders"))
	for p, node := range []int32{0, 1} {
		if err := f.MoveTopicPartition("orders", int32(p), node); err != nil { //nolint:gosec // 0 and 1
			t.Fatal(err)
		}
	}
	c = &cluster{addrs: f.ListenAddrs(), fake: f, topic: "orders", t: t}
	for p := range int32(2) {
		c.produce(0, 3, 1, p)
	}
	c.opts = []kgo.Opt{kgo.Dialer(m.dial)}
	return c, f.ListenAddrs()[0]
}

// A leader that does not answer when partitions are assigned holds up its own and no
// others, and is read when it answers again. F-B01, F-E07
func TestAssignmentDoesNotWaitForASilentLeader(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]kafka.Protocol{"classic": kafka.Classic, "consumer": kafka.Consumer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m muteNode
			c, addr := lead(t, &m)
			m.mute(addr)
			g := open(t, c.group(kafka.GroupConfig{Protocol: protocol}))
			for _, d := range g.take(3) {
				if d.Origin.Partition != 1 {
					t.Errorf("received %s of partition %d", d.Body, d.Origin.Partition)
				}
				ack(t, d)
			}
			m.heal()
			ack(t, g.take(3)...)
			g.flush()
			c.waitCommitted(0, 3)
			c.waitCommitted(1, 3)
		})
	}
}

// A leader that goes silent is told of, with its partition, and what it has is not taken
// for nothing. F-L04
func TestSilentLeaderIsToldAndIsNoEmptyBacklog(t *testing.T) {
	t.Parallel()
	var m muteNode
	c, addr := lead(t, &m)
	g := open(t, c.group(kafka.GroupConfig{}))
	ack(t, g.take(6)...)
	backlog := g.Consumer.(transport.Backlogger).Backlog //nolint:errcheck // ours is one
	if n, _, err := backlog(t.Context()); n != 0 || err != nil {
		t.Errorf("backlog %d, %v", n, err)
	}
	m.mute(addr)
	said := func(text string) func() bool {
		return func() bool {
			return strings.Contains(strings.Join(append(g.told(transport.EventNotice), g.told(transport.EventCleared)...), "\n"), text)
		}
	}
	eventually(t, "its questions are not answered", func() bool { _, _, err := backlog(t.Context()); return err != nil })
	eventually(t, "it is told", said("read orders/0: the leader does not answer"))
	if _, _, err := backlog(t.Context()); longshore.CodeOf(err) != longshore.CodeUnreachable {
		t.Errorf("backlog: %v", err)
	}
	c.opts = nil
	c.produce(3, 6, 1, 0)
	c.produce(3, 6, 1, 1)
	ack(t, g.take(3)...)
	m.heal()
	ack(t, g.take(3)...)
	eventually(t, "the end of it is told", said("the leader of orders/0 answers again"))
	if n, at, err := backlog(t.Context()); n != 0 || err != nil || time.Since(at) > time.Minute {
		t.Errorf("backlog %d of %v, %v", n, at, err)
	}
	if _, _, downs := g.counts(); downs > 0 {
		t.Errorf("down: %v", g.downs)
	}
}
