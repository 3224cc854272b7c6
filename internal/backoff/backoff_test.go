package backoff_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/longshore-go/longshore/internal/backoff"
)

// F-G06: any attempt, any base, any jitter: the delay stays within (0, cap].
func TestDelayStaysWithinCap(t *testing.T) {
	attempts := []int{math.MinInt, -1, 0, 1, 2, 36, 37, 62, 63, 64, 1e6, math.MaxInt}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		p := backoff.Policy{
			Initial:    time.Duration(rnd.Int64N(int64(time.Hour))) - time.Minute,
			Max:        time.Duration(rnd.Int64N(int64(24*time.Hour))) - time.Minute,
			Multiplier: rnd.Float64() * 10,
			Jitter:     rnd.Float64() * 1.5,
		}
		n := attempts[rnd.IntN(len(attempts))]
		d := p.Delay(n, rnd.Float64())
		if limit := max(p.Max, 1); d <= 0 || d > limit {
			t.Fatalf("%+v attempt %d: delay %v outside (0, %v]", p, n, d, limit)
		}
	}
	for _, weird := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		p := backoff.Policy{Initial: time.Second, Max: time.Minute, Multiplier: weird, Jitter: weird}
		if d := p.Delay(5, 0.5); d <= 0 || d > time.Minute {
			t.Errorf("multiplier and jitter %v: %v", weird, d)
		}
	}
}

func TestDelayDoublesUpToMax(t *testing.T) {
	p := backoff.Policy{Initial: time.Second, Max: 5 * time.Second, Multiplier: 2}
	for n, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 5: 5 * time.Second} {
		if got := p.Delay(n, 0.9); got != want {
			t.Errorf("after attempt %d: %v, want %v", n, got, want)
		}
	}
	p.Jitter = 0.5
	if lo, hi := p.Delay(1, 0), p.Delay(1, 0.999); lo != 500*time.Millisecond || hi < 1490*time.Millisecond {
		t.Errorf("jitter of 50 %%: %v to %v", lo, hi)
	}
}
