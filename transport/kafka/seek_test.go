package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// handled collects what a handler saw, by its body.
type handled struct {
	mu sync.Mutex
	n  map[string]int
}

func (h *handled) add(body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == nil {
		h.n = map[string]int{}
	}
	h.n[body]++
}

func (h *handled) count(from, to int) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := from; i < to; i++ {
		n += h.n[fmt.Sprint(i)]
	}
	return n
}

func seeker(t *testing.T, c *cluster, cfg kafka.GroupConfig, h func(ctx context.Context, d *longshore.Delivery) error, edit func(*container.Config)) *container.ListenerContainer {
	t.Helper()
	conf := container.Config{Logger: zap.NewNop(), DrainTimeout: 2 * time.Second, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}}
	if edit != nil {
		edit(&conf)
	}
	k, err := container.New(c.group(cfg), longshore.HandlerFunc(h), conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop(context.Background()) })
	return k
}

// Back, forward and to a record of one partition: from the committed position on
// everything is handled, nothing else twice, and the group knows the position.
func TestSeek(t *testing.T) {
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seekThere(t, embeddedCluster(t, 2), p)
		})
	}
}

func TestSeekOnKafka(t *testing.T) {
	addrs := brokertest.Kafka(t)
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seekThere(t, realCluster(t, addrs, 2), p)
		})
	}
}

func seekThere(t *testing.T, c *cluster, p kafka.Protocol) {
	c.produce(0, 100, 7, 0)
	c.produce(1000, 1100, 7, 1)
	got := &handled{}
	k := seeker(t, c, kafka.GroupConfig{Protocol: p}, func(_ context.Context, d *longshore.Delivery) error { got.add(string(d.Body)); return nil }, nil)
	eventually(t, "all are handled", func() bool { return got.count(0, 2000) == 200 })
	moved, err := k.Seek(t.Context(), transport.Position{Topic: c.topic, Partition: 0, Offset: 40})
	if err != nil || len(moved) != 1 || moved[0].From != 100 || moved[0].To != 40 {
		t.Fatalf("%+v, %v", moved, err)
	}
	eventually(t, "60 are handled again", func() bool { return got.count(40, 100) == 120 })
	c.produce(100, 110, 7, 0)
	eventually(t, "new ones follow", func() bool { return got.count(100, 110) == 10 })
	if n, m := got.count(0, 40), got.count(1000, 1100); n != 40 || m != 100 {
		t.Errorf("%d before the position, %d of the other partition", n, m)
	}
	if moved, err = k.Seek(t.Context(), transport.Position{Partition: -1, Start: true}); err != nil || len(moved) != 2 {
		t.Fatalf("%+v, %v", moved, err)
	}
	eventually(t, "all are handled again", func() bool {
		return got.count(0, 40) == 80 && got.count(40, 100) == 180 && got.count(1000, 1100) == 200
	})
	k.Pause()
	c.produce(110, 120, 7, 0)
	if _, err = k.Seek(t.Context(), transport.Position{Partition: -1, End: true}); err != nil {
		t.Fatal(err)
	}
	k.Resume()
	c.produce(120, 130, 7, 0)
	eventually(t, "what came later", func() bool { return got.count(120, 130) == 10 })
	if n := got.count(110, 120); n != 0 {
		t.Errorf("%d of 10 that were skipped", n)
	}
	if err := k.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if at, _ := c.committed(0); at != 130 {
		t.Errorf("position %d after the stop", at)
	}
	for _, bad := range []transport.Position{{Partition: 7, Start: true}, {Topic: "nobody's", Partition: -1, Start: true}, {Partition: 0, Offset: 1 << 40}} {
		if _, err := k.Seek(t.Context(), bad); err == nil {
			t.Errorf("%+v was obeyed", bad)
		}
	}
}

// A handler that runs at the seek loses its delivery when the drain is over, what is
// parked goes back, and neither is committed or handled from here any more.
func TestSeekFencesWhatRuns(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 10, 10, 0)
	var mu sync.Mutex
	var cause error
	got := &handled{}
	k := seeker(t, c, kafka.GroupConfig{}, func(ctx context.Context, d *longshore.Delivery) error {
		switch body := string(d.Body); body {
		case "3":
			<-ctx.Done()
			mu.Lock()
			cause = context.Cause(ctx)
			mu.Unlock()
			return nil
		case "5":
			return errors.New("not yet")
		default:
			got.add(body)
			return nil
		}
	}, func(cfg *container.Config) {
		cfg.DrainTimeout = 200 * time.Millisecond
		cfg.Redelivery.Backoff = container.Backoff{Initial: time.Hour, Max: time.Hour}
	})
	eventually(t, "one runs, one is parked", func() bool { st := k.Stats(); return st.Busy == 1 && st.Parked == 1 && got.count(0, 10) == 8 })
	moved, err := k.Seek(t.Context(), transport.Position{Partition: 0, Offset: 8})
	if err != nil || len(moved) != 1 || moved[0].From != 3 || moved[0].To != 8 {
		t.Fatalf("%+v, %v", moved, err)
	}
	eventually(t, "they are gone, and reading goes on", func() bool { st := k.Stats(); return st.Busy == 0 && st.Parked == 0 && got.count(8, 10) == 4 })
	mu.Lock()
	if !errors.Is(cause, longshore.ErrLost) {
		t.Errorf("the handler's context ended by %v", cause)
	}
	mu.Unlock()
	if err := k.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if at, saved := c.committed(0); at != 10 {
		t.Errorf("position %d %q", at, saved)
	}
}

// Members come and go while positions are moved: a position goes only where its
// partition is, and in the end everything from it on is handled by somebody.
func TestSeekWhileMembersComeAndGo(t *testing.T) {
	for name, p := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embeddedCluster(t, 4)
			c.produce(0, 200, 50, -1)
			got := &handled{}
			h := func(_ context.Context, d *longshore.Delivery) error { got.add(string(d.Body)); return nil }
			k := seeker(t, c, kafka.GroupConfig{Protocol: p}, h, nil)
			eventually(t, "all are handled", func() bool { return got.count(0, 200) >= 200 })
			for range 4 {
				other := seeker(t, c, kafka.GroupConfig{Protocol: p}, h, nil)
				for range 5 {
					_, _ = k.Seek(t.Context(), transport.Position{Partition: -1, Start: true}) // may lose its partitions meanwhile, and says so
				}
				if err := other.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}
			before := got.count(0, 200)
			eventually(t, "all partitions are the first one's again, and nothing is on its way any more", func() bool {
				if moved, err := k.Seek(t.Context(), transport.Position{Partition: -1, End: true}); err != nil || len(moved) != 4 {
					return false
				}
				if idle, err := k.Idle(t.Context()); err != nil || !idle {
					return false
				}
				before = got.count(0, 200)
				moved, err := k.Seek(t.Context(), transport.Position{Partition: -1, Start: true})
				return err == nil && len(moved) == 4 // a rebalance that was left over may take some away once more
			})
			eventually(t, "all are handled once more", func() bool { return got.count(0, 200) >= before+200 })
			if err := k.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if n := got.count(0, 200); n != before+200 {
				t.Errorf("%d handled after the last seek, of 200", n-before)
			}
			sum := int64(0)
			for part := range int32(4) {
				at, _ := c.committed(part)
				sum += at
			}
			if sum != 200 {
				t.Errorf("committed %d of 200", sum)
			}
		})
	}
}
