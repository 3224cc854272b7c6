package amqp_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// A catch-all policy lets every queue of the vhost expire after 4 s without a consumer.
// Retries that wait longer in a delay queue come back all the same, the dead-letter queue
// keeps its messages, and the policy is named. What is retried from then on is not sent
// away.
//
// F-N16
func TestRetriesSurviveAPolicyThatExpiresQueues(t *testing.T) {
	url := brokertest.AMQP(t)
	brokertest.Policy(t, url, "expire", ".*", `{"expires":4000}`)
	queue, s := transporttest.Name(t), &site{direct: url, url: url}
	b := amqp.New(url, amqp.Config{})
	src := b.Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	c := open(t, src, transport.OpenOptions{DeadLetter: queue + ".dlq"})
	bodies := numbered(5)
	s.publish(t, queue, bodies...)
	s.publish(t, queue+".dlq", "dead")
	for _, d := range c.take(5) {
		if err := d.Nack(t.Context(), 9*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	var back []string
	again := c.take(5)
	for _, d := range again {
		back = append(back, string(d.Body))
	}
	slices.Sort(back)
	if !slices.Equal(back, bodies) {
		t.Errorf("%v came back of %v", back, bodies)
	}
	if n := s.ready(t, queue+".dlq"); n != 1 {
		t.Errorf("the dead-letter queue holds %d of 1", n)
	}
	if !c.heard(transport.EventNotice) {
		t.Error("the policy is not told of")
	}
	wants(t, "a retry where queues expire", again[0].Nack(t.Context(), 9*time.Second), longshore.CodeUnsupported, "policy")
}

// Where the management API is known, the start names the policies that reach the queue,
// its dead letters and its retries.
//
// F-N16
func TestStartNamesPolicies(t *testing.T) {
	addr := brokertest.AMQP(t)
	brokertest.Policy(t, addr, "all", ".*", `{"expires":400000}`)
	queue := transporttest.Name(t)
	src := amqp.New(addr, amqp.Config{Management: brokertest.Management(t, addr)}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	c := open(t, src, transport.OpenOptions{DeadLetter: queue + ".dlq"})
	var told []string
	c.ears.mu.Lock()
	for _, e := range c.events {
		if e.Kind == transport.EventNotice {
			told = append(told, e.Text)
		}
	}
	c.ears.mu.Unlock()
	for _, want := range []string{"the queue is deleted with its messages 6m40s after", "retries that wait there are deleted", "the queue is deleted with its dead letters"} {
		if !slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("%q is not told: %q", want, told)
		}
	}
}
