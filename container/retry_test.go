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

var errBad = errors.New("bad")

func steady(d time.Duration) container.Backoff {
	return container.Backoff{Initial: d, Max: d, Jitter: -1}
}

// F-F04: a record that waits for its retry holds nobody up.
func TestWaitingForARetryHoldsNobodyUp(t *testing.T) {
	for name, queue := range map[string]memory.QueueConfig{"at the broker": {}, "parked": {Without: memory.Delay}} {
		for _, order := range []container.Order{container.Unordered, container.ByKey} {
			t.Run(fmt.Sprint(name, "/", order), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					publish(t, b, "q", "poison:0")
					for i := range 100 {
						publish(t, b, "q", fmt.Sprintf("good%d:%d", i%10, i))
					}
					publish(t, b, "q", "poison:1")
					var good, follower atomic.Int32
					var retried atomic.Int64
					begin := time.Now()
					c := start(t, b.Queue("q", queue), handle(func(d *longshore.Delivery) error {
						switch {
						case string(d.Body) == "poison:0" && d.Attempt == 1:
							return errBad
						case string(d.Body) == "poison:0":
							retried.Store(int64(time.Since(begin)))
							return nil
						case string(d.Body) == "poison:1":
							follower.Add(1)
							return nil
						}
						wait(10 * time.Millisecond)
						good.Add(1)
						return nil
					}), container.Config{Order: order, Workers: container.Workers{Max: 1}, Redelivery: container.Redelivery{Backoff: steady(10 * time.Minute)}})
					wait(5 * time.Second)
					if good.Load() != 100 {
						t.Errorf("%d good ones done", good.Load())
					}
					if waits := order == container.ByKey; (follower.Load() == 0) != waits {
						t.Errorf("the record behind the poison one: handled %d times", follower.Load())
					}
					wait(11 * time.Minute)
					if at := time.Duration(retried.Load()); at < 10*time.Minute || at > 10*time.Minute+time.Second || follower.Load() != 1 {
						t.Errorf("retried after %v, follower %d", at, follower.Load())
					}
					stop(t, c)
					wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 102")
				})
			})
		}
	}
}

// F-G05: a short delay does not wait behind a long one.
func TestShortDelayDoesNotWaitBehindALongOne(t *testing.T) {
	for name, queue := range map[string]memory.QueueConfig{"at the broker": {}, "parked": {Without: memory.Delay}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "30", "1", "20", "2", "9")
				var late seen
				begin := time.Now()
				c := start(t, b.Queue("q", queue), handle(func(d *longshore.Delivery) error {
					var s int
					_, _ = fmt.Sscan(string(d.Body), &s)
					delay := time.Duration(s) * time.Second
					if d.Attempt == 1 {
						return longshore.Retry(errBad, delay)
					}
					if over := time.Since(begin) - delay; over < 0 || over > time.Second {
						t.Errorf("%s came %v late", d.Body, over)
					}
					late.add(string(d.Body))
					return nil
				}), container.Config{Workers: container.Workers{Max: 1}})
				wait(time.Minute)
				stop(t, c)
				if got := fmt.Sprint(late.all()); got != "[1 2 9 20 30]" {
					t.Error(got)
				}
			})
		})
	}
}

// F-D07: a delay longer than the lease: executions = attempts, and a waiting
// record holds no worker.
func TestDelayLongerThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "k:1")
		var runs atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Lease: 30 * time.Second, KeepLease: true}), handle(func(d *longshore.Delivery) error {
			if int(runs.Add(1)) != d.Attempt {
				t.Errorf("run %d is attempt %d", runs.Load(), d.Attempt)
			}
			if d.Attempt < 4 {
				return longshore.Retry(errBad, 90*time.Second)
			}
			return nil
		}), container.Config{Workers: container.Workers{Max: 3}, Order: container.ByKey})
		wait(time.Minute)
		if st := c.Stats(); st.Busy != 0 || st.Parked != 1 {
			t.Errorf("busy %d, parked %d", st.Busy, st.Parked)
		}
		wait(10 * time.Minute)
		if runs.Load() != 4 {
			t.Errorf("%d runs", runs.Load())
		}
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
	})
}

