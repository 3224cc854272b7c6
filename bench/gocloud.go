package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"gocloud.dev/pubsub/rabbitpubsub"
)

// gocloudRabbit is gocloud's subscription with its own defaults but the prefetch; it
// collects acks and sends each.
func gocloudRabbit(url string, n, workers int, work time.Duration) (sample, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = conn.Close() }() // the subscription has been shut down before
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	prefetch := rabbitPrefetch
	w := startWatch()
	sub := rabbitpubsub.OpenSubscription(conn, rabbitQueue, &rabbitpubsub.SubscriptionOptions{PrefetchCount: &prefetch})
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	var failed error
	var once sync.Once
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				m, err := sub.Receive(ctx)
				if err != nil {
					once.Do(func() { failed = err; close(done) })
					return
				}
				if work > 0 {
					<-time.After(work)
				}
				m.Ack()
				if left.Add(-1) == 0 {
					once.Do(func() { close(done) })
				}
			}
		})
	}
	<-done
	s := w.stop(n)
	stop()
	wg.Wait()
	limited, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := sub.Shutdown(limited); failed == nil {
		failed = err
	}
	return s, failed
}
