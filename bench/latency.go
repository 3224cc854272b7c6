package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/kafka"
)

// latencyCases measure the time from a publish to the handler at half of what the handlers
// can do, in one process, so that both ends have one clock. Acknowledgements wait up to the
// default linger; a delivery does not.
func latencyCases() []benchCase {
	return []benchCase{
		{"latency/rabbit", "AMQP_URL", latencyRabbit},
		{"latency/kafka", "KAFKA_ADDRS", kafkaGiven.run(latencyKafka)},
	}
}

const (
	latencyWorkers = 10
	latencyWork    = 5 * time.Millisecond // so that the workers can do 2,000/s
	latencyEvery   = time.Millisecond     // half of that
	latencyRuns    = 3_000                // messages of a run
)

// arrivals are the times from publish to handler. The first message shows that the consumer
// has its place, and counts for nothing.
type arrivals struct {
	mu    sync.Mutex
	took  []time.Duration
	warm  chan struct{} // the first message was handled
	done  chan struct{} // the last one was
	all   int
	first bool // the first one has come
}

func newArrivals(n int) *arrivals {
	return &arrivals{all: n, warm: make(chan struct{}), done: make(chan struct{})}
}

// handle notes one message, and works.
func (a *arrivals) handle(body []byte) {
	at := time.Since(time.Unix(0, int64(binary.LittleEndian.Uint64(body)))) //nolint:gosec // a time
	a.mu.Lock()
	switch {
	case !a.first:
		a.first = true
		close(a.warm)
	default:
		if a.took = append(a.took, at); len(a.took) == a.all {
			close(a.done)
		}
	}
	a.mu.Unlock()
	<-time.After(latencyWork)
}

// paced publishes the first message, and when it was handled n stamped ones, one for each
// tick.
func (a *arrivals) paced(publish func(body []byte) error) error {
	if err := publish(make([]byte, publishBody)); err != nil {
		return err
	}
	if err := within(a.warm, "the first message"); err != nil {
		return err
	}
	tick := time.NewTicker(latencyEvery)
	defer tick.Stop()
	for range a.all {
		<-tick.C
		body := make([]byte, publishBody)
		binary.LittleEndian.PutUint64(body, uint64(time.Now().UnixNano())) //nolint:gosec // a time
		if err := publish(body); err != nil {
			return err
		}
	}
	return nil
}

