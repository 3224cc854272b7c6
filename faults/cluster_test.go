package faults

import (
	"net/url"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/amqp"
)

// bothNodes is one URL that names the nodes of a cluster.
func bothNodes(t *testing.T, first, second *brokertest.Node) string {
	t.Helper()
	u, err := url.Parse(second.URL)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(first.URL, "@", "@"+u.Host+",", 1)
}

// F-B01: the node that a container is connected to is killed, and the queue lives
// on the other. Both are killed in turn, so the used one is among them.
func TestClusterLosesTheNodeThatIsUsed(t *testing.T) {
	t.Parallel()
	first, second := brokertest.Cluster(t)
	l := oracle.New()
	q := newRabbitQueue(t, second.URL, "orders", nil)
	c := consume(t, bothNodes(t, first, second), "orders", container.Config{Order: container.ByKey, Reopen: quickly}, record(l))
	q.publish(l, 0, 100, 7)
	eventually(t, 20*time.Second, "consuming", func() bool { return l.Done() == 100 })

	first.Kill()
	q.publish(l, 100, 100, 7)
	eventually(t, 20*time.Second, "consuming from the node that is left", func() bool { return l.Done() == 200 })
	first.Start()

	second.Kill() // the queue's own node: it waits, and so do we
	eventually(t, 20*time.Second, "recovering", func() bool { return c.State() == container.StateRecovering })
	second.Start()
	q.reconnect()
	q.publish(l, 200, 100, 7)
	eventually(t, 40*time.Second, "consuming after the queue's node came back", func() bool { return l.Done() == 300 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	check(t, l, oracle.Allow{Twice: 200, Ordered: true})
}

// F-B01: a quorum queue without a majority takes and gives nothing. When the
// majority is back everything goes on by itself.
func TestClusterWithoutAMajorityIsWaitedFor(t *testing.T) {
	t.Parallel()
	first, second := brokertest.Cluster(t)
	l := oracle.New()
	q := newRabbitQueue(t, second.URL, "orders", amqp091.Table{"x-queue-type": "quorum", "x-quorum-initial-group-size": int32(2)})
	c := consumeFrom(t, amqp.New(bothNodes(t, first, second), amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum, Arguments: amqp091.Table{"x-quorum-initial-group-size": int32(2)}}}),
		container.Config{Order: container.ByKey, Reopen: quickly}, record(l))
	q.publish(l, 0, 100, 7)
	eventually(t, 20*time.Second, "consuming", func() bool { return l.Done() == 100 })
	first.Kill()
	first.Start()
	q.reconnect()
	// While the queue gets its majority back it may still know consumers that are
	// gone, and takes back from them what it gives them.
	eventually(t, 60*time.Second, "one consumer, and it is ours", func() bool {
		_, n := q.depth()
		return n == 1 && c.State() == container.StateRunning
	})
	q.publish(l, 100, 100, 7)
	eventually(t, 60*time.Second, "consuming again", func() bool { return l.Done() == 200 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if ready, _ := q.depth(); ready != 0 {
		t.Errorf("%d are left", ready)
	}
	check(t, l, oracle.Allow{Twice: 100, Ordered: true})
}
