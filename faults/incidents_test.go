package faults

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// rabbitStage is a RabbitMQ on which incidents can be staged.
type rabbitStage struct {
	url      string
	alarm    func(on bool)
	password func(string) // changes guest's
	cut      func()       // ends all connections
}

// onStage runs a test on the embedded server and on a node of its own.
func onStage(t *testing.T, f func(t *testing.T, s rabbitStage)) {
	t.Run("amqptest", func(t *testing.T) {
		srv := amqptest.New(t, amqptest.Config{})
		f(t, rabbitStage{srv.URL, func(on bool) {
			if on {
				srv.Block("low on memory")
			} else {
				srv.Unblock()
			}
		}, func(p string) { srv.SetPassword("guest", p) }, func() { srv.Cut(nil) }})
	})
	t.Run("real", func(t *testing.T) {
		node := brokertest.FaultNode(t)
		f(t, rabbitStage{node.URL, node.MemoryAlarm, node.ChangePassword, node.CloseAllConnections})
	})
}

// names waits until a container names a cause, and checks that the probes say the same
// sentence, with what fixes it.
func names(t *testing.T, c *container.ListenerContainer, by string, ready bool, words ...string) {
	t.Helper()
	var st container.Stats
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last sentence: %+v", st.Bottleneck)
		}
	})
	eventually(t, 30*time.Second, "the cause is named: "+by+" "+strings.Join(words, ", "), func() bool {
		st = c.Stats()
		for _, w := range words {
			if !strings.Contains(st.Bottleneck.Text, w) {
				return false
			}
		}
		return st.Bottleneck.By == by && !st.Bottleneck.Since.IsZero()
	})
	b := st.Bottleneck
	if st.Reason != b.Text || st.Ready != ready || !st.Live || b.Do == "" || !strings.Contains(b.Text, b.Do) {
		t.Errorf("ready %t, live %t, a probe says %q, the sentence is %+v", st.Ready, st.Live, st.Reason, b)
	}
	rec := httptest.NewRecorder()
	telemetry.Health(c).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/health/ready", nil))
	if (rec.Code == http.StatusOK) != ready || !strings.Contains(rec.Body.String(), words[0]) {
		t.Errorf("the probe: %d %s", rec.Code, rec.Body)
	}
}

// F-N34: a memory alarm keeps dead letters from being moved, and is named as the cause.
func TestMemoryAlarmIsNamed(t *testing.T) {
	t.Parallel()
	onStage(t, func(t *testing.T, s rabbitStage) {
		l := oracle.New()
		q := newRabbitQueue(t, s.url, "orders", nil)
		q.also("orders.dlq", nil)
		q.publish(l, 0, 40, 0)
		s.alarm(true)
		defer s.alarm(false)
		c := consume(t, s.url, "orders", container.Config{DeadLetter: container.DeadLetter{To: "orders.dlq"}}, func(_ context.Context, d *longshore.Delivery) error {
			if d.Body[len(d.Body)-1] == '7' { // every tenth
				return longshore.Reject(errors.New("bad"))
			}
			return nil
		})
		names(t, c, container.ByAlarm, true, "blocks publishers", "rabbitmq-diagnostics alarms")
		s.alarm(false)
		eventually(t, 30*time.Second, "it is over", func() bool { return c.Stats().Reason == "" })
	})
}

// F-N34: someone deletes the queue and makes it again with other arguments.
func TestQueueRemadeIsNamed(t *testing.T) {
	t.Parallel()
	onStage(t, func(t *testing.T, s rabbitStage) {
		q := newRabbitQueue(t, s.url, "orders", nil)
		c := consumeFrom(t, amqp.New(s.url, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}),
			container.Config{Reopen: container.Backoff{Initial: 2 * time.Second, Max: 2 * time.Second}}, // not before the other one
			func(context.Context, *longshore.Delivery) error { return nil })
		if _, err := q.ch.QueueDelete("orders", false, false, false); err != nil {
			t.Fatal(err)
		}
		if _, err := q.ch.QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-max-length": int32(10)}); err != nil {
			t.Fatalf("the container was faster: %v", err)
		}
		names(t, c, container.ByBroker, false, "recovering: ", "("+string(longshore.CodeMismatch)+")")
	})
}

// F-N34: the password is changed while the container runs, and its connection ends.
func TestRevokedCredentialsAreNamed(t *testing.T) {
	t.Parallel()
	onStage(t, func(t *testing.T, s rabbitStage) {
		newRabbitQueue(t, s.url, "orders", nil)
		c := consume(t, s.url, "orders", container.Config{Reopen: quickly}, func(context.Context, *longshore.Delivery) error { return nil })
		s.password("another")
		s.cut()
		names(t, c, container.ByBroker, false, "recovering: ", "("+string(longshore.CodeAuth)+")")
		s.password("guest")
		eventually(t, 30*time.Second, "it is over", func() bool { return c.Stats().Reason == "" })
	})
}

// F-N34: a pause and a throttle that were forgotten name who set them and the command that
// ends them.
func TestForgottenPauseAndThrottleAreNamed(t *testing.T) {
	url, l := brokertest.AMQP(t), oracle.New()
	q := newRabbitQueue(t, url, "orders", nil)
	q.publish(l, 0, 20, 0)
	limit := throttle.NewUnlimited()
	c := consume(t, url, "orders", container.Config{Throttle: limit}, record(l))
	none := 0
	limit.Override(throttle.Override{Permits: &none, By: "anna", Reason: "ledger down"})
	names(t, c, container.ByPermits, true, "anna (ledger down)", "longshore ctl throttle orders --clear")
	limit.ClearOverride()
	c.PauseBy(longshore.Intervention{By: "ben", Reason: "deploy"})
	names(t, c, container.ByState, true, "ben (deploy)", "longshore ctl resume orders")
	c.Resume()
	eventually(t, 20*time.Second, "it is over", func() bool { return c.Stats().Reason == "" && l.Done() == 20 })
}

// F-N34: a record that is kept because it has no dead-letter destination blocks its partition.
func TestPartitionBlockedByKeepIsNamed(t *testing.T) {
	onKafka(t, 1, func(t *testing.T, k *kafkaTopic, p kafka.Protocol) {
		l := oracle.New()
		k.publish(l, 0, 100, 10)
		c := consumeFrom(t, k.group(kafka.GroupConfig{Window: 20, Protocol: p}), container.Config{DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
			Redelivery: container.Redelivery{MaxAttempts: 1, Backoff: container.Backoff{Initial: time.Minute, Max: time.Hour}}},
			func(_ context.Context, d *longshore.Delivery) error {
				if string(d.Body) == "0" {
					return errors.New("no such account")
				}
				return nil
			})
		names(t, c, container.ByBlocked, true, "partition 0 of "+k.name, "offset 0", "longshore ctl inflight", "retry-now or dead-letter")
	})
}
