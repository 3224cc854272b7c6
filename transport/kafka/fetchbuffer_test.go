package kafka

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// Whatever is taken in whatever steps, the bytes that come out are those that went in.
func TestQueueCountsItsBytes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		q := fetchBuffer{flow: &flow{needed: make(chan struct{}, 1)}}
		in, out, pushed, popped := int64(0), int64(0), 0, 0
		for range 50 {
			recs := make([]*kgo.Record, 1+r.IntN(100))
			for i := range recs {
				recs[i] = &kgo.Record{Value: make([]byte, r.IntN(300))}
			}
			before := q.bytes
			q.push(recs, time.Time{})
			in += q.bytes - before
			pushed += len(recs)
			for r.IntN(3) > 0 && !q.empty() {
				n, bytes := q.takeSome(1 + r.IntN(40))
				popped, out = popped+n, out+bytes
			}
		}
		for !q.empty() {
			n, bytes := q.takeSome(madeAtOnce)
			popped, out = popped+n, out+bytes
		}
		if in != out || pushed != popped || q.flow.waiting.Load() != 0 {
			t.Fatalf("seed %d: %d records of %d bytes in, %d of %d out", seed, pushed, in, popped, out)
		}
	}
}

func (b *fetchBuffer) takeSome(n int) (int, int64) {
	if len(b.made) == 0 {
		recs, _, bytes := b.next(madeAtOnce)
		b.made, b.madeBytes = longshore.NewDeliveries(context.Background(), nil, 0, len(recs)), bytes
	}
	before := b.bytes
	ds := b.pop(n)
	return len(ds), before - b.bytes
}