// F-D07: with an order a delay beyond the lease is refused, or cut and told.
func TestDelayBeyondWhatCanBeHeld(t *testing.T) {
	b := memory.New(memory.Config{})
	leased := memory.QueueConfig{Lease: time.Minute}
	_, err := container.New(b.Queue("q", leased), handle(noop), container.Config{Order: container.ByKey,
		Redelivery: container.Redelivery{Backoff: container.Backoff{Max: time.Hour}}})
	if err == nil || !strings.Contains(err.Error(), "Redelivery.Backoff.Max is 1h0m0s") || !strings.Contains(err.Error(), "30s") {
		t.Errorf("%v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "k:1")
		var runs atomic.Int32
		var cut atomic.Int32
		c := start(t, b.Queue("q", leased), handle(func(d *longshore.Delivery) error {
			if runs.Add(1) == 1 {
				return longshore.Retry(errBad, time.Hour)
			}
			return nil
		}), container.Config{Order: container.ByKey, OnEvent: func(e container.Event) {
			if e.Kind == container.EventDelayCut && e.Delay == 30*time.Second {
				cut.Add(1)
			}
		}})
		wait(31 * time.Second)
		stop(t, c)
		if runs.Load() != 2 || cut.Load() != 1 {
			t.Errorf("%d runs, %d events", runs.Load(), cut.Load())
		}
	})
}

// F-G06: attempts of any size, also ones a foreign client made up.
func TestAbsurdAttemptsAreHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var delays []time.Duration
		c := start(t, b.Queue("q", memory.QueueConfig{Without: memory.Delay}), handle(func(d *longshore.Delivery) error { return errBad }),
			container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Workers: container.Workers{Max: 1},
				Redelivery: container.Redelivery{MaxAttempts: 70, Backoff: container.Backoff{Max: time.Minute}},
				OnEvent: func(e container.Event) {
					if e.Kind == container.EventFailed {
						delays = append(delays, e.Delay)
					}
				}})
		publish(t, b, "q", "m")
		wait(2 * time.Hour)
		stop(t, c)
		if len(delays) != 69 || b.Inspect("dead").Published != 1 {
			t.Errorf("%d retries, %d dead", len(delays), b.Inspect("dead").Published)
		}
		for i, d := range delays {
			if d <= 0 || d > time.Minute {
				t.Errorf("retry %d after %v", i+1, d)
			}
		}
	})
}

// F-G03: three retries are four runs and then one dead letter.
func TestRetriesFirstThenDeadLetter(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		for _, initial := range []time.Duration{time.Millisecond, 2 * time.Second} {
			t.Run(fmt.Sprint(order, "/", initial), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := memory.New(memory.Config{})
					publish(t, b, "q", "k:1")
					var runs atomic.Int32
					c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
						if int(runs.Add(1)) != d.Attempt {
							t.Errorf("run %d is attempt %d", runs.Load(), d.Attempt)
						}
						return errBad
					}), container.Config{Order: order, DeadLetter: container.DeadLetter{To: "dead"},
						Redelivery: container.Redelivery{MaxAttempts: 4, Backoff: container.Backoff{Initial: initial}}})
					wait(5 * time.Minute)
					stop(t, c)
					if runs.Load() != 4 || b.Inspect("dead").Published != 1 {
						t.Errorf("%d runs, %d dead", runs.Load(), b.Inspect("dead").Published)
					}
					wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
				})
			})
		}
	}
}

