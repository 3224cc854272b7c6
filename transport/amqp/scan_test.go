package amqp_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-N34: who looks at two dead letters does not touch ten thousand.
func TestAScanTakesWhatItShowsOnly(t *testing.T) {
	t.Parallel()
	const messages, shown = 40, 2
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Quorum, amqp.Classic} {
			queue := s.declare(t, kind, nil)
			s.publish(t, queue, numbered(messages)...)
			src := as[transport.Scanner](t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{BrowseCounts: true}))
			n := 0
			whole, err := src.Scan(t.Context(), 10_000, func(*longshore.Delivery) bool { n++; return n < shown })
			if err != nil || whole || n != shown {
				t.Fatalf("%s: a scan showed %d, whole %v: %v", kind, n, whole, err)
			}
			touched, all := 0, 0
			whole, err = src.Scan(t.Context(), 10_000, func(d *longshore.Delivery) bool {
				all++
				if d.Origin.Redelivered {
					touched++
				}
				return true
			})
			if err != nil || !whole || all != messages || touched != shown {
				t.Errorf("%s: %d of %d messages were taken to show %d (whole %v): %v", kind, touched, all, shown, whole, err)
			}
		}
	})
}

// A scan whose time is over has shown what it read, and gives all back.
func TestAScanThatIsInterrupted(t *testing.T) {
	t.Parallel()
	const messages = 30
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Quorum, nil)
		s.publish(t, queue, numbered(messages)...)
		src := amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{BrowseCounts: true})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		whole, err := as[transport.Scanner](t, src).Scan(ctx, messages, func(*longshore.Delivery) bool {
			if n++; n == 3 {
				cancel()
			}
			return true
		})
		if err == nil || whole || n < 3 {
			t.Fatalf("%d shown, whole %v: %v", n, whole, err)
		}
		for end := time.Now().Add(10 * time.Second); ; {
			depth, err := src.Depth(t.Context())
			if err == nil && depth.Ready == messages {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d of %d are back: %v", depth.Ready, messages, err)
			}
		}
	})
}
