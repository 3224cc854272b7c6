package transporttest

import (
	"fmt"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// Bench measures the calls of the contract: receiving with an ack each, for one
// and for many at a time, and publishing in batches of 1 and 100. The queue is
// filled before the clock runs.
func Bench(b *testing.B, h Harness) {
	full := h.withDefaults()
	for _, most := range []int{1, 100} {
		b.Run(fmt.Sprintf("receive-ack/%d", most), func(b *testing.B) { benchReceive(b, full, most) })
	}
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprintf("publish/%d", size), func(b *testing.B) { benchPublish(b, full, size) })
	}
}

func benchReceive(b *testing.B, h *Harness, most int) {
	e := &env{TB: b, h: h}
	src := h.Source(e)
	for left := b.N; left > 0; left -= 1000 {
		e.send(src, benchMessages(min(left, 1000))...)
	}
	s := e.open(src, transport.OpenOptions{Window: 2 * most, MaxWindow: 2 * most})
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		ds, err := s.Receive(b.Context(), most)
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
	s.flush()
	b.StopTimer()
	s.shut()
}

func benchPublish(b *testing.B, h *Harness, size int) {
	e := &env{TB: b, h: h}
	src := h.Source(e)
	p, dest := e.publisher(src)
	if p == nil {
		b.Skip("not measured: the source does not implement transport.Outlet")
	}
	msgs := benchMessages(size)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += size {
		if err := p.Publish(b.Context(), dest, msgs[:min(size, b.N-n)]...); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	e.must("Publisher.Close", p.Close)
}

func benchMessages(n int) []*longshore.Message {
	msgs := make([]*longshore.Message, n)
	for i := range msgs {
		msgs[i] = &longshore.Message{Key: fmt.Appendf(nil, "k%d", i%100), Body: []byte(`{"ID":"o-1","Amount":1250}`)}
	}
	return msgs
}
