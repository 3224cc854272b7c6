package amqp_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// A catch-all policy lets every queue of the vhost expire after 3 s without a consumer, which
// is between two of the times for which the test queue is left alone, 2 s and 4 s.
// Retries that wait longer in a delay queue come back all the same, the dead-letter queue
// keeps its messages, and the policy is named. What is retried from then on is not sent
// away.
//
// F-N16
func TestRetriesSurviveAPolicyThatExpiresQueues(t *testing.T) {
	url := brokertest.AMQP(t)
	brokertest.Policy(t, url, "expire", ".*", `{"expires":3000}`)
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

// A policy may delete a delay queue while no consumer of ours is open. Where the management
// API is known, a retry that would be in such a queue for too long stays with the container,
// and comes back after a stop; a shorter one waits at the broker.
//
// F-N16
func TestRetriesSurviveAPolicyWhileNoConsumerIsOpen(t *testing.T) {
	addr := brokertest.AMQP(t)
	brokertest.Policy(t, addr, "expire", ".*delay.*", `{"expires":3000}`)
	queue, s := transporttest.Name(t), &site{direct: addr, url: addr}
	src := amqp.New(addr, amqp.Config{Management: brokertest.Management(t, addr)}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	c := open(t, src, transport.OpenOptions{})
	s.publish(t, queue, "retry")
	wants(t, "a retry that the policy would delete", c.take(1)[0].Nack(t.Context(), 9*time.Second), longshore.CodeUnsupported, "policy")
	c.close()
	eventually(t, "the message is back", func() bool { return s.ready(t, queue) == 1 })

	brokertest.Policy(t, addr, "expire", ".*delay.*", `{"expires":120000}`)
	again := open(t, src, transport.OpenOptions{})
	if err := again.take(1)[0].Nack(t.Context(), time.Second); err != nil {
		t.Errorf("a retry that is due before the policy deletes its queue: %v", err)
	}
	again.take(1)
}

// RabbitMQ 4.3 delays what is returned to a quorum queue where a policy says so: the start
// names it, and the message is neither lost nor counted as a failed attempt.
//
// F-N16
func TestDelayedRetryPolicyOf43(t *testing.T) {
	addr := brokertest.AMQP(t)
	queue, s := transporttest.Name(t), &site{direct: addr, url: addr}
	if v := brokerVersion(t, addr); v != "" && !strings.HasPrefix(v, "4.3") {
		t.Skipf("RabbitMQ %s has no delayed retries", v)
	}
	brokertest.Policy(t, addr, "delayed", ".*", `{"delayed-retry-type":"all","delayed-retry-min":2000,"delayed-retry-max":2000}`)
	src := amqp.New(addr, amqp.Config{Management: brokertest.Management(t, addr)}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	c := open(t, src, transport.OpenOptions{})
	eventually(t, "the policy is named", func() bool { return c.told("delayed-retry") })
	s.publish(t, queue, "returned")
	began := time.Now()
	d := c.take(1)[0]
	if err := d.Apply(t.Context(), longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}); err != nil {
		t.Fatal(err)
	}
	d = c.take(1)[0]
	if took := time.Since(began); took < time.Second || d.Attempt != 1 || string(d.Body) != "returned" {
		t.Errorf("%q came back after %s as attempt %d", d.Body, took, d.Attempt)
	}
	c.ack(d)
}

// told reports whether a notice has the text in it.
func (e *ears) told(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.events, func(ev transport.Event) bool {
		return ev.Kind == transport.EventNotice && strings.Contains(ev.Text, text)
	})
}

// brokerVersion is what a broker says of itself.
func brokerVersion(t *testing.T, addr string) string {
	t.Helper()
	conn, err := amqp091.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	v, _ := conn.Properties["version"].(string)
	return v
}
