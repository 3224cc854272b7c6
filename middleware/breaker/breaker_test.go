package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/transport/memory"
)

// call runs a scripted result through the breaker.
func call(b *breaker.Breaker, result error) error {
	d := longshore.NewDelivery(context.Background(), nil, 0)
	return b.Wrap(handle(func(context.Context, *longshore.Delivery) error { return result })).Handle(d.Context(), d)
}

// F-F06: the breaker opens at the configured count, whether everything fails from
// the first call or 10,000 successes came before: the window moves.
func TestOpensAtTheConfiguredCount(t *testing.T) {
	bad := errors.New("down")
	for name, before := range map[string]int{"from the first call": 0, "after 10,000 successes": 10_000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker(t, breaker.Config{Ratio: 0.15, MinRequests: 10, Window: 10 * time.Second, Consecutive: -1})
				for range before {
					if err := call(b, nil); err != nil {
						t.Fatal(err)
					}
					wait(10 * time.Millisecond)
				}
				want := 10
				if before > 0 {
					want = 150 // of the 1,000 that are in the window at 100 per second
				}
				n := 0
				for b.Status().State == breaker.Closed && n < 2000 {
					n++
					_ = call(b, bad)
					wait(10 * time.Millisecond)
				}
				// The window moves by a tenth at a time, so up to a tenth less is in it.
				if n > want+1 || n < want-want/10-1 {
					t.Errorf("opened at failure %d, want %d", n, want)
				}
			})
		})
	}
}

// A failure now and then, below the ratio, opens nothing, however long; calls
// without a verdict about the dependency count neither way.
func TestStaysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{})
		results := []error{nil, nil, errors.New("now and then"), longshore.Reject(errors.New("bad message")), longshore.Discard(nil),
			longshore.Release(errors.New("lock busy"), 0), longshore.ErrLost, longshore.ErrStopping}
		for i := range 20_000 {
			_ = call(b, results[i%len(results)])
			wait(time.Millisecond)
		}
		for range 1000 {
			_ = call(b, longshore.Reject(errors.New("bad message")))
			_ = call(b, longshore.Release(nil, 0))
		}
		if st := b.Status(); st.State != breaker.Closed {
			t.Errorf("%+v", st)
		}
	})
}

// The handler's own results go through unchanged while it is closed; what fails
// when it opens, while it is open and as a trial is released, uncounted.
func TestVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{Consecutive: 3, OpenFor: 10 * time.Second, OpenMax: 15 * time.Second})
		bad := errors.New("down")
		verdict := func(err error) string {
			v, delay := longshore.VerdictOf(err)
			return fmt.Sprint(v.String(), " ", delay)
		}
		wants := func(when string, err error, want string) {
			t.Helper()
			if got := verdict(err); got != want {
				t.Errorf("%s: %s, want %s (%v)", when, got, want, err)
			}
		}
		wants("first", call(b, bad), " 0s")
		wants("reject", call(b, longshore.Reject(bad)), "reject 0s")
		wants("second", call(b, longshore.Retry(bad, time.Hour)), "retry 1h0m0s")
		wants("again", call(b, bad), " 0s")
		err := call(b, bad)
		wants("the one that opens", err, "release 10s")
		if !errors.Is(err, bad) {
			t.Errorf("lost its cause: %v", err)
		}
		wait(4 * time.Second)
		err = call(b, nil)
		wants("open", err, "release 6s")
		if !errors.Is(err, breaker.ErrOpen) {
			t.Errorf("open: %v", err)
		}
		wait(6 * time.Second)
		synctest.Wait()
		wants("failed trial", call(b, bad), "release 15s") // twice as long, bounded
		wait(15 * time.Second)
		synctest.Wait()
		wants("trial", call(b, nil), "ack 0s")
		wants("closed", call(b, bad), " 0s")
		wants("cannot work", call(b, breaker.Unavailable(bad)), "release 10s") // at once, the count begins anew
	})
}

// F-F07: hours in which every trial fails bring no more in than there is room for, and
// nothing is counted where the broker counts returns.
func TestHoursOfFailingTrialsFillNothing(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := memory.New(memory.Config{})
				src := memoryQueue(m, memory.QueueConfig{CountsReturns: true, DeliveryLimit: 5, DeadLetter: "dead"})
				publish(t, src, 2000)
				l := newLedger()
				b := newBreaker(t, breaker.Config{Name: "ledger", OpenFor: 10 * time.Second, OpenMax: 10 * time.Second, Consecutive: 4, Ramp: -1})
				c := start(t, src, l.pay(20*time.Millisecond), container.Config{Order: order, Middleware: []longshore.Middleware{b},
					Workers: container.Workers{Min: 4, Max: 4}, DeadLetter: container.DeadLetter{To: "dead2"}, Redelivery: container.Redelivery{MaxAttempts: 2, Parked: 50}})
				wait(500 * time.Millisecond)
				l.set(true)
				most := 0
				for range 3 * 3600 / 5 {
					wait(5 * time.Second)
					st := c.Stats()
					most = max(most, st.InFlight+st.Parked)
				}
				if st := c.Stats(); most > 50+8*st.Window || !st.Live {
					t.Errorf("up to %d held, %+v", most, st)
				}
				l.set(false)
				wait(3 * time.Minute)
				stop(t, c)
				_, _, handled := l.read()
				if handled != 2000 || m.Inspect("dead").Published+m.Inspect("dead2").Published != 0 || l.attempts[2] > 6 {
					t.Errorf("%d of 2000 handled, %d dead, attempts %v", handled, m.Inspect("dead").Published+m.Inspect("dead2").Published, l.attempts)
				}
			})
		})
	}
}

