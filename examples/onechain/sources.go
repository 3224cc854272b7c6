package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// where are the brokers to use; the empty ones are run in this process.
type where struct {
	amqp, kafka, sqs string
	run              string // makes names unique on brokers that others use
}

// leg is one broker: where the orders come from and where the dead ones go.
type leg struct {
	name         string
	source, dead transport.Source
	deadTo       string
	stop         func() error
}

func legs(w where) ([]*leg, error) {
	var out []*leg
	for _, open := range []func(where) (*leg, error){rabbit, apache, amazon} {
		l, err := open(w)
		if err != nil {
			return nil, errors.Join(err, stopAll(out))
		}
		out = append(out, l)
	}
	return out, nil
}

func stopAll(ls []*leg) error {
	var errs []error
	for _, l := range ls {
		errs = append(errs, l.stop())
	}
	return errors.Join(errs...)
}

func none() error { return nil }

func rabbit(w where) (*leg, error) {
	l := &leg{name: "rabbitmq", stop: none, deadTo: "onechain-" + w.run + "-dead"}
	addr := w.amqp
	if addr == "" {
		server, err := amqptest.Start(amqptest.Config{})
		if err != nil {
			return nil, err
		}
		addr, l.stop = server.URL, server.Close
	}
	b := amqp.New(addr, amqp.Config{})
	declared := amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}}
	l.source, l.dead = b.Queue("onechain-"+w.run, declared), b.Queue(l.deadTo, declared)
	return l, nil
}

func apache(w where) (*leg, error) {
	l := &leg{name: "kafka", stop: none, deadTo: "onechain-" + w.run + "-dead"}
	addrs := strings.Split(w.kafka, ",")
	if w.kafka == "" {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return nil, err
		}
		addrs, l.stop = cluster.ListenAddrs(), func() error { cluster.Close(); return nil }
	}
	b := kafka.New(addrs, kafka.Config{})
	declared := kafka.GroupConfig{Declare: kafka.Declare{Partitions: 4}}
	topic := "onechain-" + w.run
	l.source, l.dead = b.Group(topic, []string{topic}, declared), b.Group(l.deadTo, []string{l.deadTo}, declared)
	return l, nil
}

func amazon(w where) (*leg, error) {
	l := &leg{name: "sqs", stop: none, deadTo: "onechain-" + w.run + "-dead.fifo"}
	cfg := sqs.Config{Endpoint: w.sqs, Region: "us-east-1", Credentials: sqs.Keys("local", transport.Static("local"), transport.Secret{})}
	if w.sqs == "" {
		server, err := sqstest.Start(sqstest.Config{CallLog: -1})
		if err != nil {
			return nil, err
		}
		cfg, l.stop = server.Config(), server.Close
	}
	b := sqs.New(cfg)
	declared := sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{}}}
	l.source, l.dead = b.Queue("onechain-"+w.run+".fifo", declared), b.Queue(l.deadTo, declared)
	return l, nil
}

// publish puts the messages where the source reads.
func publish(ctx context.Context, src transport.Source, msgs []*longshore.Message) error {
	out, ok := src.(transport.Outlet)
	if !ok {
		return fmt.Errorf("%T cannot publish", src)
	}
	pub, self, err := out.Publisher(ctx)
	if err != nil {
		return err
	}
	for _, m := range msgs { // one at a time: what is sent twice is twice in the queue
		err = errors.Join(err, pub.Publish(ctx, self, m))
	}
	return errors.Join(err, pub.Close(ctx))
}
