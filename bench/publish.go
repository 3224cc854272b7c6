package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// publishCases compare publishers with confirmed publishing by the client alone, with the same
// window: at most publishWindow messages are unconfirmed. The hand-written side writes no
// identity, no envelope and no mandatory flag, and knows nothing of returned messages.
func publishCases() []benchCase {
	return []benchCase{
		{"publish/rabbit", "AMQP_URL", publishRabbit},
		{"publish/kafka", "KAFKA_ADDRS", kafkaGiven.run(publishKafka)},
		{"publish/sqs", "", onSQS(publishSQS)},
	}
}

const (
	publishWindow = 250
	publishBody   = 256
	sqsSenders    = publishWindow / 10 // batches of ten at once
)

// published makes the messages of a run, before it is timed.
func published(n int) []*longshore.Message {
	body := make([]byte, publishBody)
	ms := make([]*longshore.Message, n)
	for i := range ms {
		ms[i] = &longshore.Message{Key: fmt.Appendf(nil, "key-%d", i%hotKeys), Body: body}
	}
	return ms
}

// inBatches publishes with one call for each window.
func inBatches(p transport.Publisher, to string, n int) (sample, error) {
	ms := published(n)
	w := startWatch()
	for part := range slices.Chunk(ms, publishWindow) {
		if err := p.Publish(context.Background(), to, part...); err != nil {
			return sample{}, err
		}
	}
	s := w.stop(n)
	return s, p.Close(context.Background())
}

// oneByOne publishes single messages from as many goroutines as the window has places; on SQS,
// where each is a call of its own, from as many as the hand-written side has connections.
func oneByOne(goroutines int) func(p transport.Publisher, to string, n int) (sample, error) {
	return func(p transport.Publisher, to string, n int) (sample, error) { return alone(p, to, n, goroutines) }
}

func alone(p transport.Publisher, to string, n, goroutines int) (sample, error) {
	ms := published(n)
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, goroutines)
	w := startWatch()
	for g := range goroutines {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[g] == nil; i = next.Add(1) - 1 {
				errs[g] = p.Publish(context.Background(), to, ms[i])
			}
		})
	}
	wg.Wait()
	s := w.stop(n)
	return s, errors.Join(append(errs, p.Close(context.Background()))...)
}

// comparePublishers runs the three ways and judges the better of ours by the raw one.
func comparePublishers(o options, r *report, name string, goroutines int, raw, batches, single func() (sample, error)) error {
	vs := []variant{
		{"by the client alone", raw},
		{fmt.Sprintf("longshore, calls of %d", publishWindow), batches},
		{fmt.Sprintf("longshore, %d goroutines, one message a call", goroutines), single},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	rabbitTable(r, fmt.Sprintf("Publish to %s, %d bytes, at most %d unconfirmed", name, publishBody, publishWindow), vs, ss)
	for i := range vs[1:] {
		ratio := median(ratios(ss[i+1], ss[0], sample.rate))
		r.bar("publish to "+name+": "+vs[i+1].name, fmt.Sprintf("%.2f × raw", ratio), "≥ 0.95 ×", ratio >= 0.95)
	}
	return nil
}

func publishRabbit(o options, r *report) error {
	url, n := os.Getenv("AMQP_URL"), o.count(40_000)
	fresh := func(f func() (sample, error)) func() (sample, error) {
		return onQueue(url, func(*amqp091.Channel) error { return nil }, f)
	}
	ours := func(f func(transport.Publisher, string, int) (sample, error)) func() (sample, error) {
		return fresh(func() (sample, error) {
			p, err := amqp.New(url, amqp.Config{}).Publisher(amqp.PublisherConfig{})
			if err != nil {
				return sample{}, err
			}
			return f(p, bridgeQueue, n)
		})
	}
	return comparePublishers(o, r, "RabbitMQ", publishWindow, fresh(func() (sample, error) { return rawRabbit(url, n) }), ours(inBatches), ours(oneByOne(publishWindow)))
}

// rawRabbit publishes persistent messages and waits for the oldest confirmation when the
// window is full.
func rawRabbit(url string, n int) (sample, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = conn.Close() }() // everything is confirmed
	ch, err := conn.Channel()
	if err != nil {
		return sample{}, err
	}
	if err := ch.Confirm(false); err != nil {
		return sample{}, err
	}
	body := make([]byte, publishBody)
	w := startWatch()
	open := make([]*amqp091.DeferredConfirmation, 0, n)
	for i := range n {
		if i >= publishWindow {
			open[i-publishWindow].Wait()
		}
		c, err := ch.PublishWithDeferredConfirmWithContext(context.Background(), "", bridgeQueue, false, false,
			amqp091.Publishing{Body: body, DeliveryMode: amqp091.Persistent, MessageId: strconv.Itoa(i)})
		if err != nil {
			return sample{}, err
		}
		open = append(open, c)
	}
	for _, c := range open[max(0, n-publishWindow):] {
		c.Wait()
	}
	return w.stop(n), nil
}

