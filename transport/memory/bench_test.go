package memory

import (
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func BenchmarkReceiveAck(b *testing.B) {
	for _, most := range []int{1, 16} {
		b.Run(map[int]string{1: "one", 16: "16"}[most], func(b *testing.B) {
			br := New(Config{})
			fill(b, br, b.N)
			c := open(b, br.Queue("q", QueueConfig{}), transport.OpenOptions{Window: 64})
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; {
				ds, err := c.Receive(b.Context(), most)
				if err != nil {
					b.Fatal(err)
				}
				for _, d := range ds {
					if err := d.Ack(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				n += len(ds)
			}
		})
	}
}

func BenchmarkPublish(b *testing.B) {
	br := New(Config{})
	b.ReportAllocs()
	fill(b, br, b.N)
}

func fill(b *testing.B, br *Broker, n int) {
	p, _ := br.Publisher(PublisherConfig{})
	m := &longshore.Message{Key: []byte("k"), Body: []byte("body")}
	batch := make([]*longshore.Message, 100)
	for i := range batch {
		batch[i] = m
	}
	for n > 0 {
		k := min(n, len(batch))
		if err := p.Publish(b.Context(), "q", batch[:k]...); err != nil {
			b.Fatal(err)
		}
		n -= k
	}
	_ = p.Close(b.Context())
}