// F-F07: an open breaker stops the intake: no consumer at the broker, nothing dead,
// nothing counted, each record back at most once, all handled afterwards.
func TestOpenBreakerStopsTheIntake(t *testing.T) {
	for _, queue := range []memory.QueueConfig{{}, {CountsReturns: true, DeliveryLimit: 5, DeadLetter: "dead"}, {Without: memory.Delay}, {FIFO: true}} {
		for _, probe := range []bool{true, false} {
			for _, order := range []container.Order{container.Unordered, container.ByKey} {
				t.Run(fmt.Sprint(queue.CountsReturns, queue.FIFO, probe, order), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := memory.New(memory.Config{})
						src := memoryQueue(m, queue)
						publish(t, src, 1000)
						l := newLedger()
						cfg := breaker.Config{Name: "ledger", OpenFor: 10 * time.Second, OpenMax: 10 * time.Second, Consecutive: 4, Ramp: -1}
						if probe {
							cfg.Probe = l.ping
						}
						b := newBreaker(t, cfg)
						c := start(t, src, l.pay(20*time.Millisecond), container.Config{Order: order, Middleware: []longshore.Middleware{b},
							Workers: container.Workers{Min: 4, Max: 4}, DeadLetter: container.DeadLetter{To: "dead2"}, Redelivery: container.Redelivery{MaxAttempts: 2}})
						wait(500 * time.Millisecond)
						l.set(true)
						wait(100 * time.Millisecond)
						began := time.Now()
						var open int
						for time.Since(began) < 5*time.Minute {
							if st := b.Status(); st.State == breaker.Open && time.Until(st.Until) < 9*time.Second && time.Until(st.Until) > 0 {
								open++
								if n := m.Inspect("q").Consumers; n != 0 {
									t.Fatalf("%d consumers while it is open", n)
								}
							}
							wait(500 * time.Millisecond)
						}
						if st := c.Stats(); open < 400 || st.Ready || !st.Live || st.DeadLetterFailures != 0 {
							t.Errorf("open %d times of 600, %+v", open, st)
						}
						calls, _, _ := l.read()
						if probe && calls > 12 || !probe && calls > 12+31 {
							t.Errorf("%d calls while it was down", calls)
						}
						l.set(false)
						wait(2 * time.Minute)
						if n := m.Inspect("q").Consumers; n != 1 {
							t.Errorf("%d consumers afterwards", n)
						}
						stop(t, c)
						_, _, handled := l.read()
						if handled != 1000 || m.Inspect("dead").Published+m.Inspect("dead2").Published != 0 {
							t.Errorf("%d of 1000 handled, %d dead", handled, m.Inspect("dead").Published+m.Inspect("dead2").Published)
						}
						// Counted are failures before it opened: fewer than Consecutive in a row, twice where
						// a success of the same moment comes between.
						if n := l.attempts[2]; n > 6 || l.attempts[1]+n != 1000 {
							t.Errorf("attempts %v, %+v", l.attempts, c.Stats())
						}
					})
				})
			}
		}
	}
}

// Half open, exactly so many go through as Trials says; the others wait, and go back
// or on with the verdict.
func TestHalfOpenLetsTheTrialsThrough(t *testing.T) {
	for _, trials := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(t, breaker.Config{Trials: trials, OpenFor: time.Second, OpenMax: time.Second, Ramp: -1})
			_ = call(b, breaker.Unavailable(nil))
			wait(time.Second)
			synctest.Wait()
			var entered, back, through atomic.Int32
			result := make(chan error)
			for range 20 {
				go func() {
					d := longshore.NewDelivery(context.Background(), nil, 0)
					err := b.Wrap(handle(func(context.Context, *longshore.Delivery) error {
						entered.Add(1)
						return <-result
					})).Handle(d.Context(), d)
					if v, _ := longshore.VerdictOf(err); v == longshore.VerdictRelease {
						back.Add(1)
					} else {
						through.Add(1)
					}
				}()
			}
			synctest.Wait()
			if entered.Load() != int32(trials) {
				t.Errorf("%d entered, want %d", entered.Load(), trials)
			}
			result <- longshore.Release(nil, 0) // says nothing: another has its place
			synctest.Wait()
			if entered.Load() != int32(trials)+1 {
				t.Errorf("%d entered after one said nothing, want %d", entered.Load(), trials+1)
			}
			for range trials {
				result <- nil
				synctest.Wait()
			}
			if entered.Load() != 20 || b.Status().State != breaker.Closed {
				t.Errorf("%d entered, %s", entered.Load(), b.Status().State)
			}
			close(result)
			synctest.Wait()
			if back.Load() != 1 || through.Load() != 19 {
				t.Errorf("%d back, %d through", back.Load(), through.Load())
			}
		})
	}
}