func publishKafka(k *kafkaBroker, o options, r *report) error {
	n := o.count(200_000)
	t, err := k.created(8)
	if err != nil {
		return err
	}
	ours := func(f func(transport.Publisher, string, int) (sample, error)) func() (sample, error) {
		return func() (sample, error) {
			p, err := kafka.New(k.addrs, kafka.Config{}).Publisher(kafka.PublisherConfig{})
			if err != nil {
				return sample{}, err
			}
			return f(p, t.name, n)
		}
	}
	return comparePublishers(o, r, "Kafka", publishWindow, func() (sample, error) { return t.rawPublish(n) }, ours(inBatches), ours(oneByOne(publishWindow)))
}

// rawPublish produces idempotently, a window at a time.
func (t *kafkaTopic) rawPublish(n int) (sample, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(t.k.addrs...), kgo.DefaultProduceTopic(t.name), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return sample{}, err
	}
	defer cl.Close()
	body := make([]byte, publishBody)
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = &kgo.Record{Key: fmt.Appendf(nil, "key-%d", i%hotKeys), Value: body}
	}
	w := startWatch()
	for part := range slices.Chunk(recs, publishWindow) {
		if err := cl.ProduceSync(context.Background(), part...).FirstErr(); err != nil {
			return sample{}, err
		}
	}
	return w.stop(n), nil
}

func publishSQS(ends []*sqsEnd, o options, r *report) error {
	n := o.count(20_000)
	for _, e := range ends {
		on := func(f func(name, url string) (sample, error)) func() (sample, error) {
			return func() (sample, error) {
				name, url, err := e.created(context.Background(), false)
				if err != nil {
					return sample{}, err
				}
				s, err := f(name, url)
				return s, errors.Join(err, e.remove(url))
			}
		}
		ours := func(f func(transport.Publisher, string, int) (sample, error)) func() (sample, error) {
			return on(func(name, _ string) (sample, error) {
				b, t := e.broker()
				defer t.close()
				p, err := b.Publisher(sqs.PublisherConfig{})
				if err != nil {
					return sample{}, err
				}
				return f(p, name, n)
			})
		}
		raw := on(func(_, url string) (sample, error) { return e.rawPublish(url, n) })
		if err := comparePublishers(o, r, e.name, sqsSenders, raw, ours(inBatches), ours(oneByOne(sqsSenders))); err != nil {
			return err
		}
	}
	return nil
}

// rawPublish sends full batches, as many at once as the window allows.
func (e *sqsEnd) rawPublish(url string, n int) (sample, error) {
	client, t := e.newClient()
	defer t.close()
	body := fmt.Sprintf("%0*d", publishBody, 0)
	var next atomic.Int64
	errs := make([]error, sqsSenders)
	var wg sync.WaitGroup
	w := startWatch()
	for g := range sqsSenders {
		wg.Go(func() {
			for i := int(next.Add(10)) - 10; i < n && errs[g] == nil; i = int(next.Add(10)) - 10 {
				var batch []types.SendMessageBatchRequestEntry
				for k := range min(10, n-i) {
					id := strconv.Itoa(k)
					batch = append(batch, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body})
				}
				var out *awssqs.SendMessageBatchOutput
				if out, errs[g] = client.SendMessageBatch(context.Background(), &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: batch}); errs[g] == nil && len(out.Failed) > 0 {
					errs[g] = fmt.Errorf("%d messages of a batch were refused", len(out.Failed))
				}
			}
		})
	}
	wg.Wait()
	return w.stop(n), errors.Join(errs...)
}
