package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-A05: a member that ends while another joins is gone from the group at once.
func TestEveryWayOutLeavesTheGroup(t *testing.T) {
	t.Parallel()
	ways := map[string]func(m *member){
		"close":              func(m *member) { m.shut() },
		"cancel, then close": func(m *member) { _ = m.Cancel(context.Background()); m.shut() },
		"close with a context that has ended": func(m *member) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = m.Close(ctx)
		},
		"lost authorisation": func(m *member) {
			if _, err := m.upTo(1000, patience); !errors.Is(err, longshore.CodeForbidden) {
				m.t.Errorf("Receive: %v, want forbidden", err)
			}
			m.shut()
		},
	}
	for name, leave := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
				c := embeddedCluster(t, 4)
				src := c.group(kafka.GroupConfig{Protocol: p})
				for range 5 {
					m := open(t, src)
					c.produce(0, 8, 8, -1)
					m.take(1)
					if name == "lost authorisation" {
						c.forbids(c.fake.GroupInfo(c.topic).Members[0].MemberID)
					}
					joined := make(chan *member, 1)
					go func() { joined <- open(t, src) }()
					wait(rand.N(100 * time.Millisecond))
					leave(m)
					next := <-joined
					start := time.Now()
					eventually(t, "the member is gone", func() bool {
						g := c.fake.GroupInfo(c.topic)
						return len(g.Members) == 1
					})
					if took := time.Since(start); took > 2*time.Second {
						t.Errorf("it was in the group for %s", took)
					}
					next.take(8)
					next.shut()
				}
			})
		})
	}
}

// forbids refuses the next heartbeat of a member.
func (c *cluster) forbids(id string) {
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat}, Err: kerr.GroupAuthorizationFailed, Count: 1,
		When: func(r kmsg.Request) bool {
			switch r := r.(type) {
			case *kmsg.HeartbeatRequest:
				return r.MemberID == id
			case *kmsg.ConsumerGroupHeartbeatRequest:
				return r.MemberID == id && r.MemberEpoch > 0
			}
			return false
		}})
}

// F-A05 on a real broker: who ends while another joins is not waited for until its
// session is over, 45 s later.
func TestEveryWayOutLeavesTheGroupOnKafka(t *testing.T) {
	t.Parallel()
	addrs := brokertest.Kafka(t)
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		for name, leave := range map[string]func(m *member){
			"close":              func(m *member) { m.shut() },
			"cancel, then close": func(m *member) { _ = m.Cancel(context.Background()); m.shut() },
			"close with a context that has ended": func(m *member) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_ = m.Close(ctx)
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := realCluster(t, addrs, 4)
				src := c.group(kafka.GroupConfig{Protocol: p})
				m := open(t, src)
				c.produce(0, 8, 8, -1)
				m.take(1)
				joined := make(chan *member, 1)
				go func() { joined <- open(t, src) }()
				wait(rand.N(100 * time.Millisecond))
				leave(m)
				next := <-joined
				next.take(8) // it has all partitions
				next.shut()
			})
		}
	})
}

// F-B01: any step of joining fails, and fails again; then the group consumes.
func TestEachStepOfJoiningMayFail(t *testing.T) {
	t.Parallel()
	classic := []kmsg.Key{kmsg.FindCoordinator, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.OffsetFetch, kmsg.ListOffsets, kmsg.Fetch, kmsg.Metadata}
	steps := map[kafka.Protocol][]kmsg.Key{kafka.Classic: classic,
		kafka.Consumer: {kmsg.FindCoordinator, kmsg.ConsumerGroupHeartbeat, kmsg.OffsetFetch, kmsg.ListOffsets, kmsg.Fetch}}
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		for _, key := range steps[p] {
			t.Run(key.Name(), func(t *testing.T) {
				t.Parallel()
				c := embeddedCluster(t, 2)
				c.produce(0, 10, 10, -1)
				b, cut := c.cutting(t)
				src := b.Group(c.topic, []string{c.topic}, kafka.GroupConfig{Protocol: p})
				// The answer does not come: the connection ends instead.
				n := 0
				c.fake.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
					c.fake.KeepControl()
					if n++; n > 4 || n < 2 && key == kmsg.FindCoordinator || n < 2 && key == kmsg.Metadata {
						return nil, nil, false // the first is Open's, which gives up soon
					}
					go cut()
					return nil, net.ErrClosed, true
				})
				m := open(t, src)
				ack(t, m.take(10)...)
				m.flush()
			})
		}
	})
}

// cutting is a broker whose connections can be cut.
func (c *cluster) cutting(t testing.TB) (b *kafka.Broker, cut func()) {
	t.Helper()
	var mu sync.Mutex
	var conns []net.Conn
	dial := kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
		}
		return conn, err
	})
	return kafka.New(c.addrs, kafka.Config{Options: []kgo.Opt{dial, kgo.HeartbeatInterval(200 * time.Millisecond)}}), func() {
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		conns = nil
	}
}

