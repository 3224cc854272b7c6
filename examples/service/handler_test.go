package main

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// The whole service, with its configuration file, against an embedded RabbitMQ.
func TestServicePaysAndDeadLetters(t *testing.T) {
	rabbit := amqptest.New(t)
	t.Setenv("LONGSHORE_BROKERS_RABBIT_URL", rabbit.URL)
	t.Setenv("LONGSHORE_BROKERS_RABBIT_USER", "guest")
	t.Setenv("LONGSHORE_BROKERS_RABBIT_PASSWORD", "guest")
	t.Setenv("LONGSHORE_ADMIN_LISTEN", "127.0.0.1:0")
	s := &shop{paid: map[string]bool{}}
	m, err := service("longshore.yaml", s)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	pub, err := amqp.New(rabbit.URL, amqp.Config{}).Publisher(amqp.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	err = pub.Publish(t.Context(), "orders", &longshore.Message{Body: []byte(`{"ID":"o-1","Cents":990}`)}, &longshore.Message{Body: []byte(`{"ID":"o-1","Cents":990}`)},
		&longshore.Message{Body: []byte(`{"ID":"o-2"}`)}, &longshore.Message{Body: []byte(`not JSON`)})
	if err := errors.Join(err, pub.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(20 * time.Second); len(rabbit.Messages("/", "orders.dlq")) < 2; {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the dead letters did not arrive")
		}
	}
	if err := m.Stop(t.Context()); err != nil { // nothing was abandoned
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.paid) != 1 || !s.paid["o-1"] {
		t.Errorf("paid: %v", s.paid)
	}
}