func TestVerdicts(t *testing.T) {
	classified := errors.New("classified")
	cases := []struct {
		name   string
		result func(d *longshore.Delivery) error
		runs   int32
		dead   uint64
		stats  func(container.Stats) int64
	}{
		{"nil acks", func(*longshore.Delivery) error { return nil }, 1, 0, func(s container.Stats) int64 { return s.Acked }},
		{"reject", func(*longshore.Delivery) error { return longshore.Reject(errBad) }, 1, 1, func(s container.Stats) int64 { return s.Rejected }},
		{"discard", func(*longshore.Delivery) error { return longshore.Discard(errBad) }, 1, 0, func(s container.Stats) int64 { return s.Discarded }},
		{"the outermost wins", func(*longshore.Delivery) error { return longshore.Reject(longshore.Discard(errBad)) }, 1, 1, func(s container.Stats) int64 { return s.Rejected }},
		{"wrapped", func(*longshore.Delivery) error { return fmt.Errorf("more: %w", longshore.Reject(errBad)) }, 1, 1, func(s container.Stats) int64 { return s.Rejected }},
		{"classified", func(*longshore.Delivery) error { return classified }, 1, 1, func(s container.Stats) int64 { return s.Rejected }},
		{"panic", func(*longshore.Delivery) error { panic("boom") }, 3, 1, func(s container.Stats) int64 { return s.Rejected }},
		{"error", func(*longshore.Delivery) error { return errBad }, 3, 1, func(s container.Stats) int64 { return s.Rejected }},
		{"retry counts", func(*longshore.Delivery) error { return longshore.Retry(nil, 0) }, 3, 1, func(s container.Stats) int64 { return s.Rejected }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "m")
				var runs atomic.Int32
				c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
					runs.Add(1)
					return tc.result(d)
				}), container.Config{DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 3,
					Classify: func(err error) error {
						if errors.Is(err, classified) {
							return longshore.Reject(err)
						}
						return err
					}}})
				wait(5 * time.Minute)
				stop(t, c)
				if runs.Load() != tc.runs || b.Inspect("dead").Published != tc.dead || tc.stats(c.Stats()) != 1 {
					t.Errorf("%d runs, %d dead, %+v", runs.Load(), b.Inspect("dead").Published, c.Stats())
				}
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
			})
		})
	}
}

// F-F05, F-H02: a release costs no attempt, however often.
func TestReleaseIsNotCounted(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			publish(t, b, "q", "k:1")
			var runs atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{DeliveryLimit: 3, DeadLetter: "dead"}), handle(func(d *longshore.Delivery) error {
				if d.Attempt != 1 {
					t.Errorf("attempt %d", d.Attempt)
				}
				if runs.Add(1) < 20 {
					return longshore.Release(errBad, time.Duration(runs.Load()%3)*time.Second)
				}
				return nil
			}), container.Config{Order: order, Redelivery: container.Redelivery{MaxAttempts: 2}})
			wait(time.Hour)
			stop(t, c)
			if runs.Load() != 20 || b.Inspect("dead").Published != 0 {
				t.Errorf("%d runs, %d dead", runs.Load(), b.Inspect("dead").Published)
			}
		})
	}
}

// A full parking space is never a silent stop: new failures are dead-lettered
// early and the good ones flow.
func TestParkingFullGoesToTheDeadLetterPlaceEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var bodies []string
		for i := range 200 {
			bodies = append(bodies, fmt.Sprintf("k%d:%d", i, i))
		}
		publish(t, b, "q", bodies...)
		var good, full atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Without: memory.Delay}), handle(func(d *longshore.Delivery) error {
			if d.Body[len(d.Body)-1]%2 == 0 {
				return errBad
			}
			good.Add(1)
			return nil
		}), container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{To: "dead"},
			Redelivery: container.Redelivery{Parked: 10, Backoff: steady(time.Hour)},
			OnEvent: func(e container.Event) {
				if e.Kind == container.EventParkingFull {
					full.Add(1)
				}
			}})
		wait(time.Second)
		st := c.Stats()
		if full.Load() == 0 || st.Parked != 10 || st.Ready || b.Inspect("dead").Published == 0 {
			t.Errorf("events %d, parked %d, ready %v (%s), dead %d", full.Load(), st.Parked, st.Ready, st.Reason, b.Inspect("dead").Published)
		}
		if n := uint64(good.Load()) + b.Inspect("dead").Published + uint64(st.Parked); n != 200 {
			t.Errorf("%d of 200 got their turn", n)
		}
		stop(t, c)
	})
}

