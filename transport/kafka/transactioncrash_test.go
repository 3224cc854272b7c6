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

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
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
		if err := kafka.TxFrom(ctx).Publish(ctx, out, &longshore.Message{Key: d.Key, Body: d.Body, Headers: longshore.Headers{{Name: "from", Value: fmt.Sprintf("%d %d", d.Origin.Partition, d.Origin.Position)}}}); err != nil {
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
