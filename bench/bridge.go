package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

// bridgeCases compare routes with loops written by hand: consume, publish with at most
// bridgeWindow unconfirmed messages, and settle each after its confirmation. The loops keep no
// order by key where a publish fails, no ledger and no identities. 1 KiB, 1,000 keys; the route
// writes its ledger, and both have the same window.
func bridgeCases() []benchCase {
	return []benchCase{
		{"bridge/rabbit-kafka", "AMQP_URL", kafkaGiven.run(rabbitToKafka)},
		{"bridge/kafka-rabbit", "AMQP_URL", kafkaGiven.run(kafkaToRabbit)},
	}
}

const (
	bridgeWindow = 256
	bridgeKeys   = 1000
	bridgeQueue  = "longshore-bench-bridge"
)

func rabbitToKafka(k *kafkaBroker, o options, r *report) error {
	url, n := os.Getenv("AMQP_URL"), o.count(20_000)
	t, err := k.created(4)
	if err != nil {
		return err
	}
	fill := func(f func() (sample, error)) func() (sample, error) {
		return onQueue(url, func(ch *amqp091.Channel) error { return fillBridge(ch, n) }, f)
	}
	vs := []variant{
		{"hand-written loop, window 256", fill(func() (sample, error) { return handRabbitKafka(url, k.addrs, t.name, n) })},
		{"longshore bridge, 256 workers, ledger", fill(func() (sample, error) {
			return route(n, amqp.New(url, amqp.Config{}).Queue(bridgeQueue, amqp.QueueConfig{Key: "key"}), kafka.New(k.addrs, kafka.Config{}).Group("bench", []string{t.name}, kafka.GroupConfig{}))
		})},
	}
	return compareRoutes(o, r, "RabbitMQ to Kafka", vs)
}

func kafkaToRabbit(k *kafkaBroker, o options, r *report) error {
	url, n := os.Getenv("AMQP_URL"), o.count(20_000)
	t, err := k.created(4)
	if err != nil {
		return err
	}
	body := make([]byte, 1024)
	if err := t.fill(n, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "key-%d", i%bridgeKeys), Value: body, Partition: int32(i % 4)} //nolint:gosec // few
	}); err != nil {
		return err
	}
	group := func() string {
		name := fmt.Sprintf("longshore-bench-%d", time.Now().UnixNano())
		k.groups = append(k.groups, name)
		return name
	}
	empty := func(f func() (sample, error)) func() (sample, error) {
		return onQueue(url, func(*amqp091.Channel) error { return nil }, f)
	}
	vs := []variant{
		{"hand-written loop, window 256", empty(func() (sample, error) { return handKafkaRabbit(url, k.addrs, t.name, group(), n) })},
		{"longshore bridge, 256 workers, ledger", empty(func() (sample, error) {
			return route(n, kafka.New(k.addrs, kafka.Config{}).Group(group(), []string{t.name}, kafka.GroupConfig{}), amqp.New(url, amqp.Config{}).Queue(bridgeQueue, amqp.QueueConfig{}))
		})},
	}
	return compareRoutes(o, r, "Kafka to RabbitMQ", vs)
}

func compareRoutes(o options, r *report, name string, vs []variant) error {
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	rabbitTable(r, name+", 1 KiB, "+fmt.Sprint(bridgeKeys)+" keys", vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar("bridge "+name, fmt.Sprintf("%.2f × hand-written", ratio), "≥ 0.9 ×", ratio >= 0.9)
	return nil
}

// onQueue runs f with a fresh queue.
func onQueue(url string, prepare func(ch *amqp091.Channel) error, f func() (sample, error)) func() (sample, error) {
	return func() (s sample, err error) {
		conn, err := amqp091.Dial(url)
		if err != nil {
			return s, err
		}
		defer func() { _ = conn.Close() }() // the queue is deleted before
		ch, err := conn.Channel()
		if err != nil {
			return s, err
		}
		if _, err := ch.QueueDeclare(bridgeQueue, true, false, false, false, nil); err != nil {
			return s, err
		}
		if err = prepare(ch); err == nil {
			s, err = f()
		}
		_, derr := ch.QueueDelete(bridgeQueue, false, false, false)
		return s, errors.Join(err, derr)
	}
}

func fillBridge(ch *amqp091.Channel, n int) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	body := make([]byte, 1024)
	for sent := 0; sent < n; {
		var batch []*amqp091.DeferredConfirmation
		for ; sent < n && len(batch) < bridgeWindow; sent++ {
			c, err := ch.PublishWithDeferredConfirm("", bridgeQueue, true, false, amqp091.Publishing{Body: body, MessageId: fmt.Sprint(sent), DeliveryMode: amqp091.Persistent,
				Headers: amqp091.Table{"key": fmt.Sprintf("key-%d", sent%bridgeKeys)}})
			if err != nil {
				return err
			}
			batch = append(batch, c)
		}
		for _, c := range batch {
			c.Wait()
		}
	}
	return nil
}

