package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
)

// F-C06: record 5 always fails and its dead-letter topic takes nothing. The position
// stays at 5 while all others are done; after a restart 5 comes again and they do not.
// When the topic takes it, the position moves, and not before.
func TestKafkaSuccessDoesNotPassAFailureThatCannotBeMoved(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "orders.dlt"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	committed := func() int64 {
		offsets, err := adm.FetchOffsets(t.Context(), "billing")
		if o, ok := offsets.Lookup("orders", 0); err == nil && ok {
			return o.At
		}
		return -1
	}
	for i := range 21 {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Key: fmt.Append(nil, i), Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	down := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "orders.dlt", Err: kerr.TopicAuthorizationFailed, Count: -1})
	var mu sync.Mutex
	calls := map[string]int{}
	handled := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(calls)
	}
	start := func() *container.ListenerContainer {
		src := kafka.New(fake.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{SettleLinger: 20 * time.Millisecond})
		return consumeFrom(t, src, container.Config{DeadLetter: container.DeadLetter{To: "orders.dlt"}, DrainTimeout: time.Second,
			Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: quickly}}, func(_ context.Context, d *longshore.Delivery) error {
			mu.Lock()
			calls[string(d.Body)]++
			mu.Unlock()
			if string(d.Body) == "5" {
				return errors.New("bad")
			}
			return nil
		})
	}
	c := start()
	eventually(t, 20*time.Second, "all were handled, and one cannot be moved", func() bool { return handled() == 21 && c.Stats().DeadLetterFailures > 0 })
	_ = c.Stop(t.Context()) // it tells of the one that it gave back
	if at := committed(); at != 5 {
		t.Errorf("committed %d, want 5", at)
	}
	mu.Lock()
	clear(calls)
	mu.Unlock()
	c = start()
	eventually(t, 20*time.Second, "it came again and cannot be moved", func() bool { return handled() == 1 && c.Stats().DeadLetterFailures > 0 })
	if at := committed(); at != 5 {
		t.Errorf("committed %d before the dead-letter topic had it, want 5", at)
	}
	down.Remove()
	eventually(t, 30*time.Second, "it is moved and the position follows", func() bool { return committed() == 21 && deadLettered(c) == 1 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(calls) != 1 || calls["5"] == 0 {
		t.Errorf("after the restart these were handled: %v, want 5 alone", calls)
	}
}
