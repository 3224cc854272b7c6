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
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// held describes where a queue's messages are.
func held(b *memory.Broker, q string) string {
	i := b.Inspect(q)
	return fmt.Sprintf("ready %d, unsettled %d, delayed %d, acked %d", i.Ready, i.Unsettled, i.Delayed, i.Acked)
}

func wantHeld(t testing.TB, b *memory.Broker, q, want string) {
	t.Helper()
	if got := held(b, q); got != want {
		t.Errorf("queue %q: %s; want %s", q, got, want)
	}
}

// F-A01: what our own stop cancels is neither success nor failure, whatever the
// handler makes of its dead context.
func TestStopCancelsHandlersAndNothingIsCounted(t *testing.T) {
	shapes := map[string]func(ctx context.Context, d *longshore.Delivery) error{
		"the cause": func(ctx context.Context, _ *longshore.Delivery) error { return context.Cause(ctx) },
		"the error": func(ctx context.Context, _ *longshore.Delivery) error { return ctx.Err() },
		"another error": func(context.Context, *longshore.Delivery) error {
			return errors.New("canceling statement due to user request")
		},
		"a release": func(context.Context, *longshore.Delivery) error {
			return longshore.Release(errors.New("lock busy"), time.Hour)
		},
	}
	for name, result := range shapes {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			t.Run(fmt.Sprint(name, "/", order), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					var bodies []string
					for i := range 100 {
						bodies = append(bodies, fmt.Sprintf("k%d:%d", i%7, i))
					}
					publish(t, b, "q", bodies...)
					block := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
						<-ctx.Done()
						if !errors.Is(context.Cause(ctx), longshore.ErrStopping) {
							t.Errorf("cause %v", context.Cause(ctx))
						}
						return result(ctx, d)
					})
					src := b.Queue("q", memory.QueueConfig{})
					c := start(t, src, block, container.Config{DrainTimeout: time.Second, Order: order, DeadLetter: container.DeadLetter{To: "dead"},
						Redelivery: container.Redelivery{MaxAttempts: 1}, Workers: container.Workers{Min: 5}})
					synctest.Wait()
					inFlight := c.Stats().InFlight
					begin := time.Now()
					rep := stop(t, c)
					if took := time.Since(begin); took < time.Second || took > 1100*time.Millisecond {
						t.Errorf("stop took %v", took)
					}
					wantHeld(t, b, "q", "ready 100, unsettled 0, delayed 0, acked 0")
					if n := b.Inspect("dead").Published; n != 0 {
						t.Errorf("%d dead-lettered", n)
					}
					if rep.Completed != 0 || rep.Released < inFlight {
						t.Errorf("%v with %d in flight", rep, inFlight)
					}
					var worst atomic.Int32
					var n atomic.Int32
					c = start(t, src, handle(func(d *longshore.Delivery) error {
						worst.Store(max(worst.Load(), int32(d.Attempt)))
						n.Add(1)
						return nil
					}), container.Config{Workers: container.Workers{Max: 1}})
					synctest.Wait()
					if stop(t, c); n.Load() != 100 || worst.Load() != 1 {
						t.Errorf("%d handled after the restart, highest attempt %d", n.Load(), worst.Load())
					}
				})
			})
		}
	}
}

// F-A01: also while deliveries wait for a retry here.
func TestStopGivesParkedRetriesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "k:1", "k:2", "other:3")
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if string(d.Key) == "k" {
				return longshore.Retry(errors.New("later"), time.Hour)
			}
			return nil
		}), container.Config{Order: container.ByKey})
		synctest.Wait()
		if st := c.Stats(); st.Parked != 2 || st.InFlight != 0 {
			t.Errorf("parked %d, in flight %d", st.Parked, st.InFlight)
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 2, unsettled 0, delayed 0, acked 1")
		attempts := map[string]int{}
		c = start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			attempts[string(d.Body)] = d.Attempt
			return nil
		}), container.Config{Workers: container.Workers{Max: 1}})
		synctest.Wait()
		stop(t, c)
		if attempts["k:1"] != 2 || attempts["k:2"] != 1 {
			t.Errorf("attempts after the restart: %v", attempts)
		}
	})
}