// After it closed the handlers that run at once become more and more over Ramp.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Config{})
		src := memoryQueue(m, memory.QueueConfig{})
		publish(t, src, 10_000)
		l := newLedger()
		b := newBreaker(t, breaker.Config{OpenFor: 5 * time.Second, Probe: l.ping})
		c := start(t, src, l.pay(100*time.Millisecond), container.Config{Middleware: []longshore.Middleware{b}, Workers: container.Workers{Min: 100, Max: 100}})
		wait(time.Second)
		l.set(true)
		wait(2 * time.Second)
		l.set(false)
		wait(550 * time.Millisecond) // the steps of the ramp are not at the moments of the looks
		var most []int
		for range 14 {
			l.set(false)
			wait(time.Second)
			_, n, _ := l.read()
			most = append(most, n)
		}
		for i := 1; i < len(most); i++ {
			if most[i] < most[i-1] || most[i-1] > 0 && most[i] > 2*most[i-1]+2 {
				t.Errorf("at once, second by second: %v", most)
				break
			}
		}
		if most[4] > 4 || most[13] != 100 {
			t.Errorf("at once, second by second: %v", most)
		}
		stop(t, c)
	})
}

// A container that stops while the breaker is open, or is probing, leaves nothing
// behind; one that starts then is held from the start and comes to life with it.
func TestStopAndStartWhileOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory.New(memory.Config{})
		src := memoryQueue(m, memory.QueueConfig{})
		publish(t, src, 100)
		l := newLedger()
		l.set(true)
		asked := make(chan struct{}, 100)
		b := newBreaker(t, breaker.Config{OpenFor: 5 * time.Second, Consecutive: 2, Probe: func(ctx context.Context) error {
			asked <- struct{}{}
			if l.ping(ctx) == nil {
				return nil
			}
			<-ctx.Done() // a probe that hangs
			return ctx.Err()
		}})
		cfg := container.Config{Middleware: []longshore.Middleware{b}}
		c := start(t, src, l.pay(0), cfg)
		<-asked
		began := time.Now()
		stop(t, c)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Stop took %v with a probe under way", took)
		}
		c, err := container.New(src, l.pay(0), container.Config{Logger: zap.NewNop(), Middleware: cfg.Middleware})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = c.Start(context.Background()) }()
		wait(time.Second)
		if n := m.Inspect("q").Consumers; n != 0 {
			t.Errorf("%d consumers", n)
		}
		l.set(false)
		wait(2 * time.Minute)
		if _, _, handled := l.read(); handled != 100 {
			t.Errorf("%d of 100 handled", handled)
		}
		stop(t, c)
	})
}

// A panic counts, and a batch is one call.
func TestPanicsAndBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, breaker.Config{Consecutive: 2, OpenFor: time.Minute})
		d := longshore.NewDelivery(context.Background(), nil, 0)
		for range 2 {
			func() {
				defer func() { _ = recover() }()
				_ = b.Wrap(handle(func(context.Context, *longshore.Delivery) error { panic("boom") })).Handle(d.Context(), d)
			}()
		}
		if b.Status().State != breaker.Open {
			t.Error("panics were not counted")
		}
		b = newBreaker(t, breaker.Config{Consecutive: 2, OpenFor: time.Minute, OpenMax: time.Minute})
		bad := errors.New("down")
		batch := func(err error) error {
			return b.WrapBatch(longshore.BatchHandlerFunc(func(context.Context, []*longshore.Delivery) error { return err })).HandleBatch(context.Background(), []*longshore.Delivery{d, d, d})
		}
		if err := batch(longshore.BatchError{1: longshore.Reject(bad)}); err == nil || b.Status().State != breaker.Closed {
			t.Errorf("%v", err)
		}
		_ = batch(bad)
		err := batch(longshore.BatchError{0: bad, 1: longshore.Reject(bad)})
		var each longshore.BatchError
		if !errors.As(err, &each) {
			t.Fatalf("%v", err)
		}
		v0, _ := longshore.VerdictOf(each[0])
		v1, _ := longshore.VerdictOf(each[1])
		if v0 != longshore.VerdictRelease || v1 != longshore.VerdictReject || b.Status().State != breaker.Open {
			t.Errorf("%s and %s, %s", v0, v1, b.Status().State)
		}
		if v, _ := longshore.VerdictOf(batch(nil)); v != longshore.VerdictRelease {
			t.Errorf("open: %s", v)
		}
	})
}

func TestBadConfiguration(t *testing.T) {
	_, err := breaker.New(breaker.Config{Ratio: 1.5, MinRequests: -1, Window: -1, Consecutive: -2, OpenFor: time.Hour, OpenMax: time.Minute})
	for _, field := range []string{"Ratio", "MinRequests", "Window", "Consecutive", "OpenMax"} {
		if err == nil || !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not told in: %v", field, err)
		}
	}
}
