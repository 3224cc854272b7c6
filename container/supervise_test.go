package container_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

func failure(code longshore.Code) error {
	return &longshore.Error{Code: code, Op: "open", Err: errors.New("provoked")}
}

func noop(*longshore.Delivery) error { return nil }

// F-B01: a failure in any step of recovery goes back to its beginning.
func TestEveryAttemptOfARecoveryMayFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var handled atomic.Int32
		src := b.Queue("q", memory.QueueConfig{})
		c := start(t, src, handle(func(*longshore.Delivery) error { handled.Add(1); return nil }), container.Config{})
		for n := 1; n <= 8; n++ {
			before := handled.Load()
			b.FailOpen("q", n, failure(longshore.CodeConnLost))
			b.Drop("q")
			synctest.Wait()
			if st := c.Stats(); st.State != container.StateRecovering || !st.Live || st.Ready {
				t.Fatalf("after the cut: %v live %v ready %v %s", st.State, st.Live, st.Ready, st.Reason)
			}
			publish(t, b, "q", "m")
			wait(2 * time.Minute) // eight delays up to the cap of 30 s, jitter of 20 % included: at most 98 s
			if handled.Load() != before+1 || b.Inspect("q").Consumers != 1 {
				t.Fatalf("n=%d: %d handled, %d consumers", n, handled.Load()-before, b.Inspect("q").Consumers)
			}
		}
	})
}

// F-B02: a broker that is away at the first start.
func TestBrokerDownAtFirstStart(t *testing.T) {
	for _, waits := range []bool{false, true} {
		t.Run(fmt.Sprint("WaitForBroker=", waits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				b.FailOpen("q", -1, failure(longshore.CodeUnreachable))
				publish(t, b, "q", "m")
				var handled atomic.Int32
				c, err := container.New(b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { handled.Add(1); return nil }),
					quiet(container.Config{WaitForBroker: waits}))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				started := make(chan error, 1)
				go func() { started <- c.Start(ctx) }()
				wait(30 * time.Second)
				if st := c.Stats(); !st.Live || st.Ready {
					t.Errorf("%+v", st)
				}
				if waits {
					if len(started) > 0 {
						t.Fatal("Start returned without the broker")
					}
					wait(31 * time.Second)
					if err := <-started; !errors.Is(err, longshore.CodeUnreachable) || c.State() != container.StateStopped {
						t.Fatalf("%v, %v", err, c.State())
					}
					return
				}
				if err := <-started; err != nil || c.State() != container.StateRecovering {
					t.Fatalf("%v, %v", err, c.State())
				}
				b.FailOpen("q", 0, nil)
				wait(35 * time.Second)
				if handled.Load() != 1 || c.State() != container.StateRunning {
					t.Errorf("%d handled, %v", handled.Load(), c.State())
				}
				stop(t, c)
			})
		})
	}
}

// countedOpens counts the attempts to open a source.
type countedOpens struct {
	transport.Source
	n atomic.Int32
}

func (s *countedOpens) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	s.n.Add(1)
	return s.Source.Open(ctx, o)
}

// F-B02: what waiting cannot cure fails the first start, and later is retried.
func TestFatalErrorsFailTheFirstStartOnly(t *testing.T) {
	for _, code := range []longshore.Code{longshore.CodeAuth, longshore.CodeForbidden, longshore.CodeVhost, longshore.CodeNotFound, longshore.CodeMismatch} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			b.FailOpen("q", 1, failure(code))
			src := &countedOpens{Source: b.Queue("q", memory.QueueConfig{})}
			c, err := container.New(src, handle(noop), quiet(container.Config{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(context.Background()); !errors.Is(err, code) || c.State() != container.StateStopped || b.Connections() != 0 {
				t.Fatalf("%s: %v, %v", code, err, c.State())
			}
			<-c.Done()
			if err := c.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			b.FailOpen("q", 3, failure(code))
			b.Drop("q")
			wait(time.Minute)
			// The failed start, the second one, three refusals and the subscription after them.
			if c.State() != container.StateRunning || src.n.Load() != 6 || c.Stats().Generation != 2 {
				t.Errorf("%s: %v, %d attempts, generation %d", code, c.State(), src.n.Load(), c.Stats().Generation)
			}
			stop(t, c)
		})
	}
}