// In an outage nearly all fail: the parking space fills, and what comes then is not
// the worse message. The intake waits, and all are done when the outage ends.
func TestOutageDoesNotEmptyTheQueueIntoTheDeadLetterPlace(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		synctest.Test(t, func(t *testing.T) {
			b := memory.New(memory.Config{})
			var bodies []string
			for i := range 2000 {
				bodies = append(bodies, fmt.Sprintf("k%d:%d", i, i))
			}
			publish(t, b, "q", bodies...)
			begin := time.Now()
			var good atomic.Int32
			c := start(t, b.Queue("q", memory.QueueConfig{Without: memory.Delay}), handle(func(*longshore.Delivery) error {
				<-time.After(10 * time.Millisecond)
				if time.Since(begin) < 4*time.Second {
					return errBad
				}
				good.Add(1)
				return nil
			}), container.Config{Order: order, DeadLetter: container.DeadLetter{To: "dead"}})
			wait(time.Minute)
			if dead := b.Inspect("dead").Published; dead != 0 || good.Load() != 2000 {
				t.Errorf("%v: %d done, %d dead-lettered after an outage of 4 s", order, good.Load(), dead)
			}
			stop(t, c)
		})
	}
}

// Keep tries for ever at the longest delay, and the good ones are done meanwhile.
func TestKeepTriesForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		var bodies []string
		for i := range 300 {
			bodies = append(bodies, fmt.Sprintf("k%d:%d", i, i))
		}
		publish(t, b, "q", bodies...)
		var healed atomic.Bool
		var good atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{Without: memory.Delay | memory.Attempts}), handle(func(d *longshore.Delivery) error {
			if strings.HasSuffix(string(d.Body), "7") && !healed.Load() {
				return errBad
			}
			good.Add(1)
			return nil
		}), container.Config{Workers: container.Workers{Max: 4}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
			Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Second, Max: 10 * time.Second}}})
		wait(time.Minute)
		if good.Load() != 270 || c.Stats().Parked+c.Stats().Busy != 30 {
			t.Errorf("%d good ones done, %d parked", good.Load(), c.Stats().Parked)
		}
		healed.Store(true)
		wait(time.Minute)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 300")
	})
}

// A goroutine that a failed attempt left behind settles nothing of the next.
func TestOldAttemptSettlesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "m")
		var first *longshore.Delivery
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			if d.Attempt == 1 {
				first = d
				return errBad
			}
			for _, err := range []error{first.Ack(context.Background()), first.Reject(context.Background(), nil), first.Nack(context.Background(), 0)} {
				if !errors.Is(err, longshore.ErrSettled) {
					t.Errorf("the old attempt: %v", err)
				}
			}
			return nil
		}), container.Config{Redelivery: container.Redelivery{Backoff: steady(100 * time.Millisecond)}})
		wait(time.Second)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
	})
}

// Verbs in a handler whose result settles.
func TestVerbsWithAutomaticSettling(t *testing.T) {
	ctx := context.Background()
	cases := map[string]struct {
		act        func(d *longshore.Delivery) error
		runs, dead int
	}{
		"ack":                {func(d *longshore.Delivery) error { return d.Ack(ctx) }, 1, 0},
		"ack, then an error": {func(d *longshore.Delivery) error { _ = d.Ack(ctx); return errBad }, 1, 0},
		"nack":               {func(d *longshore.Delivery) error { return d.Nack(ctx, 5*time.Second) }, 2, 0},
		"reject":             {func(d *longshore.Delivery) error { return d.Reject(ctx, errBad) }, 1, 1},
		"twice": {func(d *longshore.Delivery) error {
			if err := d.Reject(ctx, errBad); err != nil {
				return err
			}
			if err := d.Ack(ctx); !errors.Is(err, longshore.ErrSettled) {
				panic(err)
			}
			return nil
		}, 1, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "k:1")
				var runs atomic.Int32
				c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
					if runs.Add(1) > 1 {
						return nil
					}
					return tc.act(d)
				}), container.Config{Order: container.ByKey, DeadLetter: container.DeadLetter{To: "dead"}})
				wait(time.Minute)
				stop(t, c)
				if st := c.Stats(); st.VerdictLost > 0 || st.Acked+st.Rejected != 1 {
					t.Errorf("%+v", st)
				}
				if int(runs.Load()) != tc.runs || int(b.Inspect("dead").Published) != tc.dead {
					t.Errorf("%d runs, %d dead", runs.Load(), b.Inspect("dead").Published)
				}
				wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 1")
			})
		})
	}
}
