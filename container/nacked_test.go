package container_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// A Nack is a failed attempt, whoever settles: the last one ends a poison message, each
// is told, and so is what becomes of the message in the end.
func TestNackCountsTowardsTheLastAttempt(t *testing.T) {
	for name, dead := range map[string]container.DeadLetter{"to": {To: "dead"}, "native": {Policy: container.DeadLetterNative}, "discard": {Policy: container.DeadLetterDiscard}} {
		for _, settle := range []container.Settle{container.SettleAuto, container.SettleManual} {
			for _, order := range []container.Order{container.Unordered, container.ByKey} {
				t.Run(fmt.Sprintf("%s, by hand %t, order %s", name, settle == container.SettleManual, order), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						b, o := memory.New(memory.Config{}), &verdicts{}
						publish(t, b, "q", "k:poison")
						var attempts, told seen
						c := start(t, b.Queue("q", memory.QueueConfig{DeadLetter: "dead"}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
							attempts.add(fmt.Sprint(d.Attempt))
							return d.Nack(ctx, time.Second)
						}), container.Config{Settle: settle, Order: order, DeadLetter: dead, Redelivery: container.Redelivery{MaxAttempts: 3},
							Middleware: []longshore.Middleware{o}, OnEvent: func(e container.Event) {
								switch e.Kind {
								case container.EventFailed, container.EventDeadLettered, container.EventDiscarded:
									told.add(string(e.Kind))
								default:
								}
							}})
						wait(time.Minute)
						stop(t, c)
						last := map[bool]string{true: "discarded", false: "dead-lettered"}[name == "discard"]
						if got, want := fmt.Sprint(attempts.all(), told.all()), "[1 2 3] [failed failed "+last+"]"; got != want {
							t.Errorf("attempts and events: %s, want %s", got, want)
						}
						if st := c.Stats(); st.Retried != 2 || st.Rejected+st.Discarded != 1 || o.seen.len() != 3 {
							t.Errorf("%d retried, %d rejected, %d discarded, told of %v", st.Retried, st.Rejected, st.Discarded, o.seen.all())
						}
						if info := b.Inspect("q"); info.Ready+info.Unsettled+info.Delayed != 0 {
							t.Errorf("left in the queue: %+v", info)
						}
					})
				})
			}
		}
	}
}

// A Reject by hand is told like one that was returned.
func TestRejectByHandIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "m")
		var told seen
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			return d.Reject(ctx, errors.New("never"))
		}), container.Config{Settle: container.SettleManual, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard},
			OnEvent: func(e container.Event) {
				if e.Kind == container.EventDiscarded {
					told.add(e.Text)
				}
			}})
		wait(time.Second)
		stop(t, c)
		if told.len() != 1 {
			t.Errorf("told %d times: %v", told.len(), told.all())
		}
	})
}
