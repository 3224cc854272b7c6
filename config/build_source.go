package config

import (
	"math"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/urls"
)

// sources makes sources of the sections that describe them, and what the bridge needs near
// them.
type sources struct {
	sections map[string]*brokerSection // the brokers as the file says
	brokers  map[string]broker         // the same, made
	memory   *memory.Broker            // of mem:// URLs, the same for all containers
	on       *surroundings             // what paths in the file are relative to
}

// source makes the source of a section.
func (o *sources) source(s *sourceSection) (transport.Source, error) {
	if s.URL != "" {
		return urls.Options{Memory: o.memory, Password: s.Password.Secret}.Source(s.URL)
	}
	switch b := o.brokers[s.Broker]; {
	case b.rabbit != nil && s.Broadcast:
		q := s.rabbit()
		return b.rabbit.Broadcast(s.Exchange, amqp.BroadcastConfig{Kind: amqp.ExchangeKind(s.Kind), Keys: s.Keys, Prefetch: q.Prefetch,
			SettleLinger: q.SettleLinger, AutoAck: q.AutoAck, Key: q.Key}), nil
	case b.rabbit != nil && len(s.Queues) > 0:
		return b.rabbit.Queues(s.rabbit(), s.Queues...), nil
	case b.rabbit != nil:
		return b.rabbit.Queue(s.Queue, s.rabbit()), nil
	case b.kafka != nil && s.Broadcast:
		g := s.group()
		return b.kafka.Broadcast(s.Topics, kafka.BroadcastConfig{Start: g.Start, OutOfRange: g.OutOfRange, Isolation: g.Isolation, Window: g.Window, OversizedBatch: g.OversizedBatch, Declare: g.Declare}), nil
	case b.kafka != nil && s.Share != "":
		g := s.group()
		return b.kafka.ShareGroup(s.Share, s.Topics, kafka.ShareConfig{Start: g.Start, Isolation: g.Isolation, SettleLinger: g.SettleLinger, Declare: g.Declare}), nil
	case b.kafka != nil:
		return b.kafka.Group(s.Group, s.Topics, s.group()), nil
	case b.sqs != nil:
		return b.sqs.Queue(s.Queue, s.sqs()), nil
	case b.memory != nil:
		return b.memory.Queue(s.Queue, memory.QueueConfig{DeadLetter: s.DeadLetter, FIFO: s.FIFO, Partitions: s.Partitions, Prefetch: s.Prefetch, SingleActive: s.SingleActive}), nil
	}
	return nil, nil // the broker's own problem was reported
}

// rabbit takes from a section what RabbitMQ knows. Fields of other brokers were reported before.
func (s *sourceSection) rabbit() amqp.QueueConfig {
	cfg := amqp.QueueConfig{Prefetch: s.Prefetch, SettleLinger: s.SettleLinger, Exclusive: s.Exclusive, SingleActive: s.SingleActive,
		Priority: s.Priority, Tag: s.Tag, Arguments: amqp091.Table(s.Arguments), AutoAck: s.AutoAck, Pull: s.Pull, PullInterval: s.PullInterval,
		Key: s.keyHeader(), DeadLettered: s.DeadLettered, BrowseCounts: s.BrowseCounts}
	if s.Consumers == "per_worker" {
		cfg.Consumers = amqp.PerWorker
	}
	if d := s.Declare; d != nil {
		cfg.Declare = amqp.Declare{Type: amqp.QueueType(d.Type), Arguments: amqp091.Table(d.Arguments), Transient: d.Transient, AutoDelete: d.AutoDelete}
		for _, b := range d.Bindings {
			cfg.Declare.Bindings = append(cfg.Declare.Bindings, amqp.Binding{Exchange: b.Exchange, Key: b.Key, Kind: amqp.ExchangeKind(b.Kind), Arguments: amqp091.Table(b.Arguments), ExchangeArguments: amqp091.Table(b.ExchangeArguments)})
		}
	}
	return cfg
}

// group takes from a section what Kafka knows.
func (s *sourceSection) group() kafka.GroupConfig {
	cfg := kafka.GroupConfig{Start: s.Start.at(), InstanceID: s.InstanceID, Pattern: s.Pattern, Window: s.Window, SettleLinger: s.SettleLinger,
		RebalanceDrain: s.RebalanceDrain, RebalanceTimeout: s.RebalanceTimeout, SessionTimeout: s.SessionTimeout}
	cfg.Members = s.Members
	if s.Commit == "after_each" {
		cfg.Commit = kafka.AfterEach
	}
	if s.Protocol == "consumer" {
		cfg.Protocol = kafka.Consumer
	}
	if s.Isolation == "read_uncommitted" {
		cfg.Isolation = kafka.ReadUncommitted
	}
	if s.OversizedBatch == "stop" {
		cfg.OversizedBatch = kafka.StopAtBatch
	}
	if t := s.Transactional; t != nil {
		cfg.Transactional = &kafka.Transactional{ID: t.ID, Timeout: t.Timeout, Records: t.Records, MaxBytes: int64(t.MaxBytes)}
	}
	cfg.OutOfRange = map[string]kafka.OutOfRange{"latest": kafka.ToLatest, "fail": kafka.Fail}[s.OutOfRange]
	if d := s.Declare; d != nil {
		cfg.Declare = kafka.Declare{Partitions: int32(min(d.Partitions, math.MaxInt32)), //nolint:gosec // bounded
			Replicas: int16(min(d.Replicas, math.MaxInt16)), Settings: d.Settings} //nolint:gosec // bounded
	}
	return cfg
}

// sqs takes from a section what SQS knows. An empty declare is enough to create a queue, so its
// attributes are never nil.
func (s *sourceSection) sqs() sqs.QueueConfig {
	cfg := sqs.QueueConfig{VisibilityTimeout: s.VisibilityTimeout, SettleLinger: s.SettleLinger, MaxPollers: s.MaxPollers, BatchByBatch: s.BatchByBatch, Envelope: sqs.Envelope(s.Envelope), BrowseCounts: s.BrowseCounts}
	if d := s.Declare; d != nil {
		cfg.Declare = sqs.Declare{Attributes: d.Attributes, Tags: d.Tags}
		if cfg.Declare.Attributes == nil {
			cfg.Declare.Attributes = map[string]string{}
		}
	}
	return cfg
}
