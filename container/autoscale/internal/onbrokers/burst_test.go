package onbrokers

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/transport"
)

func start(t *testing.T, src transport.Source, h longshore.HandlerFunc, cfg container.Config) *container.ListenerContainer {
	t.Helper()
	cfg.Logger, cfg.StartPaused, cfg.WaitForBroker, cfg.Order = zap.NewNop(), true, true, container.Unordered
	cfg.DeadLetter.Policy = container.DeadLetterKeep
	c, err := container.New(src, h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c
}

func send(t *testing.T, src transport.Source, bodies ...string) {
	t.Helper()
	out, ok := src.(transport.Outlet)
	if !ok {
		t.Fatalf("%T has no publisher", src)
	}
	p, self, err := out.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	var msgs []*longshore.Message
	for _, b := range bodies {
		msgs = append(msgs, &longshore.Message{ID: b, Key: []byte(b), Body: []byte(b)})
	}
	if err := p.Publish(t.Context(), self, msgs...); err != nil {
		t.Fatal(err)
	}
}

// patience is for a busy machine.
const patience = 2 * time.Minute

func eventually(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	tick, end := time.NewTicker(20*time.Millisecond), time.NewTimer(d)
	defer tick.Stop()
	defer end.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// F-E03: up with a burst, down again with a trickle, the bounds held, nothing
// redelivered, and the broker sees no more consumers than it must.
func TestBurst(t *testing.T) {
	for name, newLab := range labs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 1000
			l := newLab(t)
			var done, redelivered atomic.Int64
			var begin atomic.Int64
			c := start(t, l.source, func(_ context.Context, d *longshore.Delivery) error {
				if d.Origin.Redelivered {
					redelivered.Add(1)
				}
				<-time.After(300 * time.Millisecond) // so long that the broker does not limit the rate, even on a busy machine
				done.Add(1)
				return nil
			}, container.Config{Workers: container.Workers{Min: 1, Max: 30}, Autoscale: autoscale.Adaptive{Hold: 5 * time.Second},
				OnEvent: func(e container.Event) {
					if e.Kind == container.EventScaled {
						t.Logf("%5.1f s  %d → %d  %s", e.Time.Sub(time.Unix(0, begin.Load())).Seconds(), e.From, e.To, e.Reason)
					}
				}})
			send(t, l.source, names("m", n)...)
			begin.Store(time.Now().UnixNano())
			c.Resume()
			eventually(t, patience, "20 of 30 workers", func() bool {
				if int(done.Load()) > n-500 { // a busy machine takes longer to see what more workers bring
					send(t, l.source, names(fmt.Sprint("more", n, "-"), 200)...)
					n += 200
				}
				st := c.Stats()
				if st.Target < st.Min || st.Target > st.Max {
					t.Errorf("target %d outside %d to %d", st.Target, st.Min, st.Max)
				}
				return st.Workers >= 20
			})
			up := time.Since(time.Unix(0, begin.Load()))
			l.check(t)
			eventually(t, patience, "the burst is handled", func() bool { return int(done.Load()) == n })
			ended := time.Now()
			eventually(t, patience, "one worker", func() bool {
				st := c.Stats()
				return st.Workers == 1 && st.Target == 1
			})
			t.Logf("%s: 20 workers after %.1f s, back at 1 after %.1f s (Hold 5 s)", name, up.Seconds(), time.Since(ended).Seconds())
			l.check(t)
			send(t, l.source, "last")
			eventually(t, patience, "a trickle is handled", func() bool { return int(done.Load()) == n+1 })
			if err := c.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
			if st := c.Stats(); redelivered.Load() != 0 || st.Generation != 1 {
				t.Errorf("%d redelivered, %d subscriptions", redelivered.Load(), st.Generation)
			}
		})
	}
}

// F-E01: one handler of ten seconds, a memory of one: one worker and one execution.
func TestWorkInProgressIsLoad(t *testing.T) {
	for name, newLab := range labs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			var runs, ended atomic.Int64
			c := start(t, l.source, func(context.Context, *longshore.Delivery) error {
				runs.Add(1)
				<-time.After(10 * time.Second)
				ended.Add(1)
				return nil
			}, container.Config{Workers: container.Workers{Min: 1, Max: 10}, Autoscale: autoscale.Adaptive{Hold: time.Second}})
			send(t, l.source, "long")
			c.Resume()
			eventually(t, 20*time.Second, "it runs", func() bool { return runs.Load() == 1 })
			eventually(t, 30*time.Second, "it ends", func() bool {
				if st := c.Stats(); ended.Load() == 0 && (st.Workers != 1 || st.Target != 1) {
					t.Errorf("%d workers, target %d", st.Workers, st.Target)
				}
				return ended.Load() == 1
			})
			if err := c.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("it ran %d times", n)
			}
		})
	}
}

// F-E02: behind four places of a downstream, the pool does not stay above twice that.
func TestDownstreamOfFour(t *testing.T) {
	t.Parallel()
	l := rabbit(t)
	places := make(chan struct{}, 4)
	var done atomic.Int64
	c := start(t, l.source, func(context.Context, *longshore.Delivery) error {
		places <- struct{}{}
		<-time.After(50 * time.Millisecond)
		<-places
		done.Add(1)
		return nil
	}, container.Config{Workers: container.Workers{Min: 1, Max: 64}})
	sent := 0
	// The queue never runs dry: without load there is no knee to be found.
	load := func() {
		if sent-int(done.Load()) < 800 {
			send(t, l.source, names(fmt.Sprint("m", sent, "-"), 400)...)
			sent += 400
		}
	}
	load()
	c.Resume()
	eventually(t, patience, "a knee is found", func() bool { load(); return c.Stats().Scaling.Knee > 0 })
	// On a busy machine the first knee may be one of its noise: the policy looks again.
	var means []string
	low := 0 // stretches in a row
	for range 12 {
		sum, samples := 0, 0
		until := done.Load() + 400
		eventually(t, patience, "400 more", func() bool {
			load()
			sum, samples = sum+c.Stats().Target, samples+1
			return done.Load() >= until
		})
		mean := float64(sum) / float64(samples)
		means = append(means, fmt.Sprintf("%.1f, knee %d", mean, c.Stats().Scaling.Knee))
		if low++; mean > 8 {
			low = 0
		}
		if low == 2 {
			t.Logf("workers in the mean of 400 messages: %q", means)
			return
		}
	}
	t.Errorf("workers for 4 places, in the mean of 400 messages: %q", means)
}
