package container_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// waysToBlock are the ways in which the first delivery of a key can be in the way of those
// behind it. Each returns what the handler does with the blocked key.
func waysToBlock() map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"its handler hangs": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"it waits for its retry": func(context.Context) error {
			return longshore.Retry(errors.New("later"), time.Hour)
		},
		"it is kept": func(context.Context) error { return longshore.Reject(errors.New("never")) },
	}
}

// One key is blocked, for whatever reason, with the defaults and as many keys as make the
// others' followers few or many: the others go on at their rate for minutes.
//
// F-N33
func TestBlockedKeyHoldsNoOtherKeyUp(t *testing.T) {
	for name, block := range waysToBlock() {
		for _, keys := range []int{2, 100} {
			for _, workers := range []container.Workers{{}, {Min: 4, Max: 4}} {
				if keys == 100 && workers.Min > 0 {
					continue // the two others show it
				}
				t.Run(fmt.Sprint(name, ", ", keys, " keys, workers ", workers), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { othersGoOn(t, block, keys, workers) })
				})
			}
		}
	}
}

func othersGoOn(t *testing.T, block func(context.Context) error, keys int, workers container.Workers) {
	b := memory.New(memory.Config{})
	var done atomic.Int32
	c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if string(d.Key) == "k0" && done.Load() > 400 {
			return block(ctx)
		}
		wait(5 * time.Millisecond)
		done.Add(1)
		return nil
	}), container.Config{Order: container.ByKey, Workers: workers, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
		Redelivery: container.Redelivery{Backoff: container.Backoff{Max: time.Hour}}})
	n := 0
	second := func() { // 100 messages
		for range 100 {
			publish(t, b, "q", fmt.Sprintf("k%d:%d", n%keys, n))
			n++
			wait(10 * time.Millisecond)
		}
	}
	for range 5 {
		second()
	}
	for range 2 { // in each 20 s
		before := done.Load()
		for range 20 {
			second()
		}
		others := int32(20 * 100 * (keys - 1) / keys)
		if got := done.Load() - before; 100*got < 95*others {
			t.Errorf("%d of %d others were handled; %+v", got, others, c.Bottleneck())
		}
	}
	if st := c.Stats(); st.Target > max(workers.Max, 10) || st.Workers > max(workers.Max, 10) {
		t.Errorf("%d workers, target %d", st.Workers, st.Target)
	}
}

// Several keys hang, one after the other: each costs its own worker, and as long as there
// are workers the others go on.
//
// F-N33
func TestSeveralHungKeysHoldNoOtherKeyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var done, hung atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			if len(d.Key) == 2 && d.Key[0] == 'k' && d.Key[1] < '8' {
				hung.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}
			wait(5 * time.Millisecond)
			done.Add(1)
			return nil
		}), container.Config{Order: container.ByKey})
		for i := range 10_000 {
			publish(t, b, "q", fmt.Sprintf("k%d:%d", i%50, i))
			wait(10 * time.Millisecond)
		}
		if got, want := done.Load(), int32(10_000*42/50); hung.Load() != 8 || 100*got < 95*want {
			t.Errorf("%d hang, %d of %d others were handled; %+v", hung.Load(), got, want, c.Bottleneck())
		}
		if st := c.Stats(); st.Blocked < 1400 || st.InFlight > st.Window {
			t.Errorf("%d wait behind what hangs, %d are in a window of %d", st.Blocked, st.InFlight, st.Window)
		}
	})
}

// Where everything hangs, workers do not follow: a hang is not demand. One more is tried.
func TestWorkersDoNotFollowWhatHangs(t *testing.T) {
	for _, order := range []container.Order{container.ByKey, container.Unordered} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			var hangs atomic.Bool
			var hung atomic.Int32
			start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
				if hangs.Load() {
					hung.Add(1)
					<-ctx.Done()
					return ctx.Err()
				}
				wait(5 * time.Millisecond)
				return nil
			}), container.Config{Order: order})
			for i := range 4000 {
				hangs.Store(i > 500)
				publish(t, b, "q", fmt.Sprintf("k%d:%d", i%50, i))
				wait(10 * time.Millisecond)
			}
			if n := hung.Load(); n > 3 {
				t.Errorf("%v: %d calls hang", order, n)
			}
		})
	}
}

// At the bound the rest takes places from the others: on the way there it is told four
// times, and then it is what limits.
//
// F-N33
func TestBoundOfBlockedKeysIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		body := strings.Repeat("x", 1000)
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			if string(d.Key) == "k0" {
				<-ctx.Done()
				return ctx.Err()
			}
			wait(time.Millisecond)
			return nil
		}), container.Config{Order: container.ByKey, MaxBytes: 200_000})
		events, stopEvents := c.Events(1000)
		defer stopEvents()
		for range 100 { // until it is known how long a call takes
			publish(t, b, "q", "k1:"+body)
			wait(50 * time.Millisecond)
		}
		n := 0
		for limit := time.Now().Add(10 * time.Minute); c.Bottleneck().By != container.ByAside; n++ {
			if time.Now().After(limit) {
				t.Fatalf("not told: %+v", c.Stats())
			}
			publish(t, b, "q", fmt.Sprintf("k%d:%s", n%2, body))
			wait(50 * time.Millisecond)
		}
		wait(time.Second)
		if why := c.Bottleneck(); !strings.Contains(why.Text, `"k0", whose handler does not return`) {
			t.Errorf("why: %q", why.Text)
		}
		if st := c.Stats(); !st.Ready || !strings.Contains(st.Reason, "too much waits") || st.Bytes > 2*200_000+20_000 {
			t.Errorf("ready %v (%s), %d bytes are held", st.Ready, st.Reason, st.Bytes)
		}
		var told []string
		for len(events) > 0 {
			if e := <-events; e.Kind == container.EventLaneBlocked {
				told = append(told, e.Text)
				if e.Reason != "k0" || e.Count == 0 {
					t.Errorf("%+v", e)
				}
			}
		}
		if len(told) != 4 || !strings.Contains(told[0], "10 %") || !strings.Contains(told[3], "takes places from the others") {
			t.Errorf("told %d times: %q", len(told), told)
		}
	})
}
