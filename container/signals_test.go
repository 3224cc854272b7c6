package container

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore/internal/clock"
)

// A step of a stop looks again at each change and each wake-up, and ends in time.
func TestWaitForEndsWithTheConditionOrInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		s := newSignals(clock.System{}, &mu)
		looks, begun := 0, time.Now()
		wait := func(d time.Duration, enough int) time.Duration {
			begun, looks = time.Now(), 0
			end := begun.Add(d)
			s.waitFor(func() time.Time { return end }, func() bool { looks++; return looks >= enough })
			return time.Since(begun)
		}
		if took := wait(time.Minute, 1); took != 0 || looks != 1 {
			t.Errorf("the condition held already: %v, %d looks", took, looks)
		}
		if took := wait(time.Minute, 2); took != time.Minute || looks != 1 {
			t.Errorf("nothing changed: %v, %d looks", took, looks)
		}
		if took := wait(0, 2); took != 0 || looks != 1 {
			t.Errorf("its time is over: %v, %d looks", took, looks)
		}
		time.AfterFunc(time.Second, func() { mu.Lock(); defer mu.Unlock(); s.happened() })
		time.AfterFunc(2*time.Second, s.wake)
		if took := wait(time.Minute, 3); took != 2*time.Second || looks != 3 {
			t.Errorf("after a change and a wake-up: %v, %d looks", took, looks)
		}
		s.wake()
		s.wake() // one look is enough for both
		if took := wait(time.Second, 3); took != time.Second || looks != 2 {
			t.Errorf("wake-ups are not merged: %v, %d looks", took, looks)
		}
	})
}