// F-A02: a handler that ignores its context is waited for, and what it did is
// settled.
func TestWhatWasDoneIsSettledWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.Delay(memory.OpSettle, 20*time.Millisecond)
		publish(t, b, "q", "m")
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			wait(2 * time.Second)
			publish(t, b, "results", "r")
			return nil
		}), container.Config{DrainTimeout: 10 * time.Second})
		wait(500 * time.Millisecond)
		begin := time.Now()
		rep := stop(t, c)
		if took := time.Since(begin); took > 1600*time.Millisecond {
			t.Errorf("stop took %v", took)
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
		if n := b.Inspect("results").Published; n != 1 || rep.Completed != 1 {
			t.Errorf("%d results, %v", n, rep)
		}
	})
}

// F-A03: settlements below the batch threshold are flushed at stop, or named.
func TestSettlementsAreFlushedAtStop(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, reachable := range []bool{true, false} {
			t.Run(fmt.Sprint(n, " reachable=", reachable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					publish(t, b, "q", numbered(n)...)
					var done atomic.Int32
					c := start(t, b.Queue("q", memory.QueueConfig{SettleLinger: time.Hour, Prefetch: 250}), handle(func(*longshore.Delivery) error {
						done.Add(1)
						return nil
					}), container.Config{})
					synctest.Wait()
					if int(done.Load()) != n || b.Inspect("q").Acked != 0 {
						t.Fatalf("%d done, %s", done.Load(), held(b, "q"))
					}
					if !reachable {
						b.Delay(memory.OpFlush, time.Hour)
						b.Delay(memory.OpClose, time.Hour)
					}
					begin := time.Now()
					err := c.Stop(context.Background())
					took, rep := time.Since(begin), c.Report()
					if reachable {
						if err != nil || took > time.Second || rep.Unflushed != 0 {
							t.Errorf("%v after %v: %v", err, took, rep)
						}
						wantHeld(t, b, "q", fmt.Sprintf("ready 0, unsettled 0, delayed 0, acked %d", n))
						return
					}
					if !errors.Is(err, longshore.CodeDrain) || took > c.StopBudget()+100*time.Millisecond || rep.Unflushed != n || len(rep.UnflushedIDs) != n {
						t.Errorf("%v after %v: %v %v", err, took, rep, rep.UnflushedIDs)
					}
				})
			})
		}
	}
}

// F-A03: a broker that takes seconds to confirm has them, where the drain's time is not
// over; what it would not confirm in time is done twice.
func TestSlowBrokerHasTimeToConfirmTheLast(t *testing.T) {
	for _, drain := range []time.Duration{0, time.Second, -1} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", numbered(9)...)
			c := start(t, b.Queue("q", memory.QueueConfig{SettleLinger: time.Hour}), handle(func(*longshore.Delivery) error { return nil }),
				container.Config{DrainTimeout: drain})
			synctest.Wait()
			b.Delay(memory.OpFlush, 3*time.Second)
			begin := time.Now()
			err := c.Stop(context.Background())
			took, rep := time.Since(begin), c.Report()
			if wanted := 3 * time.Second; drain == 0 {
				if err != nil || took != wanted {
					t.Errorf("%v after %v: %v", err, took, rep)
				}
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 9")
			} else if !errors.Is(err, longshore.CodeDrain) || took > c.StopBudget() || rep.Unflushed == 0 {
				t.Errorf("with %v for handlers: %v after %v: %v", drain, err, took, rep)
			}
		})
	}
}

// F-A04: what a receive brings after stop began is given back.
func TestReceiveThatAnswersAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			for i := range 50 {
				b := memory.New(memory.Config{})
				b.Delay(memory.OpReceive, 100*time.Millisecond)
				b.Delay(memory.OpCancel, time.Duration(i)*5*time.Millisecond)
				publish(t, b, "q", numbered(100)...)
				var handled atomic.Int32
				c := start(t, b.Queue("q", memory.QueueConfig{Pull: i%2 == 0}), handle(func(*longshore.Delivery) error {
					handled.Add(1)
					wait(30 * time.Millisecond)
					return nil
				}), container.Config{Order: order})
				wait(time.Duration(i) * 7 * time.Millisecond)
				stop(t, c)
				wantHeld(t, b, "q", fmt.Sprintf("ready %d, unsettled 0, delayed 0, acked %d", 100-handled.Load(), handled.Load()))
			}
		}
	})
}

