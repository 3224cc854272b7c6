package container

import (
	"math"
	"testing"
	"time"
)

func TestLogarithmOfALatencyIsRightToAHundredth(t *testing.T) {
	for d := time.Duration(1); d < 100*time.Hour; d += 1 + d/7 {
		if got, want := lnSeconds(d), math.Log(d.Seconds()); math.Abs(got-want) > 0.01 {
			t.Fatalf("ln %v = %.4f, want %.4f", d, got, want)
		}
	}
}

func TestFreeItemsAreCapped(t *testing.T) {
	var free freeItems
	for range 10_000 {
		free.put(&item{})
	}
	if len(free.list) != maxFree {
		t.Errorf("%d free", len(free.list))
	}
	for range maxFree + 1 {
		if it := free.get(); it == nil {
			t.Fatal("no item")
		}
	}
	if len(free.list) != 0 {
		t.Errorf("%d free", len(free.list))
	}
}
