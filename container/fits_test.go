package container_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// Ten messages fill MaxBytes: the policy hears that more workers would find none, and
// Why says so. Small messages let it go on.
func TestBytesAreACeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		put := func(n, size int) {
			pub, err := b.Publisher(memory.PublisherConfig{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pub.Close(context.Background()) }()
			body := bytes.Repeat([]byte("x"), size)
			for range n {
				if err := pub.Publish(context.Background(), "q", &longshore.Message{Body: body}); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(2000, 100<<10)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { <-time.After(100 * time.Millisecond); return nil }),
			container.Config{MaxBytes: 1 << 20, Workers: container.Workers{Max: 100}})
		<-time.After(12 * time.Second)
		if st, why := c.Stats(), c.Bottleneck(); st.Target > 13 || st.Target < 8 || st.Scaling.Limit != autoscale.LimitWindow || why.By != container.ByWindow {
			t.Errorf("%d workers, %+v, %+v", st.Target, st.Scaling, why)
		}
		put(10_000, 100)
		<-time.After(20 * time.Second)
		if st := c.Stats(); st.Target < 20 {
			t.Errorf("small ones: %d workers, %+v", st.Target, st.Scaling)
		}
	})
}

// F-K04: settings that exclude each other, and what the source cannot serve, are refused
// by New, with everything else that is wrong.
func TestSettingsThatExcludeEachOther(t *testing.T) {
	leased := memory.New(memory.Config{}).Queue("q", memory.QueueConfig{Lease: time.Second})
	_, err := container.NewBatch(leased, func(context.Context, []*longshore.Delivery) error { return nil }, container.Config{
		Stuck: container.Stuck{After: -1, Action: container.StuckReplace}, Batch: container.Batch{Linger: time.Minute}, Settle: container.SettleManual,
		DeadLetter: container.DeadLetter{To: "x", Policy: container.DeadLetterKeep}})
	for _, want := range []string{"Stuck.Action replace does not go with a Stuck.After of never", "Batch.Linger 1m0s does not go with the lease", "Settle manual does not go with Batch", "DeadLetter has both"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s: %v", want, err)
		}
	}
	src := &fitting{Source: memory.New(memory.Config{}).Queue("q", memory.QueueConfig{}), err: errors.New("not with me")}
	_, err = container.New(src, handle(noop), container.Config{CancelGrace: -1, Workers: container.Workers{Max: 3}, Lookahead: 4, Order: container.ByKey, DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative}})
	if !errors.Is(err, src.err) || !strings.Contains(err.Error(), "CancelGrace") {
		t.Errorf("%v", err)
	}
	if want := (transport.OpenOptions{MaxWindow: 7, MaxWorkers: 3, Ordered: true, Native: true}); src.asked != want {
		t.Errorf("asked for %+v", src.asked)
	}
	_, _ = container.New(src, handle(noop), container.Config{Workers: container.Workers{Min: 3, Max: 1}, DeadLetter: container.DeadLetter{To: "x"}})
	if want := (transport.OpenOptions{DeadLetter: "x"}); src.asked != want {
		t.Errorf("with bounds that are wrong: asked for %+v", src.asked)
	}
}

// fitting is a source that is asked whether it can serve.
type fitting struct {
	transport.Source
	asked transport.OpenOptions
	err   error
}

func (f *fitting) ValidateOpen(o transport.OpenOptions) error {
	f.asked = o
	return f.err
}
