package rabbitmq_test

import (
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.RabbitMQ) }

func TestBrokerAnswers(t *testing.T) {
	brokertest.Presence(t, brokertest.RabbitMQ)
	conn, err := amqp091.Dial(brokertest.AMQP(t))
	if err != nil {
		t.Fatalf("the broker of AMQP_URL: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
