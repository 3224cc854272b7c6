package throttle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// everywhere checks the permits of instances.
func everywhere(t *testing.T, when string, want int, ins ...*instance) {
	t.Helper()
	for _, in := range ins {
		if n := in.permits(); n != want {
			t.Errorf("%s: %s has %d permits, want %d", when, in.Instance(), n, want)
		}
	}
}

func away(t *testing.T, in *instance) {
	t.Helper()
	if err := in.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func back(t *testing.T, in *instance) {
	t.Helper()
	if err := in.Start(t.Context()); err != nil {
		t.Error(err)
	}
	wait(5 * time.Second)
}

// fleets runs f on a topic that keeps and on one that does not.
func fleets(t *testing.T, f func(t *testing.T, b *memory.Broker, src transport.Source)) {
	for _, retain := range []bool{true, false} {
		t.Run(fmt.Sprint("retain ", retain), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				f(t, b, b.Broadcast("control", memory.BroadcastConfig{Retain: retain}))
			})
		})
	}
}

// F-N12: a limit that is cleared while an instance's control link is down is cleared
// there too once the link is back, and never passed on to those who come later.
func TestClearedLimitReachesWhoWasAway(t *testing.T) {
	fleets(t, func(t *testing.T, _ *memory.Broker, src transport.Source) {
		cfg := throttle.FleetConfig{Keys: keys("k1")}
		a, b, c := join(t, src, "a", cfg), join(t, src, "b", cfg), join(t, src, "c", cfg)
		issue(t, b, throttle.Directive{Permits: ptr(5)})
		away(t, a)
		issue(t, c, throttle.Directive{Unset: true})
		wait(time.Hour)
		everywhere(t, "cleared", 20, b, c)
		everywhere(t, "not reached", 5, a)
		back(t, a)
		everywhere(t, "back", 20, a, b, c)
		everywhere(t, "who came later", 20, join(t, src, "late", cfg))
	})
}

// F-N12: where only an instance with the stale limit is there, a newcomer obeys it,
// until one comes back that knows better.
func TestHighestSequenceWinsOverAStaleInstance(t *testing.T) {
	fleets(t, func(t *testing.T, _ *memory.Broker, src transport.Source) {
		cfg := throttle.FleetConfig{Keys: keys("k1")}
		stale, knows := join(t, src, "stale", cfg), join(t, src, "knows", cfg)
		issue(t, knows, throttle.Directive{Permits: ptr(5)})
		away(t, stale)
		issue(t, knows, throttle.Directive{Unset: true})
		away(t, knows)
		back(t, stale)
		late := join(t, src, "late", cfg)
		wait(time.Minute)
		back(t, knows)
		everywhere(t, "after the one that knows better came back", 20, stale, knows, late)
	})
}

// F-N12: a directive that was replaced, ended or cleared changes nothing when it is
// replayed, also not at an instance that has just been started.
func TestReplayedDirectiveChangesNothing(t *testing.T) {
	for name, end := range map[string]throttle.Directive{
		"cleared":  {Unset: true},
		"ended":    {Permits: ptr(6), ExpiresAt: time.Date(2000, 1, 1, 0, 5, 0, 0, time.UTC)}, // synctest begins in 2000
		"replaced": {Permits: ptr(20)},
	} {
		t.Run(name, func(t *testing.T) {
			fleets(t, func(t *testing.T, b *memory.Broker, src transport.Source) {
				cfg := throttle.FleetConfig{Keys: keys("k1")}
				old, err := throttle.Seal(t.Context(), "default", keys("k1")[0], throttle.Directive{Permits: ptr(1)})
				if err != nil {
					t.Fatal(err)
				}
				wait(time.Second)
				a := join(t, src, "a", cfg)
				put(t, b, string(old))
				wait(time.Second)
				everywhere(t, "first", 1, a)
				issue(t, a, end)
				wait(10 * time.Minute)
				put(t, b, string(old))
				late := join(t, src, "late", cfg)
				put(t, b, string(old))
				wait(10 * time.Second)
				everywhere(t, "replayed", 20, a, late)
			})
		})
	}
}

// F-N11: with clocks three minutes apart a limit is obeyed, a total is divided among all,
// and a limited time is as long everywhere, also for who comes in the middle of it.
func TestClocksOfAFleetNeedNotAgree(t *testing.T) {
	fleets(t, func(t *testing.T, _ *memory.Broker, src transport.Source) {
		const hold = 10 * time.Minute
		a, b, c := skewed(t, src, "a", 0), skewed(t, src, "b", 3*time.Minute), skewed(t, src, "c", -3*time.Minute)
		wait(15 * time.Second)
		for i, in := range []*instance{b, c, a} {
			if res := issue(t, in, throttle.Directive{Permits: ptr(12 + i*3), Share: throttle.Total}); len(res.Obeyed) != 3 || len(res.Missing) != 0 {
				t.Errorf("total by %s: %+v", in.Instance(), res)
			}
			everywhere(t, "total by "+in.Instance(), 4+i, a, b, c)
		}
		for _, from := range []struct {
			in  *instance
			off time.Duration
		}{{a, 0}, {b, 3 * time.Minute}, {c, -3 * time.Minute}} {
			end := time.Now().Add(hold)
			issue(t, from.in, throttle.Directive{Permits: ptr(7), ExpiresAt: end.Add(from.off)})
			wait(hold / 2)
			late := skewed(t, src, "late of "+from.in.Instance(), -from.off)
			everywhere(t, "half the time of "+from.in.Instance(), 7, a, b, c, late)
			wait(time.Until(end) - 5*time.Second)
			everywhere(t, "5 s before the end of "+from.in.Instance(), 7, a, b, c, late)
			wait(10 * time.Second)
			everywhere(t, "5 s after the end of "+from.in.Instance(), 20, a, b, c, late)
			away(t, late)
		}
	})
}

// skewed is an instance whose clock is wrong.
func skewed(t *testing.T, src transport.Source, name string, by time.Duration) *instance {
	t.Helper()
	in := &instance{limit: throttle.NewPermits(20)}
	f, err := throttle.NewFleet(src, throttle.FleetConfig{Instance: name, Keys: keys("k1"), OnEvent: in.events.add})
	if err != nil {
		t.Fatal(err)
	}
	throttle.Skew(f, by)
	in.Fleet = f
	f.Add("orders", in.limit)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop(context.Background()) })
	return in
}