// An exclusive consumer that finds the queue taken keeps trying.
func TestExclusiveConsumerWaitsForTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := b.Queue("q", memory.QueueConfig{Exclusive: true})
		first := start(t, src, handle(noop), container.Config{Name: "first"})
		second := start(t, src, handle(noop), container.Config{Name: "second"})
		wait(time.Minute)
		if second.State() != container.StateRecovering {
			t.Fatal(second.State())
		}
		stop(t, first)
		wait(31 * time.Second)
		if second.State() != container.StateRunning {
			t.Error(second.State())
		}
		stop(t, second)
	})
}

// F-B03, F-B04: the link drops while handlers are at work and is back before they
// end: their acks settle nothing on the new connection.
func TestSettlementsBelongToTheirConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20)...)
		var causes, acks atomic.Int32
		var mu sync.Mutex
		finished := map[string]int{}
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			if !d.Origin.Redelivered && len(d.Body) > 0 && d.Body[0] == 'm' {
				<-ctx.Done()
				if errors.Is(context.Cause(ctx), longshore.ErrLost) && !d.Owned() {
					causes.Add(1)
				}
				wait(5 * time.Second)
				if errors.Is(d.Ack(context.Background()), longshore.ErrLost) {
					acks.Add(1)
				}
				return nil
			}
			mu.Lock()
			finished[string(d.Body)]++
			mu.Unlock()
			return nil
		}), container.Config{Workers: container.Workers{Min: 20, Max: 20}})
		synctest.Wait()
		b.Drop("q")
		var others []string
		for i := range 20 {
			others = append(others, fmt.Sprint("new", i))
		}
		publish(t, b, "q", others...)
		wait(20 * time.Second)
		st := c.Stats()
		if causes.Load() != 20 || acks.Load() != 20 || st.VerdictLost != 20 || st.Lost != 20 {
			t.Errorf("%d contexts told, %d late acks refused, %d verdicts lost, %d lost", causes.Load(), acks.Load(), st.VerdictLost, st.Lost)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 40")
		for body, n := range finished {
			if n != 1 {
				t.Errorf("%s handled %d times", body, n)
			}
		}
		if len(finished) != 40 || b.Inspect("q").Consumers != 0 {
			t.Errorf("%d handled", len(finished))
		}
	})
}

// After a reopen each key waits for its lost handler that still runs.
func TestKeyWaitsForItsLostHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "a:1", "a:2", "b:1")
		var order seen
		var running atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if string(d.Key) == "b" {
				return nil
			}
			if running.Add(1) > 1 {
				t.Error("two handlers of one key")
			}
			defer running.Add(-1)
			order.add(fmt.Sprintf("%s/%v", d.Body, d.Origin.Redelivered))
			if !d.Origin.Redelivered {
				wait(20 * time.Second)
			}
			return nil
		}), container.Config{Order: container.ByKey})
		wait(time.Second)
		b.Drop("q")
		wait(time.Minute)
		if got := fmt.Sprint(order.all()); got != "[a:1/false a:1/true a:2/true]" {
			t.Error(got)
		}
		stop(t, c)
	})
}

// F-D06: a delivery that is lost alone (its lease) comes again, and what is behind
// it in its lane must not be handled before: it is given back, unhandled.
func TestFollowersOfALostDeliveryAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "a:1", "a:2", "a:3", "b:1")
		var got seen
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if string(d.Body) == "a:1" {
				d.Root().Lose(longshore.ErrLost)
			}
			got.add(fmt.Sprintf("%s/%v/%d", d.Body, d.Origin.Redelivered, d.Attempt))
			return nil
		}), container.Config{Order: container.ByKey, Workers: container.Workers{Max: 1}})
		wait(time.Second)
		if s := fmt.Sprint(got.all()); s != "[a:1/false/1 b:1/false/1 a:2/true/1 a:3/true/1]" {
			t.Error(s)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 1, unsettled 0, delayed 0, acked 3")
	})
}

