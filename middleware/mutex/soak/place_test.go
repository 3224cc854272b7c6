package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// What makes a killed consumer's messages come back soon.
const (
	busyDelay  = 50 * time.Millisecond
	partitions = 6

	// After how long a killed consumer's messages come back: of a SQS queue, and of a
	// Kafka group, for which 6 s is the shortest that Kafka allows by default.
	realLease  = 6 * time.Second
	shortLease = 1500 * time.Millisecond
)

// source is the queue at addr.
func (p *plan) source(addr, queue string) (transport.Source, error) {
	switch p.Broker {
	case "rabbitmq":
		return amqp.New(addr, amqp.Config{}).Queue(queue, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}), nil
	case "kafka":
		b := kafka.New(strings.Split(addr, ","), kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(p.Lease / 6)}})
		return b.Group(queue, []string{queue}, kafka.GroupConfig{SessionTimeout: p.Lease, RebalanceTimeout: p.Lease, RebalanceDrain: p.Lease / 6,
			SettleLinger: 100 * time.Millisecond, Declare: kafka.Declare{Partitions: partitions}}), nil
	case "sqs":
		cfg := sqs.Config{Endpoint: addr, Region: "us-east-1", Credentials: sqs.Keys("local", transport.Static("local"), transport.Secret{})}
		return sqs.New(cfg).Queue(queue, sqs.QueueConfig{VisibilityTimeout: p.Lease.Round(time.Second), BrowseCounts: true, Declare: sqs.Declare{Attributes: map[string]string{}}}), nil
	}
	return nil, fmt.Errorf("no broker %q", p.Broker)
}

// publisher sends to the queue.
func (p *plan) publisher(ctx context.Context) (pub transport.Publisher, dest string, err error) {
	src, err := p.source(p.Addr, p.Queue)
	if err != nil {
		return nil, "", err
	}
	out, ok := src.(transport.Outlet)
	if !ok {
		return nil, "", errors.New("the source has no publisher")
	}
	return out.Publisher(ctx)
}
