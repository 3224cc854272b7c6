package kafka_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// shareChildEnv makes the test binary a member of a share group: "addrs topic".
const shareChildEnv = "LONGSHORE_KAFKA_SHARE_CHILD"

// TestShareChild is the process that gets killed. It holds ten records over a second poll, of
// which it accepts everything.
func TestShareChild(t *testing.T) {
	args := strings.Fields(os.Getenv(shareChildEnv))
	if len(args) != 2 {
		return // an ordinary run
	}
	c, err := kafka.New(strings.Split(args[0], ","), kafka.Config{}).ShareGroup(args[1], []string{args[1]}, kafka.ShareConfig{}).
		Open(context.Background(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for n, poll := range []string{"held", "accepted"} {
		for got := 0; got < 10; {
			ds, err := c.Receive(context.Background(), 10-got)
			if err != nil {
				t.Fatal(err)
			}
			got += len(ds)
			for _, d := range ds {
				if n == 1 {
					ack(t, d)
				}
				fmt.Printf("%s %s\n", poll, d.Body)
			}
		}
	}
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	fmt.Println("ready")
	<-context.Background().Done() // until it is killed
}

// The client's own share consumer would have accepted the first ten with its second poll.
func TestShareGroupUnsettledRecordsOfAKilledProcessComeAgain(t *testing.T) {
	addrs := brokertest.Kafka(t)
	c := &cluster{addrs: addrs, topic: transporttest.Name(t), t: t}
	createTopic(t, addrs, c.topic, 1)
	first := open(t, c.broker().ShareGroup(c.topic, []string{c.topic}, kafka.ShareConfig{Declare: kafka.Declare{Partitions: 1}}))
	first.shut() // it has set the group's start
	c.produce(0, 20, 1, 0)

	cmd := exec.Command(os.Args[0], "-test.run", "^TestShareChild$", "-test.timeout", "2m") //nolint:gosec // this very binary; it is killed
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s", shareChildEnv, strings.Join(addrs, ","), c.topic))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		if body, ok := strings.CutPrefix(lines.Text(), "held "); ok {
			held[body] = true
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	killed := time.Now()
	if len(held) != 10 {
		t.Fatalf("the process held %d records, want 10", len(held))
	}

	m := open(t, c.broker().ShareGroup(c.topic, []string{c.topic}, kafka.ShareConfig{}))
	again := m.take(10)
	t.Logf("all came again %v after the kill, the join included", time.Since(killed).Round(time.Millisecond))
	for _, d := range again {
		if !held[string(d.Body)] || !d.Origin.Redelivered {
			t.Errorf("record %s came, redelivered %v; it was not held by the killed process", d.Body, d.Origin.Redelivered)
		}
	}
	m.none(time.Second)
	ack(t, again...)
	m.flush()
}

// A record that comes back after its last delivery is reported, since the broker archives it
// in silence.
func TestShareGroupReportsTheLastDelivery(t *testing.T) {
	c := embeddedCluster(t, 1)
	src := c.broker().ShareGroup("billing", []string{c.topic}, kafka.ShareConfig{Declare: kafka.Declare{Partitions: 1}})
	m := open(t, src)
	c.produce(0, 1, 1, 0)
	for n := 1; n <= 5; n++ {
		d := m.take(1)[0]
		if d.Origin.LastReturn != (n == 5) {
			t.Errorf("delivery %d: LastReturn is %v", n, d.Origin.LastReturn)
		}
		if n < 5 {
			if err := d.Nack(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			continue
		}
		m.shut() // with the record in hand
	}
	eventually(t, "the event", func() bool { return len(m.told(transport.EventSkipped)) == 1 })
}

// A broker's group begins at the end by default. Without Declare that is an error with the
// remedy, and so is a broker without share groups.
func TestShareGroupChecksTheGroupsSettings(t *testing.T) {
	c := embeddedCluster(t, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := c.broker().ShareGroup("billing", []string{c.topic}, kafka.ShareConfig{}).Open(ctx, transport.OpenOptions{})
	if longshore.CodeOf(err) != longshore.CodeMismatch || !strings.Contains(err.Error(), "share.auto.offset.reset=earliest") {
		t.Errorf("%v, want a mismatch that names the setting", err)
	}
}
