package amqp_test

import (
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// Why QueueConfig has no such setting: a consumer with no-local gets what its own connection
// publishes.
func TestRabbitMQIgnoresNoLocal(t *testing.T) {
	t.Parallel()
	conn, err := amqp091.Dial(brokertest.AMQP(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare(transporttest.Name(t), false, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ch.Consume(q.Name, "", true, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.PublishWithContext(t.Context(), "", q.Name, false, false, amqp091.Publishing{Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-got:
		if string(d.Body) != "x" {
			t.Errorf("%q", d.Body)
		}
	case <-time.After(20 * time.Second):
		t.Error("the broker kept the message from its own connection")
	}
}
