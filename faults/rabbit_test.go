package faults

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/internal/testkit/oracle"
)

// rabbitQueue is a queue on a real RabbitMQ with a client of its own beside the
// code under test: what it counts and reads does not go through Longshore.
type rabbitQueue struct {
	t    *testing.T
	url  string
	name string
	conn *amqp091.Connection
	ch   *amqp091.Channel
}

// newRabbitQueue declares a durable queue; args may make it a quorum queue.
func newRabbitQueue(t *testing.T, url, name string, args amqp091.Table) *rabbitQueue {
	t.Helper()
	q := &rabbitQueue{t: t, url: url, name: name}
	q.connect()
	if _, err := q.ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatalf("declare %s: %v", name, err)
	}
	t.Cleanup(func() { _ = q.conn.Close() }) // a broker that a test stopped has closed it already
	return q
}

func (q *rabbitQueue) connect() {
	q.t.Helper()
	conn, err := amqp091.Dial(q.url)
	if err != nil {
		q.t.Fatalf("dial: %v", err)
	}
	ch, err := conn.Channel()
	if err != nil {
		q.t.Fatalf("channel: %v", err)
	}
	if err := ch.Confirm(false); err != nil {
		q.t.Fatalf("confirm mode: %v", err)
	}
	q.conn, q.ch = conn, ch
}

// reconnect is for after the test has taken the broker away.
func (q *rabbitQueue) reconnect() {
	_ = q.conn.Close() // it is dead already
	q.connect()
}

func (q *rabbitQueue) also(name string, args amqp091.Table) *rabbitQueue {
	q.t.Helper()
	if _, err := q.ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		q.t.Fatalf("declare %s: %v", name, err)
	}
	return &rabbitQueue{t: q.t, url: q.url, name: name, conn: q.conn, ch: q.ch}
}

// publish sends n numbered messages from first on over the given number of keys
// and notes each that was confirmed.
func (q *rabbitQueue) publish(l *oracle.Ledger, first, n, keys int) {
	q.t.Helper()
	type pending struct {
		id, key string
		confirm *amqp091.DeferredConfirmation
	}
	sent := make([]pending, 0, n)
	for i := first; i < first+n; i++ {
		id, key := strconv.Itoa(i), ""
		headers := amqp091.Table{}
		if keys > 0 {
			key = fmt.Sprintf("key-%d", i%keys)
			headers["longshore-key"] = key
		}
		c, err := q.ch.PublishWithDeferredConfirmWithContext(context.Background(), "", q.name, true, false,
			amqp091.Publishing{Body: []byte(id), MessageId: id, Headers: headers, DeliveryMode: amqp091.Persistent})
		if err != nil {
			q.t.Fatalf("publish %s: %v", id, err)
		}
		sent = append(sent, pending{id, key, c})
	}
	for _, p := range sent {
		if !p.confirm.Wait() {
			q.t.Fatalf("publish %s: not confirmed", p.id)
		}
		l.Published(p.id, p.key)
	}
}

// since tells whether the broker is of this version or a later one.
func (q *rabbitQueue) since(major, minor int) bool {
	q.t.Helper()
	text, _ := q.conn.Properties["version"].(string)
	var v [2]int
	if _, err := fmt.Sscanf(text, "%d.%d", &v[0], &v[1]); err != nil {
		q.t.Fatalf("version %q: %v", text, err)
	}
	return v[0] > major || v[0] == major && v[1] >= minor
}

// depth returns ready messages and consumers.
func (q *rabbitQueue) depth() (ready, consumers int) {
	q.t.Helper()
	st, err := q.ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
	if err != nil {
		q.t.Fatalf("look at %s: %v", q.name, err)
	}
	return st.Messages, st.Consumers
}

// drainInto takes everything out of a dead-letter queue.
func (q *rabbitQueue) drainInto(l *oracle.Ledger) []amqp091.Delivery {
	q.t.Helper()
	var all []amqp091.Delivery
	for {
		d, ok, err := q.ch.Get(q.name, true)
		if err != nil {
			q.t.Fatalf("get from %s: %v", q.name, err)
		}
		if !ok {
			return all
		}
		all = append(all, d)
		l.Dead(string(d.Body))
	}
}

// eventually polls cond until it holds.
func eventually(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// holds polls cond for the whole time and fails at the first time it is false.
func holds(t *testing.T, span time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(span)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if !cond() {
			t.Fatalf("no longer true: %s", what)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return
		}
	}
}

// check compares the ledger's sets.
func check(t *testing.T, l *oracle.Ledger, allow oracle.Allow) oracle.Report {
	t.Helper()
	r := l.Report()
	for _, p := range r.Problems(allow) {
		t.Error(p)
	}
	return r
}

// throughProxy returns url with another host and port.
func throughProxy(t *testing.T, rawURL, addr string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}
