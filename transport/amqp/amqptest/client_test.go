package amqptest

import (
	"context"
	"errors"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const patience = 5 * time.Second

// dial connects; the connection closes with the test.
func dial(t *testing.T, url string) *amqp091.Connection {
	t.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func open(t *testing.T, conn *amqp091.Connection) *amqp091.Channel {
	t.Helper()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("open channel: %v", err)
	}
	return ch
}

func declare(t *testing.T, ch *amqp091.Channel, name string, args amqp091.Table) string {
	t.Helper()
	q, err := ch.QueueDeclare(name, true, false, false, false, args)
	if err != nil {
		t.Fatalf("declare %q: %v", name, err)
	}
	return q.Name
}

func publish(t *testing.T, ch *amqp091.Channel, exchange, key string, p amqp091.Publishing) {
	t.Helper()
	if err := ch.PublishWithContext(context.Background(), exchange, key, false, false, p); err != nil {
		t.Fatalf("publish to %q %q: %v", exchange, key, err)
	}
}

func text(s string) amqp091.Publishing { return amqp091.Publishing{Body: []byte(s)} }

func consume(t *testing.T, ch *amqp091.Channel, queue string) <-chan amqp091.Delivery {
	t.Helper()
	d, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		t.Fatalf("consume %q: %v", queue, err)
	}
	return d
}

// next is the next value, or the end of the test.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatal("channel closed")
		}
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	panic("unreachable")
}

func none[T any](t *testing.T, from <-chan T, why string) {
	t.Helper()
	select {
	case v, ok := <-from:
		if ok {
			t.Fatalf("%s: got %v", why, v)
		}
	case <-time.After(50 * time.Millisecond):
	}
}

// until polls cond.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func code(err error) int {
	var e *amqp091.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func ready(s *Server, name string) int {
	q, _ := s.Queue("/", name)
	return q.Ready
}

func unacked(s *Server, name string) int {
	q, _ := s.Queue("/", name)
	return q.Unacked
}
