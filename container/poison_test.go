package container_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// One record in a hundred fails always: the good ones take as long as without
// them, whatever becomes of the bad ones.
func TestPoisonCostsNoThroughput(t *testing.T) {
	const records, workers = 4_000, 10
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		for name, dl := range map[string]container.DeadLetter{"dead letter": {To: "dead"}, "keep": {Policy: container.DeadLetterKeep}} {
			t.Run(fmt.Sprint(order, "/", name), func(t *testing.T) {
				var took [2]time.Duration
				for poisoned := range 2 {
					synctest.Test(t, func(t *testing.T) {
						b := memory.New(memory.Config{})
						msgs := make([]*longshore.Message, records)
						for i := range msgs {
							msgs[i] = &longshore.Message{Key: fmt.Appendf(nil, "k%d", i), Body: []byte("good")}
							if poisoned == 1 && i%100 == 50 {
								msgs[i].Body = []byte("bad")
							}
						}
						send(t, b, "q", msgs...)
						begin := time.Now()
						var good atomic.Int32
						var last atomic.Int64
						c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
							wait(10 * time.Millisecond)
							if string(d.Body) == "bad" {
								return errBad
							}
							good.Add(1)
							last.Store(int64(time.Since(begin)))
							return nil
						}), container.Config{Order: order, DeadLetter: dl, Workers: container.Workers{Min: workers, Max: workers}})
						wait(time.Minute)
						stop(t, c)
						if want := int32(records - poisoned*records/100); good.Load() != want {
							t.Errorf("%d good ones of %d", good.Load(), want)
						}
						took[poisoned] = time.Duration(last.Load())
					})
				}
				// The bad ones need worker time too, for each of their attempts.
				if ratio := float64(took[0]) / float64(took[1]); ratio < 0.95 {
					t.Errorf("%v without, %v with: ratio %.3f", took[0], took[1], ratio)
				} else {
					t.Logf("%v without, %v with: ratio %.3f", took[0], took[1], ratio)
				}
			})
		}
	}
}

// A burst of failures does not eat the broker's window: what waits here is asked
// for on top of it, before the next tick.
func TestBurstOfFailuresLeavesTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		for i := range 150 {
			publish(t, b, "q", fmt.Sprintf("k%d:bad", i))
		}
		publish(t, b, "q", "good")
		var good atomic.Bool
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if string(d.Body) != "good" {
				return longshore.Retry(errBad, time.Hour)
			}
			good.Store(true)
			return nil
		}), container.Config{Order: container.ByKey})
		wait(100 * time.Millisecond)
		if !good.Load() {
			t.Errorf("the good one waits behind %d parked ones", c.Stats().Parked)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 150, unsettled 0, delayed 0, acked 1")
	})
}
