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
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/amqp"
)

// rabbit compares with a hand-written loop over amqp091-go, with Watermill and with
// gocloud on one queue of one node. All sides have the same prefetch; who acks each message
// and who coalesces is in the name.
func rabbit(o options, r *report) error {
	url := os.Getenv("AMQP_URL")
	quick := []variant{
		{"hand-written loop, ack each", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return handLoop(url, n, 1, 0) })},
		{"longshore, 1 worker, ack each", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return longshoreRabbit(url, n, 1, 0, ackEach) })},
		{"longshore, 1 worker, coalesced acks", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return longshoreRabbit(url, n, 1, 0, 0) })},
		{"watermill-amqp", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return watermillRabbit(url, n, 0) })},
		{"gocloud rabbitpubsub, ack each", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return gocloudRabbit(url, n, 1, 0) })},
	}
	ss, err := interleave(o.rounds, quick)
	if err != nil {
		return err
	}
	rabbitTable(r, "RabbitMQ, no-op handler, prefetch 250", quick, ss)
	each := median(ratios(ss[1], ss[0], sample.rate))
	cpu := median(ratios(ss[1], ss[0], sample.cpuPer))
	r.bar("rabbit no-op, ack each on both sides", fmt.Sprintf("%.2f × (CPU %.2f ×)", each, cpu), "≥ 0.95 × (or within 0.15 with CPU ≤ 1.05 ×)", each >= 0.95 || (each >= 0.85 && cpu <= 1.05))
	coalesced := median(ratios(ss[2], ss[0], sample.rate))
	r.bar("rabbit no-op, coalesced against ack each", fmt.Sprintf("%.2f ×", coalesced), "≥ 1.15 ×", coalesced >= 1.15)

	slow := []variant{
		{"100 goroutines, ack each", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return handLoop(url, n, 100, 5*time.Millisecond) })},
		{"longshore, 100 workers, coalesced acks", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return longshoreRabbit(url, n, 100, 5*time.Millisecond, 0) })},
		{"gocloud rabbitpubsub, 100 goroutines, ack each", rabbitRun(url, rabbitQueue, o.count(40_000), func(n int) (sample, error) { return gocloudRabbit(url, n, 100, 5*time.Millisecond) })},
	}
	if ss, err = interleave(o.rounds, slow); err != nil {
		return err
	}
	rabbitTable(r, "RabbitMQ, 5 ms handler, 100 at once, prefetch 250", slow, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar("rabbit 5 ms, coalesced against ack each", fmt.Sprintf("%.2f ×", ratio), "≥ 1.1 ×", ratio >= 1.1)
	return nil
}

func rabbitTable(r *report, title string, vs []variant, ss [][]sample) {
	var rows [][]string
	for i, v := range vs {
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.rate), "%.0f"), spread(ratios(ss[i], ss[0], sample.rate), "%.2f"),
			fmt.Sprintf("%.1f", median(each(ss[i], sample.cpuPer))/1000), spread(ratios(ss[i], ss[0], sample.cpuPer), "%.2f")})
	}
	r.table(title, []string{"variant", "msg/s min / median / max", "ratio", "client CPU µs/msg", "ratio"}, rows)
}

const (
	rabbitQueue    = "longshore-bench"
	rabbitPrefetch = 250
	ackEach        = -1 // SettleLinger: no waiting
)

// rabbitRun fills a fresh queue, runs f and removes the queue.
func rabbitRun(url, queue string, n int, f func(n int) (sample, error)) func() (sample, error) {
	return func() (sample, error) {
		conn, err := amqp091.Dial(url)
		if err != nil {
			return sample{}, err
		}
		defer func() { _ = conn.Close() }() // the queue is deleted before
		ch, err := conn.Channel()
		if err != nil {
			return sample{}, err
		}
		if err := fillRabbit(ch, queue, n); err != nil {
			return sample{}, err
		}
		s, err := f(n)
		if _, derr := ch.QueueDelete(queue, false, false, false); err == nil {
			err = derr
		}
		return s, err
	}
}

func fillRabbit(ch *amqp091.Channel, queue string, n int) error {
	if _, err := ch.QueueDeclare(queue, false, false, false, false, nil); err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	body := make([]byte, 256)
	for sent := 0; sent < n; { // few confirms open at a time: the client walks over all of them for each
		batch := make([]*amqp091.DeferredConfirmation, 0, 250)
		for ; sent < n && len(batch) < cap(batch); sent++ {
			c, err := ch.PublishWithDeferredConfirmWithContext(context.Background(), "", queue, false, false,
				amqp091.Publishing{Body: body, MessageId: fmt.Sprint(sent)})
			if err != nil {
				return err
			}
			batch = append(batch, c)
		}
		for _, c := range batch {
			c.Wait()
		}
	}
	for { // until the broker has written all of them
		q, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		if err != nil || q.Messages == n {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}

// prefetching opens a channel with the prefetch of all sides.
func prefetching(url string) (*amqp091.Connection, *amqp091.Channel, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Qos(rabbitPrefetch, 0, false)
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, ch, nil
}

func handLoop(url string, n, workers int, work time.Duration) (sample, error) {
	conn, ch, err := prefetching(url)
	if err != nil {
		return sample{}, err
	}
	w := startWatch()
	in, err := ch.Consume(rabbitQueue, "", false, false, false, false, nil)
	if err != nil {
		return sample{}, err
	}
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for d := range in {
				if work > 0 {
					<-time.After(work)
				}
				if err := d.Ack(false); err != nil {
					return
				}
				if left.Add(-1) == 0 {
					close(done)
				}
			}
		})
	}
	<-done
	s := w.stop(n)
	err = conn.Close()
	wg.Wait()
	return s, err
}

func longshoreRabbit(url string, n, workers int, work time.Duration, linger time.Duration) (sample, error) {
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	src := amqp.New(url, amqp.Config{}).Queue(rabbitQueue, amqp.QueueConfig{Prefetch: rabbitPrefetch, SettleLinger: linger})
	c, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		if work > 0 {
			<-time.After(work)
		}
		if left.Add(-1) == 0 {
			close(done)
		}
		return nil
	}), container.Config{Workers: container.Workers{Min: workers, Max: workers}, Order: container.Unordered, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	w := startWatch()
	if err := c.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-done
	s := w.stop(n)
	return s, c.Stop(context.Background())
}

// bridgeQueue is the queue of onQueue.
const bridgeQueue = "longshore-bench-bridge"

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
