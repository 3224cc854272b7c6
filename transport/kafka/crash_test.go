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

	"github.com/longshore-go/longshore/internal/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// childEnv makes the test binary a consumer: "addrs topic protocol stuck".
const childEnv = "LONGSHORE_KAFKA_CHILD"

// TestChild is the process that gets killed. It writes the number of each record
// before it acks it, and never acks the one that is stuck.
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
	out := bufio.NewWriterSize(os.Stdout, 64)
	for {
		ds, err := c.Receive(context.Background(), 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			_, _ = fmt.Fprintf(out, "done %s\n", d.Body)
			if string(d.Body) == args[3] {
				continue
			}
			if err := d.Ack(context.Background()); err != nil {
				_, _ = fmt.Fprintf(out, "refused %s\n", d.Body)
			}
		}
		_ = out.Flush()
	}
}

func killable(addrs []string, topic string, p kafka.Protocol) transport.Source {
	return kafka.New(addrs, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(500 * time.Millisecond)}}).
		Group(topic, []string{topic}, kafka.GroupConfig{Protocol: p, Window: 1 << 16, SessionTimeout: 6 * time.Second})
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

func (k *child) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.seen)
}

// A member is killed while its head is stuck and 40 000 records behind it are done:
// the next owner, by the other protocol, gets the stuck one and at most a thousand
// others.
func TestKilledMemberOnKafka(t *testing.T) {
	t.Parallel()
	addrs := brokertest.Kafka(t)
	for name, first := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const records, stuck = 40000, 10
			c := realCluster(t, addrs, 1)
			go c.trickle(records)
			k := startChild(t, c, first, stuck)
			eventuallyIn(t, 60*time.Second, func() string { return fmt.Sprintf("%d of %d done", k.count(), records) },
				func() bool { return k.count() == records })
			k.signal(syscall.SIGKILL)
			k.all.Wait()
			if at, _ := c.committed(0); at != stuck {
				t.Errorf("committed %d, want %d", at, stuck)
			}
			c.produce(records, records+1, 1, 0)
			next := open(t, killable(addrs, c.topic, 1-first))
			again := 0
			for last := false; !last; again++ {
				ds, err := next.upTo(1, 90*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				last = string(ds[0].Body) == strconv.Itoa(records)
				ack(t, ds...)
			}
			again-- // the last one is new
			t.Logf("%d of %d redelivered", again, records)
			if again < 1 || again > 1000 {
				t.Errorf("%d redelivered, want the stuck one and at most 1000", again)
			}
			next.flush()
			c.waitCommitted(0, records+1)
		})
	}
}

// trickle produces as fast as a consumer with work to do would take it.
func (c *cluster) trickle(records int) {
	for at := 0; at < records; at += 500 {
		c.produce(at, min(at+500, records), 100, 0)
		wait(20 * time.Millisecond)
	}
}

// A member that is frozen beyond its session loses its partitions; awake again, what
// it does late is refused, and the position only goes forward.
func TestFrozenMemberOnKafka(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes as long as a session")
	}
	addrs := brokertest.Kafka(t)
	c := realCluster(t, addrs, 2)
	c.produce(0, 2000, 100, -1)
	k := startChild(t, c, kafka.Classic, -1)
	eventually(t, "all are done", func() bool { return k.count() == 2000 })
	eventually(t, "all are committed", func() bool { return c.sum() == 2000 })
	k.signal(syscall.SIGSTOP)
	c.produce(2000, 3000, 100, -1)
	m := open(t, killable(addrs, c.topic, kafka.Classic))
	for range 1000 {
		ds, err := m.upTo(1, 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		ack(t, ds...)
	}
	m.flush()
	if sum := c.sum(); sum != 3000 {
		t.Errorf("committed %d, want 3000", sum)
	}
	k.signal(syscall.SIGCONT)
	c.produce(3000, 3100, 100, -1)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	go func() { // the partitions are shared again
		for {
			ds, err := m.Receive(ctx, 100)
			if err != nil {
				return
			}
			for _, d := range ds {
				_ = d.Ack(context.Background())
			}
		}
	}()
	for last := int64(0); ctx.Err() == nil; <-tick.C {
		sum := c.sum()
		if sum < last {
			t.Fatalf("committed went back from %d to %d", last, sum)
		}
		last = sum
	}
	if sum := c.sum(); sum != 3100 {
		t.Errorf("committed %d in the end, want 3100", sum)
	}
}
