package throttle_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N13: "add N permits on the fleet" adds to what the fleet was told, a total or a
// number for each, never to one instance's share of it.
func TestPermitsAddedOnAFleet(t *testing.T) {
	const each, total = throttle.Each, throttle.Total
	for _, c := range []struct {
		name   string
		told   *throttle.Directive
		add    int
		before string
		after  string
		want   []int // of three instances
	}{
		{"a total", &throttle.Directive{Permits: ptr(12), Share: total}, 3, "total 12", "total 15", []int{5, 5, 5}},
		{"a total that does not divide", &throttle.Directive{Permits: ptr(12), Share: total}, 1, "total 12", "total 13", []int{5, 4, 4}},
		{"each", &throttle.Directive{Permits: ptr(4)}, 3, "4 each", "7 each", []int{7, 7, 7}},
		{"fewer", &throttle.Directive{Permits: ptr(4), Share: each}, -3, "4 each", "1 each", []int{1, 1, 1}},
		{"not below 0", &throttle.Directive{Permits: ptr(4)}, math.MinInt, "4 each", "0 each", []int{0, 0, 0}},
		{"what is configured", nil, 3, "20 each", "23 each", []int{23, 23, 23}},
		{"of all containers", &throttle.Directive{Target: throttle.Target{}, Permits: ptr(9), Share: total}, 3, "total 9", "total 12", []int{4, 4, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fleets(t, func(t *testing.T, _ *memory.Broker, src transport.Source) {
				var ins []*instance
				for i := range 3 {
					ins = append(ins, join(t, src, fmt.Sprint("i", i), throttle.FleetConfig{}))
				}
				wait(time.Second)
				if c.told != nil {
					if c.name != "of all containers" {
						c.told.Target.Container = "orders"
					}
					issue(t, ins[0], *c.told)
				}
				res, err := ins[1].IssueAdd(t.Context(), throttle.Directive{Target: throttle.Target{Container: "orders"}}, c.add)
				if err != nil {
					t.Fatal(err)
				}
				wait(10 * time.Second)
				if res.Before.String() != c.before || res.After.String() != c.after || res.Before.Configured != (c.told == nil) || len(res.Obeyed) != 3 {
					t.Errorf("%+v: before %v, after %v", res, res.Before, res.After)
				}
				for i, in := range ins {
					if n := in.permits(); n != c.want[i] {
						t.Errorf("%s has %d permits, want %d", in.Instance(), n, c.want[i])
					}
				}
			})
		})
	}
}

// F-N13: an addition is refused where the state in force is not known, and keeps what it
// does not speak of.
func TestPermitsAddedToWhatIsNotKnown(t *testing.T) {
	fleets(t, func(t *testing.T, b *memory.Broker, src transport.Source) {
		in := join(t, src, "a", throttle.FleetConfig{})
		wait(time.Second)
		target := throttle.Target{Container: "orders"}
		add := func(d throttle.Directive) (throttle.Issued, error) {
			d.Target = target
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // who waits for an answer waits as long as this
			defer cancel()
			return in.IssueAdd(ctx, d, 3)
		}
		end := time.Now().Add(time.Hour)
		issue(t, in, throttle.Directive{Target: target, Permits: ptr(4), Rate: ptr(2.5), Burst: ptr(9), ExpiresAt: end})
		if _, err := add(throttle.Directive{Share: throttle.Total}); longshore.CodeOf(err) != longshore.CodeConfig {
			t.Errorf("another share: %v", err)
		}
		if res, err := add(throttle.Directive{}); err != nil || !res.Until.Equal(end) {
			t.Errorf("%+v, %v; its end was %v", res, err, end)
		}
		if st := in.limit.State(); st.Permits != 7 || st.Rate != 2.5 || st.Burst != 9 {
			t.Errorf("%+v", st)
		}
		b.FailOpen("control", 1<<30, fmt.Errorf("the broker is away"))
		b.Drop("control")
		wait(time.Second)
		if _, err := add(throttle.Directive{}); longshore.CodeOf(err) != longshore.CodeState || in.permits() != 7 {
			t.Errorf("the control topic is away: %v, %d permits", err, in.permits())
		}
		b.FailOpen("control", 0, nil)
		wait(time.Minute)
		issue(t, in, throttle.Directive{Target: target, Unset: true})
		in.limit.Unlimit()
		if _, err := add(throttle.Directive{}); longshore.CodeOf(err) != longshore.CodeState {
			t.Errorf("no limit to add to: %v", err)
		}
	})
}