func TestDrainEndsWithTheLastOfFiftyHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(500)...)
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			wait(2 * time.Second)
			return nil
		}), container.Config{Workers: container.Workers{Min: 50, Max: 50}})
		synctest.Wait()
		begin := time.Now()
		rep := stop(t, c)
		if took := time.Since(begin); took > 2100*time.Millisecond || rep.Completed != 50 {
			t.Errorf("stop took %v: %v", took, rep)
		}
		wantHeld(t, b, "q", "ready 450, unsettled 0, delayed 0, acked 50")
	})
}

// Cancel takes a second here: nothing may start meanwhile.
func TestNothingStartsWhileCancelIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.Delay(memory.OpCancel, time.Second)
		publish(t, b, "q", numbered(100)...)
		var late atomic.Int32
		var stopping atomic.Bool
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error {
			if stopping.Load() {
				late.Add(1)
			}
			wait(100 * time.Millisecond)
			return nil
		}), container.Config{Workers: container.Workers{Min: 3}})
		wait(250 * time.Millisecond)
		stopping.Store(true)
		stop(t, c)
		if late.Load() > 0 {
			t.Errorf("%d handlers started after Stop", late.Load())
		}
	})
}

// A handler that never returns cannot hold Stop; its late ack settles nothing.
func TestStopIsBoundedByAHandlerThatNeverReturns(t *testing.T) {
	for _, manual := range []container.Settle{container.SettleAuto, container.SettleManual} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", "m1")
			release, late := make(chan struct{}), make(chan error, 1)
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
				<-release
				late <- d.Ack(context.Background())
				return nil
			}), container.Config{DrainTimeout: time.Second, CancelGrace: time.Second, Settle: manual})
			synctest.Wait()
			begin := time.Now()
			err := c.Stop(context.Background())
			rep := c.Report()
			if took := time.Since(begin); took > c.StopBudget()+100*time.Millisecond {
				t.Errorf("stop took %v", took)
			}
			if !errors.Is(err, longshore.CodeDrain) || rep.Abandoned != 1 || !strings.Contains(err.Error(), rep.AbandonedIDs[0]) {
				t.Errorf("%v, %+v", err, rep)
			}
			wantHeld(t, b, "q", "ready 1, unsettled 0, delayed 0, acked 0")
			close(release)
			if err := <-late; !errors.Is(err, longshore.ErrLost) && !errors.Is(err, longshore.ErrClosed) {
				t.Errorf("late ack: %v", err)
			}
			synctest.Wait()
			if c.Stats().Workers != 0 {
				t.Error("a worker is left")
			}
		})
	}
}

// With an order the followers of a running head stay until it ends, also those
// that the transport had buffered.
func TestFollowersOfARunningHeadAreNotGivenBackBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var bodies []string
		for i := range 30 {
			bodies = append(bodies, fmt.Sprintf("a:%d", i), fmt.Sprintf("b:%d", i))
		}
		publish(t, b, "q", bodies...)
		src := b.Queue("q", memory.QueueConfig{Prefetch: 60})
		var headEnded atomic.Bool
		c := start(t, src, handle(func(d *longshore.Delivery) error {
			wait(3 * time.Second)
			headEnded.Store(true)
			return nil
		}), container.Config{Order: container.ByKey, Workers: container.Workers{Max: 1}})
		synctest.Wait()
		other := start(t, src, handle(func(d *longshore.Delivery) error {
			if string(d.Key) == "a" && !headEnded.Load() {
				t.Errorf("%s ran beside its head", d.Body)
			}
			return nil
		}), container.Config{Order: container.ByKey})
		stop(t, c)
		synctest.Wait()
		stop(t, other)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 60")
	})
}

// F-G01 (b, c): a broker that counts returns dead-letters nothing over orderly
// restarts: what was received is worked off.
func TestRestartsDoNotUseUpADeliveryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.Delay(memory.OpCancel, 5*time.Millisecond)
		publish(t, b, "q", numbered(1000)...)
		src := b.Queue("q", memory.QueueConfig{CountsReturns: true, DeliveryLimit: 3, DeadLetter: "dead", Prefetch: 20})
		for range 30 {
			c := start(t, src, handle(func(*longshore.Delivery) error {
				wait(10 * time.Millisecond)
				return nil
			}), container.Config{Workers: container.Workers{Max: 2}})
			wait(25 * time.Millisecond)
			rep := stop(t, c)
			if rep.Released > 0 || rep.Completed == 0 {
				t.Errorf("%v", rep)
			}
		}
		if i := b.Inspect("dead"); i.Published > 0 {
			t.Errorf("%d dead-lettered", i.Published)
		}
	})
}

