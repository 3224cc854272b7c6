package amqp_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport/amqp"
)

// The scaling rule of SimpleMessageListenerContainer on a real queue: under a burst one
// worker more at a time and never sooner than the interval, and back to Min when it is
// over. Its triggers and times are shortened to fit a test.
func TestSpringsRuleOnABurst(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		s.publish(t, queue, numbered(800)...)
		const startEvery, stopEvery = 200 * time.Millisecond, 300 * time.Millisecond
		var mu sync.Mutex
		var moves []container.Event
		handled := 0
		c, err := container.New(amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
			<-time.After(8 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			handled++
			return nil
		}), container.Config{Workers: container.Workers{Min: 2, Max: 5}, Logger: zap.NewNop(),
			Autoscale: autoscale.Spring{StartInterval: startEvery, StopInterval: stopEvery, ActiveTrigger: 2, IdleTrigger: 2, ReceiveTimeout: 50 * time.Millisecond},
			OnEvent: func(e container.Event) {
				if e.Kind == container.EventScaled {
					mu.Lock()
					defer mu.Unlock()
					moves = append(moves, e)
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventuallyWithin(t, 30*time.Second, "the burst is over and the workers are back at Min", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return handled == 800 && len(moves) > 1 && moves[len(moves)-1].To == 2
		})
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		top := 0
		last := map[bool]time.Time{}
		for _, m := range moves {
			up, every := m.To > m.From, stopEvery
			if up {
				every = startEvery
			}
			top = max(top, m.To)
			if m.To-m.From != 1 && m.From-m.To != 1 {
				t.Errorf("from %d to %d at once", m.From, m.To)
			}
			if at := last[up]; !at.IsZero() && m.Time.Sub(at) < every {
				t.Errorf("from %d to %d only %v after the step before", m.From, m.To, m.Time.Sub(at))
			}
			last[up] = m.Time
		}
		if top != 5 {
			t.Errorf("at most %d workers: %+v", top, moves)
		}
	})
}