// F-F02: pauses and rebalances in any order; in the end nothing is paused, nothing is
// lost.
func TestPauseDoesNotOutliveTheAssignment(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		c := embeddedCluster(t, 4)
		src := c.group(kafka.GroupConfig{Protocol: p, SettleLinger: 20 * time.Millisecond, RebalanceDrain: 50 * time.Millisecond})
		m := open(t, src)
		pauser := m.Consumer.(transport.Pauser) //nolint:errcheck // it is one
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		var done, sent sync.Map // bodies
		consume := func(m *member) {
			all.Go(func() {
				for {
					ds, err := m.Receive(ctx, 50)
					if err != nil {
						return
					}
					for _, d := range ds {
						done.Store(string(d.Body), true)
						_ = d.Ack(context.Background())
					}
				}
			})
		}
		consume(m)
		var others []*member
		r := rand.New(rand.NewPCG(1, 2))
		for i := range 200 {
			switch r.IntN(5) {
			case 0:
				_ = pauser.Pause(ctx)
			case 1:
				_ = pauser.Resume(ctx)
			case 2:
				if len(others) < 2 {
					o := open(t, src)
					consume(o)
					others = append(others, o)
				}
			case 3:
				if len(others) > 0 {
					others[0].shut()
					others = slices.Delete(others, 0, 1)
				}
			default:
				c.produce(i*50, i*50+50, 50, -1)
				for n := range 50 {
					sent.Store(fmt.Sprint(i*50+n), true)
				}
			}
			wait(10 * time.Millisecond)
		}
		for _, o := range others {
			o.shut()
		}
		_ = pauser.Resume(ctx)
		c.noLag(m)
		cancel()
		all.Wait()
		sent.Range(func(body, _ any) bool {
			if _, ok := done.Load(body); !ok {
				t.Errorf("%v was never received, and committed", body)
			}
			return true
		})
	})
}

// F-F03: paused for far longer than any budget: the member keeps its partitions and
// what it holds.
func TestPausedMemberStays(t *testing.T) {
	t.Parallel()
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		inBubble(t, 2, func(t *testing.T, c *cluster) {
			f := c.fake
			c.produce(0, 4, 4, -1)
			m := open(t, c.group(kafka.GroupConfig{Protocol: p, SessionTimeout: 30 * time.Second, RebalanceTimeout: 30 * time.Second}))
			ds := m.take(4)
			before := f.GroupInfo("orders")
			_ = m.Consumer.(transport.Pauser).Pause(t.Context()) //nolint:errcheck // it is one
			wait(5 * time.Minute)
			after := f.GroupInfo("orders")
			if before.Epoch != after.Epoch || len(after.Members) != 1 {
				t.Errorf("the group went from epoch %d to %d with %d members", before.Epoch, after.Epoch, len(after.Members))
			}
			_ = m.Consumer.(transport.Pauser).Resume(t.Context()) //nolint:errcheck // it is one
			if lost, _, downs := m.counts(); lost != 0 || downs != 0 {
				t.Errorf("%d lost, down %d times", lost, downs)
			}
			ack(t, ds...)
			c.produce(4, 5, 1, -1)
			ack(t, m.take(1)...)
			m.flush()
			m.shut()
		})
	})
}

// F-C02's and F-A01's sibling: what was acked and could not be committed before the
// partition went is reported, each once.
func TestUncommittedAcksAreReported(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 5, 1, 0)
	m := open(t, c.group(kafka.GroupConfig{SettleLinger: time.Hour}))
	ds := m.take(5)
	m.flush() // the first position: its commit would take the acks along
	former := func(r kmsg.Request) bool {
		return r.(*kmsg.OffsetCommitRequest).Generation == 1 //nolint:errcheck // by the key
	}
	late := c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: c.topic, Err: kerr.CoordinatorLoadInProgress, When: former, Count: -1}) // one that was about to
	ack(t, ds[:3]...)
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: c.topic, Err: kerr.UnknownMemberID})
	eventually(t, "the loss", func() bool { lost, failed, _ := m.counts(); return lost == 2 && failed == 3 })
	// The client may repeat that commit yet. The embedded broker, which has not removed the member
	// in truth, would take it.
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Group: c.topic, Err: kerr.UnknownMemberID, When: former, Count: -1})
	late.Remove()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.Flush(ctx); err == nil {
		t.Error("Flush is nil although acks were lost")
	}
	if err := m.Flush(ctx); err != nil {
		t.Errorf("the next Flush: %v", err)
	}
	ack(t, m.take(5)...)
}
