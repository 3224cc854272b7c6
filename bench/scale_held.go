package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
)

// filler puts n messages of 256 bytes where the source then finds them. What it
// returns removes them.
type filler func(n int) (src transport.Source, remove func() error, err error)

// taken is what n deliveries take that a transport has handed out, without a container.
func (f filler) taken(n int) (c cost, err error) {
	ctx := context.Background()
	src, remove, err := f(n)
	if err != nil {
		return c, err
	}
	before := costNow(0)
	m, err := src.Open(ctx, transport.OpenOptions{Window: n})
	if err != nil {
		return c, errors.Join(err, remove())
	}
	ds := make([]*longshore.Delivery, 0, n)
	for err == nil && len(ds) < n {
		var got []*longshore.Delivery
		if got, err = m.Receive(ctx, n-len(ds)); err == nil {
			ds = append(ds, got...)
		}
	}
	<-time.After(time.Second)
	c = costNow(idleWatched).minus(before)
	for _, d := range ds {
		err = errors.Join(err, d.Ack(ctx))
	}
	return c, errors.Join(err, m.Flush(ctx), m.Close(ctx), remove())
}

// held is what n deliveries take in a container whose handlers do not return.
func held(n, workers int, order container.Order) (c cost, err error) {
	ctx := context.Background()
	broker, err := filled(n, n)
	if err != nil {
		return c, err
	}
	before := costNow(0)
	block := make(chan struct{})
	look := n - workers
	if look == 0 {
		look = -1
	}
	l, err := container.New(broker.Queue("bench", memory.QueueConfig{Prefetch: n}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		<-block
		return nil
	}), container.Config{Workers: container.Workers{Min: workers, Max: workers}, Lookahead: look, Order: order, MaxBytes: 1 << 30, Logger: zap.NewNop()})
	if err != nil {
		return c, err
	}
	if err := l.Start(ctx); err != nil {
		return c, err
	}
	for end := time.Now().Add(time.Minute); l.Stats().InFlight < n; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) { // who receives is a worker, and all of them hold one: the first receive has to bring all
			close(block)
			return c, errors.Join(fmt.Errorf("%d of %d are in flight after a minute", l.Stats().InFlight, n), l.Stop(ctx))
		}
	}
	<-time.After(time.Second)
	c = costNow(idleWatched).minus(before)
	close(block)
	return c, l.Stop(ctx)
}

// servers are where the deliveries come from: what is given, else embedded ones.
type scaleServers struct {
	amqpName, amqpURL string
	sqsURL            string
	kafka             *kafkaBroker
	stops             []func()
}

func (s *scaleServers) stop() {
	for _, f := range s.stops {
		f()
	}
}

func startScaleServers() (s *scaleServers, err error) {
	s = &scaleServers{amqpName: "RabbitMQ", amqpURL: os.Getenv("AMQP_URL")}
	add := func(stop func()) {
		if stop != nil {
			s.stops = append(s.stops, stop)
		}
	}
	var stop func()
	if s.amqpURL == "" {
		s.amqpName = "amqptest"
		s.amqpURL, stop, err = startServer("amqptest")
		add(stop)
	}
	if err == nil {
		s.sqsURL, stop, err = startServer("sqstest")
		add(stop)
	}
	if err == nil {
		s.kafka, stop, err = servedKafka(os.Getenv("KAFKA_ADDRS"))
		add(stop)
	}
	if err != nil {
		s.stop()
	}
	return s, err
}

func (s *scaleServers) amqp() *amqp.Broker { return amqp.New(s.amqpURL, amqp.Config{}) }

// autoDelete is a queue that goes with the container.
func autoDelete() amqp.QueueConfig {
	return amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic, Transient: true, AutoDelete: true}}
}

// scaleHeld are workers, lanes and deliveries in flight.
func scaleHeld(o options) ([]dimension, func(), error) {
	s, err := startScaleServers()
	if err != nil {
		return nil, nil, err
	}
	sizes := o.sizes(1000, 10_000, 100_000)
	const workers = 10
	return []dimension{
		{"workers whose handlers run", o.sizes(100, 1000, 10_000), func(n int) (cost, error) { return held(n, n, container.Unordered) }},
		{"deliveries, in memory, transport alone, bodies not counted", sizes, filler(fromMemory).taken},
		{"the same in a container, no order", sizes, func(n int) (cost, error) { return held(n, workers, container.Unordered) }},
		{"the same in a container by key, each in a lane of its own", sizes, func(n int) (cost, error) { return held(n, workers, container.ByKey) }},
		{"deliveries, " + s.amqpName + ", transport alone, bodies of 256 bytes", o.sizes(1000, 10_000, 60_000), filler(s.fromRabbit).taken},
		{"deliveries, " + s.kafka.name + ", 10 partitions, transport alone, bodies of 100 bytes", sizes, filler(s.fromKafka).taken},
		{"deliveries, sqstest, transport alone, bodies of 256 bytes", o.sizes(1000, 4000, 16_000), filler(s.fromSQS).taken},
	}, s.stop, nil
}

func fromMemory(n int) (transport.Source, func() error, error) {
	broker, err := filled(n, n)
	if err != nil {
		return nil, nil, err
	}
	return broker.Queue("bench", memory.QueueConfig{Prefetch: n}), func() error { return nil }, nil
}

func (s *scaleServers) fromRabbit(n int) (transport.Source, func() error, error) {
	conn, err := amqp091.Dial(s.amqpURL)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	name := fmt.Sprintf("longshore-scale-%d", time.Now().UnixNano())
	remove := func() error {
		_, err := ch.QueueDelete(name, false, false, false)
		return errors.Join(err, conn.Close())
	}
	if err := fillRabbit(ch, name, n); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return s.amqp().Queue(name, amqp.QueueConfig{Prefetch: n}), remove, nil
}

func (s *scaleServers) fromKafka(n int) (transport.Source, func() error, error) {
	t, err := s.kafka.filled(10, n)
	if err != nil {
		return nil, nil, err
	}
	return kafka.New(s.kafka.addrs, kafka.Config{}).Group(t.group(), []string{t.name}, kafka.GroupConfig{Window: min(n, 65_536)}), func() error { return nil }, nil
}

func (s *scaleServers) fromSQS(n int) (transport.Source, func() error, error) {
	ctx := context.Background()
	e := newSQSEnd("sqstest", s.sqsURL)
	name, url, err := e.created(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	if err := e.fill(ctx, url, n, 0); err != nil {
		return nil, nil, errors.Join(err, e.remove(url))
	}
	broker, _ := e.broker()
	return broker.Queue(name, sqs.QueueConfig{}), func() error { return e.remove(url) }, nil
}

// servedKafka is the cluster at the addresses; kfake in a process of its own for none.
func servedKafka(addrs string) (*kafkaBroker, func(), error) {
	stop := func() {}
	k := &kafkaBroker{name: "Kafka"}
	if addrs == "" || addrs == "kfake" {
		addr, stopIt, err := startServer("kfake")
		if err != nil {
			return nil, nil, err
		}
		k.name, addrs, stop = "kfake", addr, stopIt
	}
	k.addrs = strings.Split(addrs, ",")
	if err := k.connect(); err != nil {
		stop()
		return nil, nil, err
	}
	return k, func() {
		if err := k.clean(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		k.cl.Close()
		stop()
	}, nil
}
