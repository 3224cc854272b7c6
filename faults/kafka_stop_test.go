package faults

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/oracle"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A container stops while a third member joins and retries wait, here and in the second
// member, whose drain the group waits for. What was done is committed, and the
// stop does not wait for the second. F-A03, F-A05
func TestKafkaStopDuringARebalanceLeavesNothingUnflushed(t *testing.T) {
	t.Parallel()
	k := newKafkaTopic(t, newFake(t).ListenAddrs(), 6)
	l := oracle.New()
	k.publish(l, 0, 3000, 300)
	src := k.group(kafka.GroupConfig{SettleLinger: time.Hour, RebalanceDrain: 2 * time.Second})
	start := func() *container.ListenerContainer {
		return consumeFrom(t, src, container.Config{Workers: fixed(8), DrainTimeout: 5 * time.Second, CancelGrace: time.Second,
			DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
			Redelivery: container.Redelivery{MaxAttempts: 50, Backoff: container.Backoff{Initial: time.Minute, Max: time.Minute}}},
			func(_ context.Context, d *longshore.Delivery) error {
				if n, _ := strconv.Atoi(string(d.Body)); n%20 == 0 {
					return errors.New("later")
				}
				end := l.Begin(string(d.Body), string(d.Key))
				<-time.After(5 * time.Millisecond)
				end(d.Owned())
				return nil
			})
	}
	first, second := start(), start()
	eventually(t, 30*time.Second, "retries wait in both", func() bool { return first.Stats().Parked > 5 && second.Stats().Parked > 5 })
	given, end := first.Events(1000)
	defer end()
	third := start()
	for e := range given { // it gives up a part for the third, and must be let in again
		if e.Kind == container.EventNotice {
			break
		}
	}
	if r := stops(t, first); r.Bad() {
		t.Errorf("stop: %v", r)
	}
	for _, c := range []*container.ListenerContainer{second, third} {
		if r := stops(t, c); r.Bad() {
			t.Errorf("stop: %v", r)
		}
	}
}
