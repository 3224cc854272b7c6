package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// childEnv makes the test binary a consumer: "addrs topic protocol stuck".
const childEnv = "LONGSHORE_KAFKA_CHILD"

// TestChild is the process that gets killed. It writes the number of each record
// before it acks it, and never acks the one that is stuck; without one it takes a
// millisecond for each.
func TestChild(t *testing.T) {
	args := strings.Fields(os.Getenv(childEnv))
	if len(args) != 4 {
		return // an ordinary run
	}
	protocol, _ := strconv.Atoi(args[2])
	src := killable(strings.Split(args[0], ","), args[1], kafka.Protocol(protocol)) //nolint:gosec // 0 or 1
	c, err := src.Open(context.Background(), transport.OpenOptions{Window: 200, MaxWindow: 200})
	if err != nil {
		t.Fatal(err)
	}
	for {
		ds, err := c.Receive(context.Background(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			_, _ = fmt.Printf("done %s\n", d.Body) // not buffered: what is committed has been said, however the process ends
			switch args[3] {
			case string(d.Body):
				continue
			case "-1":
				wait(time.Millisecond)
			}
			if err := d.Ack(context.Background()); err != nil {
				_, _ = fmt.Printf("refused %s\n", d.Body)
			}
		}
	}
}

func killable(addrs []string, topic string, p kafka.Protocol) transport.Source {
	return kafka.New(addrs, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(500 * time.Millisecond)}}).
		Group(topic, []string{topic}, kafka.GroupConfig{Protocol: p, Window: 1 << 16, SessionTimeout: 4 * time.Second})
}

// child is a consumer in a process of its own.
type child struct {
	cmd  *exec.Cmd
	mu   sync.Mutex
	seen map[int]int
	all  sync.WaitGroup
}

func startChild(t *testing.T, c *cluster, p kafka.Protocol, stuck int) *child {
	t.Helper()
	k := &child{cmd: exec.Command(os.Args[0], "-test.run", "^TestChild$", "-test.timeout", "5m"), seen: map[int]int{}} //nolint:gosec // this very binary; it is killed
	k.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d", childEnv, strings.Join(c.addrs, ","), c.topic, p, stuck))
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.all.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			verb, num, _ := strings.Cut(lines.Text(), " ")
			if n, err := strconv.Atoi(num); err == nil && verb == "done" {
				k.mu.Lock()
				k.seen[n]++
				k.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { k.signal(syscall.SIGKILL); k.all.Wait(); _ = k.cmd.Wait() })
	return k
}

func (k *child) signal(s syscall.Signal) { _ = k.cmd.Process.Signal(s) }

// union is how many are done by the child or in a ledger, twice how many by both.
func (k *child) union(l *ledger) int {
	n := l.distinct() + k.count()
	return n - k.twice(l)
}

func (k *child) twice(l *ledger) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for num := range k.seen {
		if l.times[num] > 0 {
			n++
		}
	}
	return n
}

func (k *child) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen)
}

// What needs a broker with short sessions, with logins and with permissions.
func TestOnAKafkaOfOnesOwn(t *testing.T) {
	t.Parallel()
	n := brokertest.FaultKafka(t)
	for name, f := range map[string]func(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol){
		"member killed": killedMember, "member frozen": frozenMember, "token renewed": renewedToken,
		"wrong login": wrongLogin, "no permission": noPermission, "permission taken away": permissionTakenAway, "least privileges": leastPrivileges,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachProtocol(t, func(t *testing.T, p kafka.Protocol) { f(t, n, p) })
		})
	}
}

