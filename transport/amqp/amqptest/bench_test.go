package amqptest

import (
	"context"
	"os"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// brokers are the servers to measure: this one, and with AMQP_URL RabbitMQ in
// the same run.
func brokers(b *testing.B) map[string]string {
	urls := map[string]string{"amqptest": New(b).URL}
	if url := os.Getenv("AMQP_URL"); url != "" {
		urls["rabbitmq"] = url
	}
	return urls
}

func benchChannel(b *testing.B, url string) *amqp091.Channel {
	b.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ch.QueueDeclare("amqptest.bench", false, false, true, false, nil); err != nil {
		b.Fatal(err)
	}
	return ch
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		s, err := Start(Config{})
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}

// BenchmarkPublishToAck is one message at a time: publish, consume, ack.
func BenchmarkPublishToAck(b *testing.B) {
	for name, url := range brokers(b) {
		b.Run(name, func(b *testing.B) {
			ch := benchChannel(b, url)
			ds, err := ch.Consume("amqptest.bench", "", false, false, false, false, nil)
			if err != nil {
				b.Fatal(err)
			}
			body := make([]byte, 256)
			for b.Loop() {
				if err := ch.PublishWithContext(context.Background(), "", "amqptest.bench", false, false, amqp091.Publishing{Body: body}); err != nil {
					b.Fatal(err)
				}
				d := <-ds
				if err := d.Ack(false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkThroughput publishes with confirms, 1,000 in flight, while a consumer
// with a prefetch of 250 acks each.
func BenchmarkThroughput(b *testing.B) {
	for name, url := range brokers(b) {
		b.Run(name, func(b *testing.B) {
			ch := benchChannel(b, url)
			if err := ch.Qos(250, 0, false); err != nil {
				b.Fatal(err)
			}
			ds, err := ch.Consume("amqptest.bench", "", false, false, false, false, nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := ch.Confirm(false); err != nil {
				b.Fatal(err)
			}
			confirms := ch.NotifyPublish(make(chan amqp091.Confirmation, 1000))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range b.N {
					d := <-ds
					_ = d.Ack(false)
				}
			}()
			body := make([]byte, 256)
			b.ResetTimer()
			for i := range b.N {
				if i >= 1000 {
					<-confirms
				}
				if err := ch.PublishWithContext(context.Background(), "", "amqptest.bench", false, false, amqp091.Publishing{Body: body}); err != nil {
					b.Fatal(err)
				}
			}
			for range min(b.N, 1000) {
				<-confirms
			}
			<-done
		})
	}
}
