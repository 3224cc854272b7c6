package main

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	wamqp "github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
)

// watermillRabbit is Watermill's subscriber with its own defaults but the
// prefetch and a transient queue; it acks each message.
func watermillRabbit(url string, n int, work time.Duration) (sample, error) {
	cfg := wamqp.NewDurableQueueConfig(url)
	cfg.Queue.Durable = false
	cfg.Consume.Qos.PrefetchCount = rabbitPrefetch
	sub, err := wamqp.NewSubscriber(cfg, watermill.NopLogger{})
	if err != nil {
		return sample{}, err
	}
	w := startWatch()
	in, err := sub.Subscribe(context.Background(), rabbitQueue)
	if err != nil {
		return sample{}, err
	}
	for range n {
		m := <-in
		if work > 0 {
			<-time.After(work)
		}
		m.Ack()
	}
	s := w.stop(n)
	return s, sub.Close()
}
