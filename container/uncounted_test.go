package container_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/transport/memory"
)

var errAway = &longshore.Error{Code: longshore.CodeUnreachable, Op: "look up schema id 7", Err: errors.New("the registry does not answer")}

// loop runs a container on one message that is released until good is set.
func loop(t *testing.T, delay time.Duration, good *atomic.Bool) (c *container.ListenerContainer, calls *atomic.Int64, given func() []container.Event) {
	t.Helper()
	broker := memory.New(memory.Config{})
	calls = &atomic.Int64{}
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		calls.Add(1)
		if good.Load() {
			return nil
		}
		return longshore.Release(errAway, delay)
	}), container.Config{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	events, stop := c.Events(10_000)
	containertest.Start(t, c)
	containertest.PublishMessages(t, c, &longshore.Message{ID: "m-1", Key: []byte("k")})
	return c, calls, func() (out []container.Event) {
		stop()
		for e := range events {
			if e.Kind == container.EventGivenBack {
				out = append(out, e)
			}
		}
		return out
	}
}

// F-N25: a message that is released for ever, whatever delay is asked for, is told of
// once a minute, counted by its reason, slowed down, and named by Why.
func TestEndlessReleaseIsNotSilent(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var good atomic.Bool
			c, calls, given := loop(t, delay, &good)
			const watched = 10 * time.Minute
			<-time.After(watched)
			n, st, why := calls.Load(), c.Stats(), c.Bottleneck()
			most := int64(120)
			if delay > 0 { // up to one a second
				most = 700
			}
			if n < loopCalls || n > most {
				t.Errorf("delay %v: %d calls in %v", delay, n, watched)
			}
			if st.ReleasedBy[longshore.CodeUnreachable] != n || len(st.ReleasedBy) != 1 {
				t.Errorf("delay %v: %d calls, counted %v", delay, n, st.ReleasedBy)
			}
			if why.By != container.ByReleases || !strings.Contains(why.Text, "unreachable") || !strings.Contains(why.Text, "1 message is") || !strings.Contains(why.Text, "look up schema id 7") {
				t.Errorf("delay %v: why: %+v", delay, why)
			}
			good.Store(true)
			<-time.After(10 * time.Minute) // Backoff.Max at the most
			if why := c.Bottleneck(); why.By == container.ByReleases {
				t.Errorf("delay %v: it has ended, why: %+v", delay, why)
			}
			containertest.WaitIdle(t, c)
			told := given()
			if len(told) < 2 || len(told) > 10 {
				t.Fatalf("delay %v: %d events in %v", delay, len(told), watched)
			}
			if e := told[0]; e.Delivery.MessageID == "" || !errors.Is(e.Err, longshore.CodeUnreachable) || e.Count != 1 || e.Delay <= 0 || !strings.Contains(e.Text, "again and again") {
				t.Errorf("delay %v: %+v", delay, e)
			}
		})
	}
}

const loopCalls = 5

// A few releases in a row are everyday business: a lock was busy, a breaker opened.
func TestFewReleasesAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var good atomic.Bool
		c, calls, given := loop(t, time.Second, &good)
		<-time.After(2500 * time.Millisecond)
		good.Store(true)
		<-time.After(time.Minute)
		if why := c.Bottleneck(); why.By == container.ByReleases || calls.Load() < 3 || calls.Load() > 5 {
			t.Errorf("%d calls, why: %+v", calls.Load(), why)
		}
		if told := given(); len(told) != 0 {
			t.Errorf("told %+v", told)
		}
	})
}
