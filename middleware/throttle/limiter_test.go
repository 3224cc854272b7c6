package throttle_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
)

var _ container.Gate = (*throttle.Limiter)(nil)

func try(l *throttle.Limiter) bool {
	ok, _ := l.TryAcquire(time.Now())
	return ok
}

// Arithmetic cannot open the gate; only the call that is for it does.
func TestOnlyUnlimitOpens(t *testing.T) {
	closed := map[string]*throttle.Limiter{
		"0 permits": throttle.NewPermits(0), "-1 permits": throttle.NewPermits(-1), "lowest": throttle.NewPermits(math.MinInt),
		"rate 0": throttle.NewRate(0), "rate -1": throttle.NewRate(-1), "NaN": throttle.NewRate(math.NaN()),
		"infinite": throttle.NewRate(math.Inf(1)), "-infinite": throttle.NewRate(math.Inf(-1)),
	}
	for name, l := range closed {
		if ok, again := l.TryAcquire(time.Now()); ok || !again.IsZero() {
			t.Errorf("%s: open, or asked again at %v", name, again)
		}
		l.Unlimit()
		if !try(l) {
			t.Errorf("%s: closed after Unlimit", name)
		}
	}
	l := throttle.NewPermits(3)
	if n := l.AddPermits(-5); n != 0 {
		t.Errorf("3 - 5 permits: %d", n)
	}
	if n := l.AddPermits(math.MaxInt); n != math.MaxInt {
		t.Errorf("as many as there are: %d", n)
	}
	if n := l.AddPermits(1); n != math.MaxInt {
		t.Errorf("one more than there are: %d", n)
	}
	if n := throttle.NewUnlimited().AddPermits(-1); n != -1 {
		t.Errorf("unlimited - 1: %d", n)
	}
}

// Shrinking interrupts nothing; releases are absorbed until there is room.
func TestShrinkLeavesHoldersAlone(t *testing.T) {
	l := throttle.NewPermits(10)
	for range 10 {
		if !try(l) {
			t.Fatal("no permit")
		}
	}
	l.SetPermits(3)
	if st := l.State(); st.InUse != 10 || st.Permits != 3 {
		t.Errorf("%+v", st)
	}
	for range 7 {
		l.Release()
		if try(l) {
			t.Fatal("a permit above the limit")
		}
	}
	l.Release()
	if !try(l) || try(l) {
		t.Error("not exactly one permit is free")
	}
}

// A release too much does not make a permit.
func TestReleaseWithoutPermit(t *testing.T) {
	l := throttle.NewPermits(1)
	l.Release()
	if !try(l) || try(l) {
		t.Error("not exactly one permit")
	}
}

// A rate of 0 gives out nothing, not even the burst; a waiting one follows a change
// at once.
func TestRateChangesForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttle.NewRate(0)
		began := time.Now()
		got := make(chan time.Duration, 10)
		for range 3 {
			go func() {
				if err := l.Acquire(t.Context()); err == nil {
					got <- time.Since(began)
				}
			}()
		}
		wait(time.Hour)
		if len(got) != 0 {
			t.Fatal("a rate of 0 let something through")
		}
		l.SetRate(1.0 / 3600)
		synctest.Wait()
		if len(got) != 1 {
			t.Fatalf("%d at once at one an hour", len(got))
		}
		wait(50 * time.Millisecond)
		l.SetRate(1000)
		wait(10 * time.Millisecond)
		if len(got) != 3 {
			t.Errorf("%d of 3 10 ms after the rate was raised", len(got))
		}
	})
}

// The rate holds over a long time, whatever the time between the attempts.
func TestRateIsKept(t *testing.T) {
	for _, perSecond := range []float64{1.0 / 600, 0.5, 3, 200, 12345} {
		now, began := time.Unix(0, 0), time.Unix(0, 0)
		l := throttle.NewRate(perSecond)
		l.SetBurst(1)
		starts, asked := 0, 0
		for starts < 1000 {
			asked++
			ok, again := l.TryAcquire(now)
			if ok {
				starts++
				l.Release()
				continue
			}
			if !again.After(now) {
				t.Fatalf("rate %v: asked again at %v, not after %v", perSecond, again, now)
			}
			now = again
		}
		if got := 1000 / now.Sub(began).Seconds(); got < perSecond || got > perSecond*1.01 || asked > 2010 {
			t.Errorf("rate %v: %v starts per second, asked %d times", perSecond, got, asked)
		}
	}
}