// F-G06: two hours of outage: one attempt per cap, no more.
func TestReconnectRateIsFlat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := &countedOpens{Source: b.Queue("q", memory.QueueConfig{})}
		c := start(t, src, handle(noop), container.Config{})
		b.FailOpen("q", -1, failure(longshore.CodeUnreachable))
		b.Drop("q")
		wait(time.Hour)
		before := src.n.Load()
		wait(time.Hour)
		if n := src.n.Load() - before; n < 110 || n > 160 {
			t.Errorf("%d attempts in an hour with a cap of 30 s", n)
		}
		begin := time.Now()
		stop(t, c)
		if time.Since(begin) > time.Second {
			t.Error("stop waited for the broker")
		}
	})
}

// flapping is a source whose consumers die at once.
type flapping struct {
	transport.Source
	b     *memory.Broker
	opens *atomic.Int32
}

func (f flapping) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := f.Source.Open(ctx, o)
	f.opens.Add(1)
	f.b.Drop("q")
	return c, err
}

func TestConsumerThatDiesAtOnceIsNotReopenedInAHotLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var opens atomic.Int32
		c := start(t, flapping{b.Queue("q", memory.QueueConfig{}), b, &opens}, handle(noop), container.Config{})
		wait(time.Hour)
		if n := opens.Load(); n > 170 {
			t.Errorf("%d openings in an hour", n)
		}
		stop(t, c)
	})
}

func TestPauseTakesNothingAndKeepsTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var handled atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { handled.Add(1); return nil }), container.Config{StartPaused: true})
		publish(t, b, "q", numbered(50)...)
		wait(time.Minute)
		if st := c.Stats(); handled.Load() != 0 || st.State != container.StatePaused || !st.Ready || st.Reason != "it is paused by Config.StartPaused; longshore ctl resume q ends that" {
			t.Errorf("%d handled, %+v", handled.Load(), st)
		}
		// The wish outlives the connection.
		b.Drop("q")
		wait(time.Minute)
		if handled.Load() != 0 || c.State() != container.StatePaused {
			t.Errorf("%d handled after the reopen, %v", handled.Load(), c.State())
		}
		c.Resume()
		wait(time.Second)
		if handled.Load() != 50 {
			t.Errorf("%d handled", handled.Load())
		}
		stop(t, c)
	})
}

// F-A07: calls in any order from several goroutines.
func TestCallsFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.Delay(memory.OpOpen, 3*time.Millisecond)
		b.Delay(memory.OpClose, 3*time.Millisecond)
		publish(t, b, "q", numbered(200)...)
		c, err := container.New(b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { wait(time.Millisecond); return nil }), quiet(container.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		ctx := context.Background()
		calls := []func(){func() { _ = c.Start(ctx) }, func() { _ = c.Stop(ctx) }, c.Pause, c.Resume, func() { _ = c.Scale(1, 3) },
			func() { c.Stats() }, func() { c.Report() }, func() { c.State() }, func() { <-time.After(time.Millisecond) }}
		for i := range 8 {
			wg.Go(func() {
				for j := range 50 {
					calls[(i*7+j*3)%len(calls)]()
					wait(time.Duration(i) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if err := c.Stop(ctx); err != nil {
			t.Error(err)
		}
		c.Resume()
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 200")
	})
}

func TestRunStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, err := container.New(b.Queue("q", memory.QueueConfig{}), handle(noop), quiet(container.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil || c.State() != container.StateStopped || c.DrainReport() == "" {
			t.Errorf("%v, %v", err, c.State())
		}
	})
}
