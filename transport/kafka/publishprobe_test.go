package kafka_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// Whoever has nobody to publish to hears of it at once, and with the address.
func TestPublishToNobody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p := publisher(t, kafka.New([]string{addr}, kafka.Config{}), kafka.PublisherConfig{})
	err = p.Publish(t.Context(), "orders", messages("a", "b")...) // without a deadline
	if !errors.Is(err, longshore.CodeUnreachable) || !strings.Contains(err.Error(), `publish to kafka topic "orders" at `+addr) {
		t.Errorf("%v", err)
	}
}

// A cluster that goes away later is named as the reason, not only the time.
func TestPublishWhileTheClusterIsGone(t *testing.T) {
	t.Parallel()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := kafka.New(c.ListenAddrs(), kafka.Config{}).Publisher(kafka.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), "orders", messages("a")...); err != nil {
		t.Fatal(err)
	}
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err = p.Publish(ctx, "orders", messages("b")...)
	if !errors.Is(err, longshore.CodeUnreachable) || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "may have been sent") {
		t.Errorf("%v", err)
	}
	_ = p.Close(ctx)
}

// A place that cannot be is found at the start, and not when the first record
// should go there.
func TestDeadLetterTopicThatCannotBeFailsTheStart(t *testing.T) {
	src := kafka.New([]string{"127.0.0.1:9"}, kafka.Config{}).Group("g", []string{"orders"}, kafka.GroupConfig{})
	_, err := src.Open(t.Context(), transport.OpenOptions{DeadLetter: "orders dead"})
	if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), `DeadLetter.To "orders dead"`) {
		t.Errorf("%v", err)
	}
}
