package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// soakStep is one fault of a plan.
type soakStep struct {
	after time.Duration // the one before it
	leg   int
	fault string
	span  time.Duration // how long it lasts, where it lasts
}

func (s soakStep) String() string { return fmt.Sprintf("leg %d: %s %v", s.leg, s.fault, s.span) }

// What every leg bears, and what a broker of one's own bears too.
func linkFaults() []string {
	return []string{"kill -9", "SIGTERM", "SIGSTOP", "cut", "reset", "black hole", "refuse"}
}

// soakPlan makes the plan of a seed. Faults of a leg are drawn from its list, so a
// seed means the same plan on the same brokers.
func soakPlan(seed uint64, total time.Duration, faults [][]string) []soakStep {
	r := rand.New(rand.NewPCG(seed, 0))
	longest := min(max(total/20, 200*time.Millisecond), 6*time.Second)
	var plan []soakStep
	for at := time.Duration(0); ; {
		s := soakStep{after: longest/4 + time.Duration(r.Int64N(int64(longest/2))), leg: r.IntN(len(faults))}
		s.fault = faults[s.leg][r.IntN(len(faults[s.leg]))]
		s.span = longest/4 + time.Duration(r.Int64N(int64(longest)))
		if at += s.after + s.span; at > total {
			return plan
		}
		plan = append(plan, s)
	}
}

// soakTime reads how long, and the seed.
func soakTime(t *testing.T) (total time.Duration, seed uint64, long bool) {
	t.Helper()
	total, seed = 3*time.Second, uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	if v := os.Getenv("LONGSHORE_SOAK_FOR"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("LONGSHORE_SOAK_FOR: %v", err)
		}
		total, long = d, true
	}
	if v := os.Getenv("LONGSHORE_SOAK_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("LONGSHORE_SOAK_SEED: %v", err)
		}
		seed = n
	}
	return total, seed, long
}

func TestOneSeedIsOnePlan(t *testing.T) {
	faults := [][]string{linkFaults(), linkFaults(), {"cut", "alarm"}}
	first, second := soakPlan(7, time.Minute, faults), soakPlan(7, time.Minute, faults)
	if len(first) < 5 || fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("two plans of seed 7:\n%v\n%v", first, second)
	}
	if other := soakPlan(8, time.Minute, faults); fmt.Sprint(first) == fmt.Sprint(other) {
		t.Error("seeds 7 and 8 have the same plan")
	}
}
