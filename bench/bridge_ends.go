package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/sqs"
)

// handMessage is what a loop written by hand carries over.
type handMessage struct {
	key, id string
	body    []byte
}

// bridgeEnd is a fresh queue or topic, as Longshore and as a loop written by hand use it.
type bridgeEnd interface {
	source() transport.Source
	// read receives n messages; settle is called once the target has confirmed one.
	read(n int, each func(m handMessage, settle func() error)) error
	// writer publishes; done is called with each outcome.
	writer() (send func(m handMessage, done func(error)), stop func(), err error)
	remove() error
}

var bridgeNames atomic.Int64

func bridgeName() string {
	return fmt.Sprintf("longshore-bench-%d-%d", time.Now().UnixNano(), bridgeNames.Add(1))
}

// fillEnd publishes n messages of 1,000 keys.
func fillEnd(e bridgeEnd, n, size int) (err error) {
	out, ok := e.source().(transport.Outlet)
	if !ok {
		return errors.New("no publisher")
	}
	ctx := context.Background()
	pub, self, err := out.Publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pub.Close(ctx)) }()
	body := []byte(strings.Repeat("x", size))
	for sent := 0; sent < n; {
		var batch []*longshore.Message
		for ; sent < n && len(batch) < 500; sent++ {
			batch = append(batch, &longshore.Message{ID: strconv.Itoa(sent), Key: fmt.Appendf(nil, "key-%d", sent%bridgeKeys), Body: body, DeliveryMode: amqp091.Persistent})
		}
		if err := pub.Publish(ctx, self, batch...); err != nil {
			return err
		}
	}
	return nil
}

// rabbitEnd is a durable classic queue.
type rabbitEnd struct {
	url, queue string
	conn       *amqp091.Connection // of the loop
}

func newRabbitEnd() (bridgeEnd, error) {
	e := &rabbitEnd{url: os.Getenv("AMQP_URL"), queue: bridgeName()}
	var err error
	if e.conn, err = amqp091.Dial(e.url); err != nil {
		return nil, err
	}
	ch, err := e.conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(e.queue, true, false, false, false, nil)
	}
	return e, err
}

func (e *rabbitEnd) source() transport.Source {
	return amqp.New(e.url, amqp.Config{}).Queue(e.queue, amqp.QueueConfig{})
}

func (e *rabbitEnd) read(n int, each func(m handMessage, settle func() error)) error {
	ch, err := e.conn.Channel()
	if err == nil {
		err = ch.Qos(bridgeWindow, 0, false)
	}
	if err != nil {
		return err
	}
	in, err := ch.Consume(e.queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for range n {
		d, ok := <-in
		if !ok {
			return errors.New("the consumer ended")
		}
		key, _ := d.Headers["key"].(string)
		each(handMessage{key, d.MessageId, d.Body}, func() error { return d.Ack(false) })
	}
	return nil
}

func (e *rabbitEnd) writer() (send func(m handMessage, done func(error)), stop func(), err error) {
	ch, err := e.conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, nil, err
	}
	type sent struct {
		c    *amqp091.DeferredConfirmation
		done func(error)
	}
	open := make(chan sent, bridgeWindow)
	var ending sync.WaitGroup
	ending.Go(func() {
		for s := range open {
			var err error
			if !s.c.Wait() {
				err = errors.New("not confirmed")
			}
			s.done(err)
		}
	})
	return func(m handMessage, done func(error)) {
		c, err := ch.PublishWithDeferredConfirm("", e.queue, true, false, amqp091.Publishing{Body: m.body, MessageId: m.id, DeliveryMode: amqp091.Persistent, Headers: amqp091.Table{"key": m.key}})
		if err != nil {
			done(err)
			return
		}
		open <- sent{c, done}
	}, func() { close(open); ending.Wait() }, nil
}

// count is how many messages are ready.
func (e *rabbitEnd) count() (int, error) {
	ch, err := e.conn.Channel()
	if err != nil {
		return 0, err
	}
	defer func() { _ = ch.Close() }() // the connection is closed anyway
	q, err := ch.QueueDeclarePassive(e.queue, true, false, false, false, nil)
	return q.Messages, err
}

func (e *rabbitEnd) remove() error {
	ch, err := e.conn.Channel()
	if err == nil {
		_, err = ch.QueueDelete(e.queue, false, false, false)
	}
	return errors.Join(err, e.conn.Close())
}

// kafkaEnd is a topic of four partitions.
type kafkaEnd struct {
	addrs  []string
	topic  string
	groups []string
}

func newKafkaEnd() (bridgeEnd, error) {
	e := &kafkaEnd{addrs: strings.Split(os.Getenv("KAFKA_ADDRS"), ","), topic: bridgeName()}
	return e, e.admin(func(adm *kadm.Client) error {
		_, err := adm.CreateTopic(context.Background(), 4, 1, nil, e.topic)
		return err
	})
}

