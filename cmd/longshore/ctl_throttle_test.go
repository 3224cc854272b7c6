package main

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-N29: the largest number of permits more is the largest number, and fewer are none.
func TestCtlAddsTheLargestNumber(t *testing.T) {
	one := running(t, nil)
	most := strconv.Itoa(math.MaxInt)
	reach(one).run(t, "ctl", "throttle", "orders", "--permits", "5").want(t, 0, "orders     permits 20 → 5\n", "")
	for range 2 { // also beyond the end
		if got := reach(one).run(t, "ctl", "throttle", "orders", "--add", most); got.code != 0 || !strings.HasSuffix(got.out, " → "+most+"\n") {
			t.Errorf("%+v", got)
		}
		if st := one.c.Stats(); st.Permits != math.MaxInt || !st.Accepting || one.c.State() != container.StateRunning {
			t.Errorf("%d permits in force, accepting %v", st.Permits, st.Accepting)
		}
	}
	reach(one).run(t, "ctl", "throttle", "orders", "--add", strconv.Itoa(math.MinInt)).want(t, 0, "orders     permits "+most+" → 0\n", "")
	reach(one).run(t, "ctl", "throttle", "orders", "--permits", "10000000").want(t, 0, "orders     permits 0 → 10000000\n", "")
	if got := reach(one).run(t, "ctl", "throttle", "orders", "--add", "9223372036854775808"); got.code == 0 || one.limit.State().Permits != 10_000_000 {
		t.Errorf("a number that no int holds: %+v", got)
	}
}

// F-N29: on a fleet what is beyond its bounds is refused, and nothing changes.
func TestCtlAddsTheLargestNumberOnAFleet(t *testing.T) {
	src := memory.New(memory.Config{}).Broadcast("control", memory.BroadcastConfig{Retain: true})
	one := running(t, src)
	for _, share := range []string{"each", "total"} {
		if got := reach(one).run(t, "ctl", "throttle", "orders", "--fleet", "--share", share, "--permits", "5"); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		got := reach(one).run(t, "ctl", "throttle", "orders", "--fleet", "--add", strconv.Itoa(math.MaxInt))
		if permits, _ := one.limit.Limits(); got.code == 0 || permits != 5 {
			t.Errorf("share %s: %d permits in force, %+v", share, permits, got)
		}
	}
}
