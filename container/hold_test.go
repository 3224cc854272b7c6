package container_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-F07: however often a breaker opens, a broker that counts returns has nothing to
// count: what was received, buffered or released for a moment waits here.
func TestHoldsCostNoReturn(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			var bodies []string
			for i := range 300 {
				bodies = append(bodies, fmt.Sprintf("k%d:%d", i%20, i))
			}
			publish(t, b, "q", bodies...)
			k := &breaker{}
			var calls, again atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{CountsReturns: true, DeliveryLimit: 3, DeadLetter: "dead"}), handle(func(d *longshore.Delivery) error {
				if d.Attempt > 1 {
					again.Add(1)
				}
				wait(50 * time.Millisecond)
				if calls.Add(1)%10 == 0 {
					return longshore.Release(errors.New("the lock is busy"), 5*time.Second)
				}
				return nil
			}), container.Config{Order: order, Middleware: []longshore.Middleware{k}, Workers: container.Workers{Min: 3, Max: 3}})
			for range 20 {
				wait(120 * time.Millisecond)
				k.set(true)
				wait(10 * time.Second)
				if n := b.Inspect("q").Consumers; n != 0 {
					t.Errorf("%d consumers while held", n)
				}
				k.set(false)
			}
			wait(10 * time.Minute)
			if info := b.Inspect("q"); info.Acked != 300 || again.Load() != 0 || b.Inspect("dead").Published != 0 {
				t.Errorf("%d acked, %d came again, %d dead", info.Acked, again.Load(), b.Inspect("dead").Published)
			}
			stop(t, c)
		})
	}
}