// The role of a single active consumer moves on only when nothing of ours runs.
func TestSingleActiveConsumerIsCancelledLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(20)...)
		src := b.Queue("q", memory.QueueConfig{SingleActive: true})
		var running atomic.Int32
		c := start(t, src, handle(func(*longshore.Delivery) error {
			running.Add(1)
			defer running.Add(-1)
			wait(time.Second)
			return nil
		}), container.Config{Workers: container.Workers{Min: 4}})
		var overlap atomic.Int32
		other := start(t, src, handle(func(*longshore.Delivery) error {
			overlap.Add(running.Load())
			return nil
		}), container.Config{})
		synctest.Wait()
		if rep := stop(t, c); rep.Completed != 4 {
			t.Errorf("%v", rep)
		}
		synctest.Wait()
		stop(t, other)
		if overlap.Load() != 0 {
			t.Error("the next consumer worked beside our handlers")
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 20")
	})
}

// The role of a busy single active consumer is handed on in order: what was received
// is worked off, as the broker counts what comes back, but nothing more is received;
// the rest, also what is cut off at the deadline, comes back in one, counted once.
func TestBusySingleActiveConsumerHandsOnInOrder(t *testing.T) {
	for _, budget := range []time.Duration{time.Minute, 3 * time.Millisecond} {
		t.Run(budget.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				src := b.Queue("q", memory.QueueConfig{SingleActive: true, CountsReturns: true, Prefetch: 200})
				var got seen
				work := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(10 * time.Millisecond):
					}
					if d.Attempt > 2 {
						t.Errorf("%s: attempt %d", d.Body, d.Attempt)
					}
					got.add(string(d.Body))
					return nil
				})
				cfg := container.Config{Order: container.ByKey, Workers: container.Workers{Min: 4, Max: 4}, DrainTimeout: budget}
				c, next := start(t, src, work, cfg), start(t, src, work, cfg)
				publish(t, b, "q", keyed(600, 7)...)
				wait(202 * time.Millisecond)
				before, held := got.len(), c.Stats().InFlight
				rep := stop(t, c)
				if rep.Abandoned+rep.Lost+rep.Unflushed != 0 || rep.Completed > held || rep.Completed+rep.Released < held {
					t.Errorf("%d held: %v", held, rep)
				}
				if cut := rep.Released > 0; cut != (budget < time.Second) || got.len()-before != rep.Completed {
					t.Errorf("%d held, %d done while draining: %v", held, got.len()-before, rep)
				}
				wait(time.Minute)
				inOrder(t, got.all(), 600)
				stop(t, next)
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 600")
			})
		})
	}
}

// A retry that is due after the drain's time does not hold up a single active
// consumer that has nothing else to do.
func TestSingleActiveConsumerDoesNotWaitForALongRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", keyed(10, 1)...)
		src := b.Queue("q", memory.QueueConfig{SingleActive: true, CountsReturns: true})
		c := start(t, src, handle(func(d *longshore.Delivery) error {
			return longshore.Retry(errors.New("not yet"), time.Hour)
		}), container.Config{Order: container.ByKey})
		synctest.Wait()
		if rep := stop(t, c); rep.Took > time.Second || rep.Released != 10 {
			t.Errorf("after %v: %v", rep.Took, rep)
		}
		wantHeld(t, b, "q", "ready 10, unsettled 0, delayed 0, acked 0")
	})
}

// A stop that is asked for again can only become shorter.
func TestSecondStopWithADeadContextShortensTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "m")
		c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}), container.Config{DrainTimeout: time.Hour})
		synctest.Wait()
		first := make(chan time.Duration)
		begin := time.Now()
		go func() {
			_ = c.Stop(context.Background())
			first <- time.Since(begin)
		}()
		wait(time.Second)
		dead, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Stop(dead)
		if took := <-first; took > 1100*time.Millisecond {
			t.Errorf("the first stop took %v", took)
		}
		wantHeld(t, b, "q", "ready 1, unsettled 0, delayed 0, acked 0")
	})
}

