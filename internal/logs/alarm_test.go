package logs

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Every written alarm has its all-clear, an unwritten one has none, and what was held back
// is counted in the all-clear, not in the next alarm.
func TestAlarmAndAllClear(t *testing.T) {
	for name, tc := range map[string]struct {
		steps string // r: raise, o: over, w: a minute passes; a second passes between any two
		want  []string
	}{
		"nothing":             {"oo", nil},
		"once":                {"ro", []string{"raise 1", "over 1s 0"}},
		"held back":           {"rrrro", []string{"raise 1", "over 4s 3"}},
		"lasts":               {"rrrwrro", []string{"raise 1", "raise 3", "over 1m6s 1"}},
		"over twice":          {"roo", []string{"raise 1", "over 1s 0"}},
		"flaps":               {"rororo", []string{"raise 1", "over 1s 0"}},
		"again in a while":    {"rowrro", []string{"raise 1", "over 1s 0", "raise 1", "over 2s 1"}},
		"written in its time": {"rorwro", []string{"raise 1", "over 1s 0", "raise 2", "over 1m3s 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			var a Alarm
			var got []string
			now := time.Unix(0, 0)
			for _, step := range tc.steps {
				switch step {
				case 'r':
					if stands, due := a.Raise(now); due {
						got = append(got, fmt.Sprintf("raise %d", stands))
					}
				case 'o':
					if fields, due := a.Over(now); due {
						held := int64(0)
						if len(fields) == 2 {
							held = fields[1].Integer
						}
						got = append(got, fmt.Sprintf("over %v %d", time.Duration(fields[0].Integer), held))
					}
				case 'w':
					now = now.Add(Every)
				}
				now = now.Add(time.Second)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
