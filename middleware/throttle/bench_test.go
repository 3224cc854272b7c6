package throttle_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/memory"
)

// BenchmarkAcquireRelease is what a message pays with permits to spare.
func BenchmarkAcquireRelease(b *testing.B) {
	for name, l := range map[string]*throttle.Limiter{
		"permits": throttle.NewPermits(100), "rate": throttle.NewRate(1e9), "unlimited": throttle.NewUnlimited(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			now := time.Now()
			for b.Loop() {
				if ok, _ := l.TryAcquire(now); ok {
					l.Release()
				}
				now = now.Add(time.Microsecond)
			}
		})
	}
}

// BenchmarkContainer runs a no-op handler with a throttle that has permits to spare
// and without one.
func BenchmarkContainer(b *testing.B) {
	both := throttle.NewPermits(100)
	both.SetRate(1e9)
	for _, c := range []struct {
		name string
		gate container.Gate
	}{{"none", nil}, {"permits", throttle.NewPermits(100)}, {"both", both}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			broker := memory.New(memory.Config{})
			publish(b, broker, "q", numbered(b.N)...)
			left := make(chan struct{}, 1)
			n := 0
			h := handle(func(context.Context, *longshore.Delivery) error {
				if n++; n == b.N {
					left <- struct{}{}
				}
				return nil
			})
			b.ResetTimer()
			lc := start(b, broker.Queue("q", memory.QueueConfig{}), h,
				container.Config{Throttle: c.gate, Workers: container.Workers{Max: 1}})
			<-left
			b.StopTimer()
			stop(b, lc)
		})
	}
}
