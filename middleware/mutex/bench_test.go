package mutex_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// What a relay sends beside a publisher of batches of the same size to the same queue,
// round by round in turn. "ratio" is the relay's rate by the publisher's.
//
//	go test -run '^$' -bench Relay -benchtime 10x ./middleware/mutex
func BenchmarkRelay(b *testing.B) {
	const batch, batches = 100, 100
	e := open(b, mutex.Postgres)
	broker := amqp.New(brokertest.AMQP(b), amqp.Config{})
	c, err := broker.Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}}).Open(b.Context(), transport.OpenOptions{Window: 1, MaxWindow: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	pub, err := broker.Publisher(amqp.PublisherConfig{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = pub.Close(context.Background()) }()
	o, err := mutex.NewOutbox(e.store(), pub, mutex.OutboxConfig{Tables: e.tables, RelayOnly: true, NoMutex: true, Batch: batch, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	plain := func() {
		for range batches {
			if err := pub.Publish(b.Context(), "orders", bodies(batch)...); err != nil {
				b.Fatal(err)
			}
		}
	}
	relay := func() {
		target := o.Relay().Stats().Published + batches*batch
		if err := o.Relay().Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		eventually(b, "all sent", func() bool { return o.Relay().Stats().Published >= target })
		if err := o.Relay().Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	plain()
	var direct, relayed time.Duration
	for b.Loop() {
		for range batches {
			e.add(o, bodies(batch)...)
		}
		direct += timed(plain)
		relayed += timed(relay)
	}
	b.ReportMetric(float64(direct)/float64(relayed), "ratio")
	b.ReportMetric(float64(b.N*batches*batch)/relayed.Seconds(), "msg/s")
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func bodies(n int) []*longshore.Message {
	msgs := make([]*longshore.Message, n)
	for i := range msgs {
		msgs[i] = &longshore.Message{Body: make([]byte, 256)}
	}
	return msgs
}