// Nobody passes a queue, and a cancelled waiter takes nothing.
func TestQueueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttle.NewPermits(1)
		if !try(l) {
			t.Fatal("no permit")
		}
		told := 0
		defer l.Watch(func() { told++ })()
		var order []int
		var mu sync.Mutex
		cancels := make([]context.CancelFunc, 4)
		for i := range 4 {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancels[i] = func() { cancel(errors.New("gave up")) }
			go func() {
				if err := l.Acquire(ctx); err != nil {
					if err.Error() != "gave up" {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			}()
			synctest.Wait()
		}
		cancels[1]()
		synctest.Wait()
		for range 3 {
			if try(l) {
				t.Error("passed the queue")
			}
			l.Release()
			synctest.Wait()
		}
		if len(order) != 3 || order[0] != 0 || order[1] != 2 || order[2] != 3 {
			t.Errorf("served %v", order)
		}
		if told != 0 {
			t.Error("told while nothing was free")
		}
		l.Release()
		if told != 1 || !try(l) {
			t.Errorf("told %d times when a permit became free", told)
		}
		for _, c := range cancels {
			c()
		}
	})
}

// F-F01: cancelled in the same instant as granted, permits are neither lost nor made.
func TestRandomCancels(t *testing.T) {
	for _, l := range []*throttle.Limiter{throttle.NewPermits(3), throttle.NewRate(1e6)} {
		l.SetPermits(3)
		var running, most atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 2000 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(30))*time.Microsecond)
					if l.Acquire(ctx) == nil {
						n := running.Add(1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						running.Add(-1)
						l.Release()
					}
					cancel()
				}
			})
		}
		wg.Go(func() {
			for i := range 500 {
				l.SetPermits(i % 4)
			}
			l.SetPermits(3)
		})
		wg.Wait()
		if st := l.State(); st.InUse != 0 || st.Waiting != 0 || most.Load() > 3 {
			t.Errorf("%d in use, %d waiting, %d at most", st.InUse, st.Waiting, most.Load())
		}
	}
}

// An override lies over what is configured and over the fleet's, and ends by itself.
func TestOverrideEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := throttle.NewPermits(20)
		zero, three := 0, 3
		var changes atomic.Int32
		defer l.Watch(func() { changes.Add(1) })()
		l.Override(throttle.Override{Permits: &zero, Until: time.Now().Add(10 * time.Minute), By: "anna", Reason: "ledger down"})
		zero = 7 // theirs, not ours
		if try(l) {
			t.Error("0 permits")
		}
		l.SetPermits(30) // felt when the override has ended
		if st := l.State(); st.Permits != 0 || st.Configured.Permits != 30 || st.Operator.By != "anna" || *st.Operator.Permits != 0 {
			t.Errorf("%+v", st)
		}
		wait(9 * time.Minute)
		l.Override(throttle.Override{Permits: &three, Until: time.Now().Add(10 * time.Minute)})
		wait(9 * time.Minute)
		if n, _ := l.Limits(); n != 3 {
			t.Errorf("%d permits: the first override's end ended the second", n)
		}
		wait(time.Minute)
		synctest.Wait()
		if st := l.State(); st.Permits != 30 || st.Operator != nil || changes.Load() != 4 {
			t.Errorf("%+v after %d changes", st, changes.Load())
		}
		l.Override(throttle.Override{Permits: &three})
		l.ClearOverride()
		if n, _ := l.Limits(); n != 30 {
			t.Errorf("%d permits after the override was cleared", n)
		}
	})
}

func TestAcquireWithADeadContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := throttle.NewPermits(1)
	if err := l.Acquire(ctx); !errors.Is(err, context.Canceled) || l.State().InUse != 0 {
		t.Errorf("%v, %d in use", err, l.State().InUse)
	}
}
