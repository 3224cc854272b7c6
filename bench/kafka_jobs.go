package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	wkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// kafkaJob is n records of a topic to be handled.
type kafkaJob struct {
	t         *kafkaTopic
	n         int
	workers   int // raw: 0 = in the loop itself
	work      time.Duration
	unordered bool
	wrap      bool // raw: make a Delivery of each record
}

// counter measures from the first record to the last: joining a group takes
// seconds and says nothing.
type counter struct {
	n     int64
	seen  atomic.Int64
	watch stopwatch
	took  sample
	done  chan struct{}
}

func newCounter(n int) *counter {
	return &counter{n: int64(n), done: make(chan struct{}), watch: startWatch()}
}

// begin is called before each record is handled, end behind it.
func (c *counter) begin() {
	if c.seen.Load() == 0 && c.seen.CompareAndSwap(0, 1) {
		c.watch.cpu, c.watch.begin = processCPU(), time.Now()
	}
}

func (c *counter) end() {
	if c.seen.Add(1) == c.n+1 {
		c.took = c.watch.stop(int(c.n))
		close(c.done)
	}
}

func (j kafkaJob) handle(c *counter) {
	c.begin()
	if j.work > 0 {
		time.Sleep(j.work) //nolint:forbidigo // the handler's work
	}
	c.end()
}

func (j kafkaJob) raw() (sample, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(j.t.k.addrs...), kgo.ConsumerGroup(j.t.group()), kgo.ConsumeTopics(j.t.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return sample{}, err
	}
	defer cl.CloseAllowingRebalance()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCounter(j.n)
	in := make(chan *kgo.Record, j.workers)
	var wg sync.WaitGroup
	for range j.workers {
		wg.Go(func() {
			for range in {
				j.handle(c)
			}
		})
	}
	go func() {
		<-c.done
		cancel()
	}()
	for ctx.Err() == nil {
		fs := cl.PollRecords(ctx, 500)
		if j.wrap {
			wrapped(ctx, fs.Records())
		}
		fs.EachRecord(func(r *kgo.Record) {
			if j.workers == 0 {
				j.handle(c)
			} else {
				in <- r
			}
		})
	}
	close(in)
	wg.Wait()
	return c.took, nil
}

// wrapped is what no transport can do without: the contract has a Delivery for each
// record, which is never used again.
func wrapped(ctx context.Context, rs []*kgo.Record) {
	for part := range slices.Chunk(rs, 32) {
		ds := longshore.NewDeliveries(ctx, nil, 0, len(part))
		for i, r := range part {
			d := &ds[i]
			d.Key, d.Body, d.Timestamp = r.Key, r.Value, r.Timestamp
			d.Origin.Topic, d.Origin.Partition, d.Origin.Position = r.Topic, r.Partition, uint64(r.Offset) //nolint:gosec // not negative
			d.SetNative(r)
		}
	}
}

func (j kafkaJob) source(group string) transport.Source {
	return kafka.New(j.t.k.addrs, kafka.Config{}).Group(group, []string{j.t.name}, kafka.GroupConfig{})
}

func (j kafkaJob) longshore() (sample, error) {
	order := container.Order(container.ByKey)
	if j.unordered {
		order = container.Unordered
	}
	c := newCounter(j.n)
	group := j.t.group()
	lc, err := container.New(j.source(group), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		j.handle(c)
		return nil
	}), container.Config{Workers: container.Workers{Min: j.workers, Max: j.workers}, Order: order,
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	if err := lc.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-c.done
	if err := lc.Stop(context.Background()); err != nil {
		return sample{}, err
	}
	return c.took, j.t.committed(group, j.n)
}

// receive is the transport without a container.
func (j kafkaJob) receive() (sample, error) {
	ctx := context.Background()
	c := newCounter(j.n)
	group := j.t.group()
	m, err := j.source(group).Open(ctx, transport.OpenOptions{Window: 500})
	if err != nil {
		return sample{}, err
	}
	for left := j.n; left > 0; {
		ds, err := m.Receive(ctx, 500)
		if err != nil {
			return sample{}, err
		}
		for _, d := range ds {
			j.handle(c)
			if err := d.Ack(ctx); err != nil {
				return sample{}, err
			}
		}
		left -= len(ds)
	}
	if err := m.Close(ctx); err != nil {
		return sample{}, err
	}
	return c.took, j.t.committed(group, j.n)
}

// watermill is its subscriber with its own defaults, from the oldest record on.
func (j kafkaJob) watermill() (sample, error) {
	cfg := wkafka.DefaultSaramaSubscriberConfig()
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	sub, err := wkafka.NewSubscriber(wkafka.SubscriberConfig{Brokers: j.t.k.addrs, Unmarshaler: wkafka.DefaultMarshaler{},
		OverwriteSaramaConfig: cfg, ConsumerGroup: j.t.group()}, watermill.NopLogger{})
	if err != nil {
		return sample{}, err
	}
	c := newCounter(j.n)
	in, err := sub.Subscribe(context.Background(), j.t.name)
	if err != nil {
		return sample{}, err
	}
	for range j.n {
		m := <-in
		j.handle(c)
		m.Ack()
	}
	return c.took, sub.Close()
}