// stubborn is a consumer whose calls never return.
type stubborn struct{ transport.Source }

type stubbornConsumer struct {
	transport.Consumer
	quit chan struct{}
}

func (s stubborn) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return stubbornConsumer{c, make(chan struct{})}, err
}

func (c stubbornConsumer) Cancel(context.Context) error  { <-c.quit; return nil }
func (c stubbornConsumer) Release(context.Context) error { <-c.quit; return nil }
func (c stubbornConsumer) Flush(context.Context) error   { <-c.quit; return nil }
func (c stubbornConsumer) Close(ctx context.Context) error {
	defer close(c.quit)
	return c.Consumer.Close(ctx)
}

// A transport that breaks its promise to return does not take Stop with it.
func TestStopIsBoundedByATransportThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(30)...)
		c := start(t, stubborn{b.Queue("q", memory.QueueConfig{})}, handle(func(*longshore.Delivery) error { return nil }), container.Config{DrainTimeout: time.Second})
		synctest.Wait()
		begin := time.Now()
		err := c.Stop(context.Background())
		if took := time.Since(begin); took > c.StopBudget()+500*time.Millisecond {
			t.Errorf("stop took %v", took)
		}
		if !errors.Is(err, longshore.CodeDrain) || c.Report().Unflushed == 0 {
			t.Errorf("%v: %v", err, c.Report())
		}
	})
}

// Who cut a drain short is not told to raise what he did not reach.
func TestADrainThatWasCutShortSaysSo(t *testing.T) {
	for _, cut := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", numbered(1)...)
			forever := make(chan struct{})
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { <-forever; return nil }), container.Config{DrainTimeout: 8 * time.Second})
			synctest.Wait()
			ctx, cancel := context.WithCancel(context.Background())
			if cut {
				ctx, cancel = context.WithTimeout(ctx, 4*time.Second)
			}
			defer cancel()
			err := c.Stop(ctx)
			if err == nil || strings.Contains(err.Error(), "cut short of DrainTimeout 8s") != cut || strings.Contains(err.Error(), "raise DrainTimeout") == cut {
				t.Errorf("cut short %v: %v", cut, err)
			}
			close(forever)
			synctest.Wait()
		})
	}
}

// unreturnable is a source whose deliveries cannot be given back.
type unreturnable struct {
	transport.Source
	hangs bool // until the call's context ends
}

type unreturnableConsumer struct {
	transport.Consumer
	hangs bool
}

type unreturnableSettler struct{ hangs bool }

func (s unreturnable) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return unreturnableConsumer{c, s.hangs}, err
}

func (c unreturnableConsumer) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	ds, err := c.Consumer.Receive(ctx, n)
	out := make([]*longshore.Delivery, len(ds))
	for i, d := range ds {
		out[i] = longshore.NewDelivery(context.Background(), unreturnableSettler{c.hangs}, uint64(i))
		out[i].Message, out[i].Attempt = d.Message, d.Attempt
	}
	return out, err
}

func (unreturnableSettler) Ack(context.Context, uint64) error           { return nil }
func (unreturnableSettler) Reject(context.Context, uint64, error) error { return nil }
func (s unreturnableSettler) Nack(ctx context.Context, _ uint64, _ time.Duration, _ int) error {
	if s.hangs {
		<-ctx.Done()
	}
	return &longshore.Error{Code: longshore.CodeConnLost, Op: "nack", Err: errors.New("the copy was not confirmed")}
}
func (unreturnableSettler) Extend(context.Context, uint64, time.Duration) error { return nil }

// What a drain cannot give back is reported by its name, in time also where giving
// back hangs. The broker has it back when the consumer closes.
func TestDrainCannotGiveBack(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", numbered(5)...)
			src := unreturnable{b.Queue("q", memory.QueueConfig{}), hangs}
			c := start(t, src, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
				<-ctx.Done()
				return nil
			}), container.Config{DrainTimeout: -1, Workers: container.Workers{Max: 1}})
			synctest.Wait()
			begin := time.Now()
			err := c.Stop(context.Background())
			if took := time.Since(begin); took > c.StopBudget() {
				t.Errorf("stop took %v", took)
			}
			if rep := c.Report(); !errors.Is(err, longshore.CodeDrain) || rep.Unflushed < 4 || len(rep.UnflushedIDs) != rep.Unflushed {
				t.Errorf("%v: %v", err, rep)
			}
			wantHeld(t, b, "q", "ready 5, unsettled 0, delayed 0, acked 0")
		})
	}
}

