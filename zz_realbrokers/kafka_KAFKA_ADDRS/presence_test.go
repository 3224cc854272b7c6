package kafka_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/testkit/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m, brokertest.KafkaNodes) }

func TestBrokerAnswers(t *testing.T) {
	brokertest.Presence(t, brokertest.KafkaNodes)
	client, err := kgo.NewClient(kgo.SeedBrokers(brokertest.Kafka(t)...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		t.Fatalf("the broker of KAFKA_ADDRS: %v", err)
	}
}