// A member is killed while its head is stuck and 40 000 records behind it are done:
// the next owner, by the other protocol, gets no more of them than half a second's work.
func killedMember(t *testing.T, n *brokertest.KafkaNode, first kafka.Protocol) {
	const records, stuck = 40000, 10
	c := realCluster(t, n.Addrs, 1)
	began := time.Now()
	c.trickle(records)
	k := startChild(t, c, first, stuck)
	eventuallyIn(t, 120*time.Second, func() string { return fmt.Sprintf("%d of %d done", k.count(), records) },
		func() bool { return k.count() == records })
	k.signal(syscall.SIGKILL)
	k.all.Wait()
	rate := records / time.Since(began).Seconds()
	if at, _ := c.committed(0); at != stuck {
		t.Errorf("committed %d, want %d", at, stuck)
	}
	c.produce(records, records+1, 1, 0)
	next := open(t, killable(n.Addrs, c.topic, 1-first))
	again := 0
	for last := false; !last; again++ {
		ds, err := next.upTo(1, 60*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		last = string(ds[0].Body) == strconv.Itoa(records)
		ack(t, ds...)
	}
	again-- // the last one is new
	t.Logf("%d of %d redelivered, at %.0f records a second", again, records, rate)
	// What no commit had carried: one is due after 500 completions, and its answer takes as long as
	// a busy broker needs.
	if most := max(1000, int(rate/2)); again < 1 || again > most {
		t.Errorf("%d redelivered, want the stuck one and in all at most %d, the work of half a second", again, most)
	}
	next.flush()
	c.waitCommitted(0, records+1)
}

// trickle produces in the background about as fast as a consumer with work to do
// would take it: 500 records every 60 ms.
func (c *cluster) trickle(records int) {
	var all sync.WaitGroup
	p := publisher(c.t, c.broker(), kafka.PublisherConfig{})
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(func() { cancel(); all.Wait() })
	all.Go(func() {
		tick := time.NewTicker(60 * time.Millisecond)
		defer tick.Stop()
		for at := 0; at < records && ctx.Err() == nil; at += 500 {
			var msgs []*longshore.Message
			for i := at; i < min(at+500, records); i++ {
				msgs = append(msgs, &longshore.Message{Key: fmt.Appendf(nil, "k%d", i%100), Body: fmt.Append(nil, i)})
			}
			if err := p.Publish(ctx, c.topic, msgs...); err != nil && ctx.Err() == nil {
				c.t.Errorf("producing: %v", err)
				return
			}
			<-tick.C
		}
	})
}

// A member is frozen at work, beyond its session, and loses its partitions. Awake
// again, what it does late is refused; nothing is lost, and the position only goes
// forward.
func frozenMember(t *testing.T, n *brokertest.KafkaNode, p kafka.Protocol) {
	const records = 3000
	c := realCluster(t, n.Addrs, 2)
	c.trickle(records)
	k := startChild(t, c, p, -1)
	eventually(t, "some are done", func() bool { return k.count() > 500 })
	k.signal(syscall.SIGSTOP)
	m := open(t, killable(n.Addrs, c.topic, p))
	seen := newLedger()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	all.Go(func() {
		for {
			ds, err := m.Receive(ctx, 100)
			if err != nil {
				return
			}
			for _, d := range ds {
				num, _ := strconv.Atoi(string(d.Body))
				seen.handled(string(d.Key), num)
				_ = d.Ack(ctx) // refused when the partitions are shared again
			}
		}
	})
	union := func() int { return k.union(seen) }
	eventuallyIn(t, 40*time.Second, func() string { return fmt.Sprintf("all %d done by one of both, %d are", records, union()) },
		func() bool { return union() == records })
	eventually(t, "all is committed", func() bool { return c.sum() == records })
	k.signal(syscall.SIGCONT)
	c.produce(records, records+100, 100, -1)
	last := int64(records)
	eventually(t, "the rest is committed", func() bool {
		sum := c.sum()
		if sum < last {
			t.Errorf("committed went back from %d to %d", last, sum)
		}
		last = sum
		return union() == records+100 && sum == records+100
	})
	twice := k.twice(seen)
	t.Logf("%d done by both", twice)
	if twice > 1000 {
		t.Errorf("%d done by both, want what was in work and at most two commits' worth", twice)
	}
}