// Each message is in the report once, whatever became of it on the way: a retry that
// waits during a drain is not completed yet.
func TestDrainReportAddsUp(t *testing.T) {
	for _, counts := range []bool{false, true} {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			for _, budget := range []time.Duration{time.Second, time.Minute} {
				for _, manual := range []container.Settle{container.SettleAuto, container.SettleManual} {
					t.Run(fmt.Sprintf("counts returns %t, order %s, %v, by hand %t", counts, order, budget, manual == container.SettleManual), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							b := memory.New(memory.Config{})
							publish(t, b, "q", "a:bad", "a:2", "b:bad", "b:2", "c:1", "d:release")
							c := start(t, b.Queue("q", memory.QueueConfig{CountsReturns: counts}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
								wait(300 * time.Millisecond)
								switch {
								case strings.HasSuffix(string(d.Body), "bad") && d.Attempt < 3:
									return longshore.Retry(errBad, 500*time.Millisecond)
								case strings.HasSuffix(string(d.Body), "release") && time.Now().Nanosecond() < 500_000_000:
									return longshore.Release(errBad, 400*time.Millisecond)
								case manual == container.SettleManual:
									return d.Ack(ctx)
								}
								return nil
							}), container.Config{Order: order, Settle: manual, DrainTimeout: budget})
							wait(100 * time.Millisecond)
							rep := stop(t, c)
							if sum := rep.Completed + rep.Released + rep.Abandoned + rep.Lost; sum != 6 || rep.Bad() {
								t.Errorf("%d of 6: %v", sum, rep)
							}
							if done := int(b.Inspect("q").Acked); rep.Completed != done {
								t.Errorf("%d are done: %v", done, rep)
							}
						})
					})
				}
			}
		}
	}
}

// While received work is worked off, what cannot be dead-lettered waits here like a
// retry: given back, its followers would overtake it.
func TestDrainKeepsTheOrderOfWhatCannotBeMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "k:1", "k:2", "other:1")
		b.FailPublish("dead", -1, errBad)
		var got seen
		c := start(t, b.Queue("q", memory.QueueConfig{CountsReturns: true}), handle(func(d *longshore.Delivery) error {
			got.add(string(d.Body))
			wait(100 * time.Millisecond)
			if string(d.Body) == "k:1" {
				return longshore.Reject(errBad)
			}
			return nil
		}), container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{To: "dead"}})
		wait(50 * time.Millisecond)
		stop(t, c)
		if s := fmt.Sprint(got.all()); strings.Contains(s, "k:2") {
			t.Errorf("handled %s", s)
		}
		wantHeld(t, b, "q", "ready 2, unsettled 0, delayed 0, acked 1")
	})
}

// A consumer that a stop cancels is not taken for one that the broker ended: it is flushed.
func TestACancelledConsumerIsFlushed(t *testing.T) {
	for _, counts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", "1", "2", "3")
			src := &flushCounter{Source: b.Queue("q", memory.QueueConfig{CountsReturns: counts, SettleLinger: time.Hour})}
			c := start(t, src, handle(func(*longshore.Delivery) error { wait(50 * time.Millisecond); return nil }), container.Config{})
			wait(75 * time.Millisecond)
			stop(t, c)
			if src.n.Load() == 0 {
				t.Errorf("returns are counted: %t: it was not flushed", counts)
			}
		})
	}
}

// flushCounter counts flushes.
type flushCounter struct {
	transport.Source
	n atomic.Int32
}

func (s *flushCounter) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	c, err := s.Source.Open(ctx, o)
	return flushCounted{c, s}, err
}

type flushCounted struct {
	transport.Consumer
	of *flushCounter
}

func (c flushCounted) Flush(ctx context.Context) error {
	c.of.n.Add(1)
	return c.Consumer.Flush(ctx)
}
