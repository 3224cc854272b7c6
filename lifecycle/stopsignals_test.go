package lifecycle

import (
	"slices"
	"testing"
	"time"
)

func TestSignalsWithinASecondAreOne(t *testing.T) {
	for name, tc := range map[string]struct {
		at   []time.Duration
		want []stopStep
	}{
		"one after the other": {[]time.Duration{0, sameStop, 5 * sameStop, 9 * sameStop}, []stopStep{stopBegins, stopRushes, stopNow, stopNow}},
		"child and group":     {[]time.Duration{0, 0}, []stopStep{stopBegins, stopSame}},
		"each doubled":        {[]time.Duration{0, time.Millisecond, 3 * sameStop, 3*sameStop + time.Millisecond, 6 * sameStop}, []stopStep{stopBegins, stopSame, stopRushes, stopSame, stopNow}},
		"held down":           {[]time.Duration{0, sameStop / 2, sameStop - 1, sameStop + sameStop/2}, []stopStep{stopBegins, stopSame, stopSame, stopRushes}},
	} {
		var s stopSignals
		var got []stopStep
		for _, at := range tc.at {
			got = append(got, s.next(time.Unix(100, 0).Add(at)))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