// handRabbitKafka consumes, produces and acks each delivery when its record is confirmed.
func handRabbitKafka(url string, addrs []string, topic string, n int) (s sample, err error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ch, err := conn.Channel()
	if err != nil {
		return s, err
	}
	if err := ch.Qos(bridgeWindow, 0, false); err != nil {
		return s, err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return s, err
	}
	defer cl.Close()
	w := startWatch()
	in, err := ch.Consume(bridgeQueue, "", false, false, false, false, nil)
	if err != nil {
		return s, err
	}
	var failed atomic.Pointer[error]
	var open sync.WaitGroup
	for range n {
		d, ok := <-in
		if !ok {
			return s, errors.New("the consumer ended")
		}
		key, _ := d.Headers["key"].(string)
		open.Add(1)
		cl.Produce(context.Background(), &kgo.Record{Key: []byte(key), Value: d.Body, Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(d.MessageId)}}}, func(_ *kgo.Record, err error) {
			defer open.Done()
			if err == nil {
				err = d.Ack(false)
			}
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	open.Wait()
	if e := failed.Load(); e != nil {
		return s, *e
	}
	return w.stop(n), nil
}

// handKafkaRabbit polls, publishes with confirms, and commits what was confirmed after each poll.
func handKafkaRabbit(url string, addrs []string, topic, group string, n int) (s sample, err error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ch, err := conn.Channel()
	if err != nil {
		return s, err
	}
	if err := ch.Confirm(false); err != nil {
		return s, err
	}
	w := startWatch()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return s, err
	}
	defer cl.Close()
	for done := 0; done < n; {
		records := cl.PollRecords(context.Background(), 10_000).Records()
		var open []*amqp091.DeferredConfirmation
		for _, rec := range records {
			if len(open) == bridgeWindow { // the oldest first, as they are confirmed
				open[0].Wait()
				open = open[1:]
			}
			c, err := ch.PublishWithDeferredConfirm("", bridgeQueue, true, false, amqp091.Publishing{Body: rec.Value, DeliveryMode: amqp091.Persistent,
				Headers: amqp091.Table{"key": rec.Key}, MessageId: fmt.Sprint(rec.Partition, "-", rec.Offset)})
			if err != nil {
				return s, err
			}
			open = append(open, c)
		}
		for _, c := range open {
			c.Wait()
		}
		if err := cl.CommitRecords(context.Background(), records...); err != nil {
			return s, err
		}
		done += len(records)
	}
	return w.stop(n), nil
}

// route runs a bridge until it has forwarded n messages.
func route(n int, from, to transport.Source) (s sample, err error) {
	dir, err := os.MkdirTemp("", "longshore-bench-ledger-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ledger, err := bridge.OpenLedger(dir)
	if err != nil {
		return s, err
	}
	w := startWatch()
	r, err := bridge.New(bridge.Config{Name: "bench", From: from, To: to, Ledger: ledger,
		Container: container.Config{Workers: container.Workers{Min: bridgeWindow, Max: bridgeWindow}, Logger: zap.NewNop()}})
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := r.Start(ctx); err != nil {
		return s, err
	}
	for r.Stats().Forwarded < int64(n) && ctx.Err() == nil {
		<-time.After(time.Millisecond)
	}
	s = w.stop(n)
	return s, errors.Join(ctx.Err(), r.Stop(context.Background()), ledger.Close())
}