// finish waits for the last message and returns the percentiles.
func (a *arrivals) finish() (sample, error) {
	if err := within(a.done, "the last message"); err != nil {
		return sample{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.took)
	return sample{n: a.all, p50: a.took[a.all/2], p99: a.took[a.all*99/100]}, nil
}

// within waits for what comes within seconds if nothing is wrong.
func within(c <-chan struct{}, what string) error {
	select {
	case <-c:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s has not come within 30 s", what)
	}
}

func compareLatencies(o options, r *report, name string, vs []variant) error {
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	p50 := func(s sample) float64 { return s.p50.Seconds() * 1000 }
	p99 := func(s sample) float64 { return s.p99.Seconds() * 1000 }
	var rows [][]string
	for i, v := range vs {
		rows = append(rows, []string{v.name, spread(each(ss[i], p50), "%.2f"), spread(each(ss[i], p99), "%.2f")})
	}
	r.table(fmt.Sprintf("Latency on %s: %d workers, %v handler, a message every %v", name, latencyWorkers, latencyWork, latencyEvery),
		[]string{"variant", "p50 ms min / median / max", "p99 ms min / median / max"}, rows)
	for _, p := range []struct {
		name string
		of   func(sample) float64
	}{{"p50", p50}, {"p99", p99}} {
		over := median(differences(ss[1], ss[0], p.of))
		r.bar("latency on "+name+": "+p.name, fmt.Sprintf("raw %+.2f ms", over), "≤ raw + 0.5 ms", over <= 0.5)
	}
	return nil
}

// arrive runs a container on src while publish sends.
func arrive(src transport.Source, n int, publish func(body []byte) error) (sample, error) {
	a := newArrivals(n)
	c, err := container.New(src, longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		a.handle(d.Body)
		return nil
	}), container.Config{Workers: container.Workers{Min: latencyWorkers, Max: latencyWorkers},
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	if err := c.Start(context.Background()); err != nil {
		return sample{}, err
	}
	if err := a.paced(publish); err != nil {
		return sample{}, errors.Join(err, c.Stop(context.Background()))
	}
	s, err := a.finish()
	return s, errors.Join(err, c.Stop(context.Background()))
}

func latencyRabbit(o options, r *report) error {
	url, n := os.Getenv("AMQP_URL"), o.count(latencyRuns)
	on := func(f func(publish func([]byte) error) (sample, error)) func() (sample, error) {
		return onQueue(url, func(*amqp091.Channel) error { return nil }, func() (sample, error) {
			conn, err := amqp091.Dial(url)
			if err != nil {
				return sample{}, err
			}
			defer func() { _ = conn.Close() }() // everything was received
			ch, err := conn.Channel()
			if err != nil {
				return sample{}, err
			}
			return f(func(body []byte) error {
				return ch.PublishWithContext(context.Background(), "", bridgeQueue, false, false, amqp091.Publishing{Body: body})
			})
		})
	}
	return compareLatencies(o, r, "RabbitMQ", []variant{
		{"goroutines on the client's channel", on(func(publish func([]byte) error) (sample, error) { return rawArriveRabbit(url, n, publish) })},
		{"longshore", on(func(publish func([]byte) error) (sample, error) {
			return arrive(amqp.New(url, amqp.Config{}).Queue(bridgeQueue, amqp.QueueConfig{Prefetch: rabbitPrefetch}), n, publish)
		})},
	})
}

func rawArriveRabbit(url string, n int, publish func([]byte) error) (sample, error) {
	conn, ch, err := prefetching(url)
	if err != nil {
		return sample{}, err
	}
	in, err := ch.Consume(bridgeQueue, "", false, false, false, false, nil)
	if err != nil {
		return sample{}, err
	}
	a := newArrivals(n)
	var wg sync.WaitGroup
	for range latencyWorkers {
		wg.Go(func() {
			for d := range in {
				a.handle(d.Body)
				_ = d.Ack(false) // it fails when the connection does, and then messages are missing
			}
		})
	}
	if err := a.paced(publish); err != nil {
		return sample{}, err
	}
	s, err := a.finish()
	err = errors.Join(err, conn.Close())
	wg.Wait()
	return s, err
}

func latencyKafka(k *kafkaBroker, o options, r *report) error {
	n := o.count(latencyRuns)
	run := func(f func(t *kafkaTopic, publish func([]byte) error) (sample, error)) func() (sample, error) {
		return func() (sample, error) {
			t, err := k.created(8)
			if err != nil {
				return sample{}, err
			}
			cl, err := kgo.NewClient(kgo.SeedBrokers(k.addrs...), kgo.DefaultProduceTopic(t.name), kgo.ProducerLinger(0), kgo.UnknownTopicRetries(-1))
			if err != nil {
				return sample{}, err
			}
			defer cl.Close()
			i := 0
			return f(t, func(body []byte) error {
				i++
				cl.Produce(context.Background(), &kgo.Record{Key: fmt.Appendf(nil, "key-%d", i), Value: body}, nil)
				return nil // what is missing at the end says that one failed
			})
		}
	}
	return compareLatencies(o, r, k.name, []variant{
		{"goroutines on PollRecords", run(func(t *kafkaTopic, publish func([]byte) error) (sample, error) { return t.rawArrive(n, publish) })},
		{"longshore", run(func(t *kafkaTopic, publish func([]byte) error) (sample, error) {
			return arrive(kafka.New(k.addrs, kafka.Config{}).Group(t.group(), []string{t.name}, kafka.GroupConfig{}), n, publish)
		})},
	})
}

func (t *kafkaTopic) rawArrive(n int, publish func([]byte) error) (sample, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(t.k.addrs...), kgo.ConsumerGroup(t.group()), kgo.ConsumeTopics(t.name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return sample{}, err
	}
	defer cl.CloseAllowingRebalance()
	ctx, cancel := context.WithCancel(context.Background())
	a := newArrivals(n)
	in := make(chan *kgo.Record, rabbitPrefetch)
	var wg sync.WaitGroup
	for range latencyWorkers {
		wg.Go(func() {
			for r := range in {
				a.handle(r.Value)
			}
		})
	}
	wg.Go(func() {
		defer close(in)
		for ctx.Err() == nil {
			cl.PollRecords(ctx, rabbitPrefetch).EachRecord(func(r *kgo.Record) { in <- r })
		}
	})
	if err := a.paced(publish); err != nil {
		cancel()
		return sample{}, err
	}
	s, err := a.finish()
	cancel()
	wg.Wait()
	return s, err
}