func (e *kafkaEnd) admin(do func(*kadm.Client) error) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.addrs...))
	if err != nil {
		return err
	}
	defer cl.Close()
	return do(kadm.NewClient(cl))
}

func (e *kafkaEnd) group() string {
	e.groups = append(e.groups, bridgeName())
	return e.groups[len(e.groups)-1]
}

func (e *kafkaEnd) source() transport.Source {
	return kafka.New(e.addrs, kafka.Config{}).Group(e.group(), []string{e.topic}, kafka.GroupConfig{})
}

// read commits after each poll what the target has confirmed.
func (e *kafkaEnd) read(n int, each func(m handMessage, settle func() error)) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.addrs...), kgo.ConsumeTopics(e.topic), kgo.ConsumerGroup(e.group()), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for done := 0; done < n; {
		records := cl.PollRecords(context.Background(), 10_000).Records()
		var open sync.WaitGroup
		open.Add(len(records))
		for _, r := range records {
			each(handMessage{string(r.Key), fmt.Sprint(r.Partition, "-", r.Offset), r.Value}, func() error { open.Done(); return nil })
		}
		open.Wait()
		if err := cl.CommitRecords(context.Background(), records...); err != nil {
			return err
		}
		done += len(records)
	}
	return nil
}

func (e *kafkaEnd) writer() (send func(m handMessage, done func(error)), stop func(), err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(e.addrs...), kgo.DefaultProduceTopic(e.topic))
	if err != nil {
		return nil, nil, err
	}
	return func(m handMessage, done func(error)) {
		cl.Produce(context.Background(), &kgo.Record{Key: []byte(m.key), Value: m.body, Headers: []kgo.RecordHeader{{Key: "id", Value: []byte(m.id)}}}, func(_ *kgo.Record, err error) { done(err) })
	}, cl.Close, nil
}

func (e *kafkaEnd) remove() error {
	return e.admin(func(adm *kadm.Client) error {
		_, err := adm.DeleteTopics(context.Background(), e.topic)
		_, gerr := adm.DeleteGroups(context.Background(), e.groups...)
		return errors.Join(err, gerr)
	})
}

// queueEnd is a standard queue of SQS.
type queueEnd struct {
	end       *sqsEnd
	name, url string
	broker    *sqs.Broker
	calls     *tally // of the broker
}

func newQueueEnd() (bridgeEnd, error) {
	e := &queueEnd{end: newSQSEnd("ElasticMQ", os.Getenv("SQS_ENDPOINT"))}
	e.broker, e.calls = e.end.broker()
	var err error
	e.name, e.url, err = e.end.created(context.Background(), false)
	return e, err
}

func (e *queueEnd) source() transport.Source { return e.broker.Queue(e.name, sqs.QueueConfig{}) }

// read receives and deletes by ten, with four receivers.
func (e *queueEnd) read(n int, each func(m handMessage, settle func() error)) error {
	ctx := context.Background()
	var mu sync.Mutex
	var receipts []types.DeleteMessageBatchRequestEntry
	errs := make([]error, 4)
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for left.Load() > 0 && errs[w] == nil {
				out, err := e.end.client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{QueueUrl: &e.url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
				if errs[w] = err; err != nil {
					return
				}
				left.Add(-int64(len(out.Messages)))
				for _, m := range out.Messages {
					each(handMessage{"", *m.MessageId, []byte(*m.Body)}, func() error {
						mu.Lock()
						receipts = append(receipts, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(len(receipts))), ReceiptHandle: m.ReceiptHandle})
						batch := receipts
						if len(batch) == 10 {
							receipts = nil
						}
						mu.Unlock()
						if len(batch) < 10 {
							return nil
						}
						_, err := e.end.client.DeleteMessageBatch(ctx, &awssqs.DeleteMessageBatchInput{QueueUrl: &e.url, Entries: batch})
						return err
					})
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// writer sends by ten.
func (e *queueEnd) writer() (send func(m handMessage, done func(error)), stop func(), err error) {
	var mu sync.Mutex
	var batch []types.SendMessageBatchRequestEntry
	var dones []func(error)
	var wg sync.WaitGroup
	return func(m handMessage, done func(error)) {
		mu.Lock()
		defer mu.Unlock()
		batch = append(batch, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(len(batch))), MessageBody: aws.String(string(m.body)),
			MessageAttributes: map[string]types.MessageAttributeValue{"id": {DataType: aws.String("String"), StringValue: aws.String(m.id)}}})
		dones = append(dones, done)
		if len(batch) < 10 {
			return
		}
		full, told := batch, dones
		batch, dones = nil, nil
		wg.Go(func() {
			err := e.end.send(context.Background(), e.url, full)
			for _, done := range told {
				done(err)
			}
		})
	}, wg.Wait, nil
}

func (e *queueEnd) remove() error { return e.end.remove(e.url) }
