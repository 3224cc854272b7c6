package kafka_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// txChildEnv makes the test binary a container with transactions: "addrs topic protocol id".
const txChildEnv = "LONGSHORE_KAFKA_TX_CHILD"

// TestTxChild is the process that gets killed.
func TestTxChild(t *testing.T) {
	args := strings.Fields(os.Getenv(txChildEnv))
	if len(args) != 4 {
		return // an ordinary run
	}
	protocol, _ := strconv.Atoi(args[2])
	out := args[1] + "-out"
	src := kafka.New(strings.Split(args[0], ","), kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(500 * time.Millisecond)}}).
		Group(args[1], []string{args[1]}, kafka.GroupConfig{Protocol: kafka.Protocol(protocol), SessionTimeout: 6 * time.Second, RebalanceDrain: time.Second, //nolint:gosec // 0 or 1
			SettleLinger: 50 * time.Millisecond, Transactional: &kafka.Transactional{ID: args[1] + "-" + args[3], Timeout: 5 * time.Second}})
	c, err := container.New(src, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		n, _ := strconv.Atoi(string(d.Body))
		if err := kafka.TxFrom(ctx).Publish(ctx, out, &longshore.Message{Key: d.Key, Body: d.Body}); err != nil {
			return err
		}
		if n%1000 == 7 && d.Attempt == 1 {
			return fmt.Errorf("record %d fails once", n)
		}
		wait(time.Duration(n%4) * time.Millisecond)
		return nil
	}), container.Config{Workers: container.Workers{Min: 30}, Logger: zap.NewNop(), WaitForBroker: true,
		Redelivery: container.Redelivery{Backoff: container.Backoff{Every: 5 * time.Millisecond}}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	<-context.Background().Done() // until it is killed
}

// txChild starts one.
func txChild(t *testing.T, c *cluster, p kafka.Protocol, id int) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestTxChild$", "-test.timeout", "10m") //nolint:gosec // this very binary; it is killed
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d %d", txChildEnv, strings.Join(c.addrs, ","), c.topic, p, id))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}
}

// Processes that are killed while they commit: readers of committed records see the result of each
// record once and in order by key, and the positions never say anything else. F-C02, F-C03. LONGSHORE_TX_PROOF
// makes it 60,000 records and a kill every five seconds; see `make test-transactions`.
func TestTransactionsOfKilledProcesses(t *testing.T) {
	t.Parallel()
	records, kills, every := 6000, 2, 1500*time.Millisecond
	if os.Getenv("LONGSHORE_TX_PROOF") != "" {
		records, kills, every = 60000, 8, 5*time.Second
	}
	addrs := brokertest.Kafka(t)
	eachProtocol(t, func(t *testing.T, p kafka.Protocol) {
		c := realCluster(t, addrs, 6)
		out := c.withOut(6)
		c.trickleOver(records, time.Duration(kills)*every)
		running := map[int]func(){}
		for i := range 3 {
			running[i] = txChild(t, c, p, i)
		}
		defer func() {
			for _, kill := range running {
				kill()
			}
		}()
		for i := range kills {
			wait(every)
			c.agree(out)
			running[i%3]()
			running[i%3] = txChild(t, c, p, i%3)
		}
		eventuallyIn(t, 3*time.Minute, func() string { return fmt.Sprintf("all %d committed, %d are", records, c.sum()) },
			func() bool { return c.sum() == int64(records) })
		recs := c.results(out, records)
		if len(recs) != records {
			t.Errorf("%d results of %d records", len(recs), records)
		}
		once(t, recs, records)
	})
}

// trickleOver produces records in the background, in so many steps of 100 ms.
func (c *cluster) trickleOver(records int, over time.Duration) {
	step := max(1, records/max(1, int(over/(100*time.Millisecond))))
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	c.t.Cleanup(func() { cancel(); <-done })
	p := publisher(c.t, c.broker(), kafka.PublisherConfig{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for at := 0; at < records && ctx.Err() == nil; at += step {
			var msgs []*longshore.Message
			for i := at; i < min(at+step, records); i++ {
				msgs = append(msgs, &longshore.Message{Key: fmt.Appendf(nil, "k%d", i%100), Body: fmt.Append(nil, i)})
			}
			if err := p.Publish(ctx, c.topic, msgs...); err != nil && ctx.Err() == nil {
				c.t.Errorf("producing: %v", err)
				return
			}
			<-tick.C
		}
	}()
}

// agree checks that as many results are committed as the positions say at least: what is done out
// of order comes on top.
func (c *cluster) agree(out string) {
	c.t.Helper()
	all, err := admin(c.t, c.addrs).FetchOffsets(kadm.RequireStable(context.Background()), c.topic)
	if err != nil {
		return // the group does not exist yet
	}
	want := int64(0)
	all.Each(func(o kadm.OffsetResponse) { want += max(o.At, 0) })
	if got := len(c.results(out, int(want))); int64(got) < want {
		c.t.Errorf("%d results, and the positions say %d", got, want)
	}
}
