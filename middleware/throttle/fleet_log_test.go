package throttle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport/memory"
)

// The line "throttle changed" says what was in force before, and what is.
func TestALineSaysFromWhatToWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := observer.New(zap.InfoLevel)
		in := join(t, memory.New(memory.Config{}).Broadcast("control", memory.BroadcastConfig{}), "a", throttle.FleetConfig{Logger: zap.New(core)})
		issue(t, in, throttle.Directive{Permits: ptr(5)})
		issue(t, in, throttle.Directive{Permits: ptr(9), Rate: ptr(2.5)})
		issue(t, in, throttle.Directive{Unset: true})
		issue(t, in, throttle.Directive{Permits: ptr(3), ExpiresAt: time.Now().Add(time.Minute)})
		wait(2 * time.Minute)
		var spans []string
		for _, l := range lines.FilterMessage("throttle changed").All() {
			fs := l.ContextMap()
			spans = append(spans, fmt.Sprint(fs["from"], " → ", fs["to"]))
		}
		want := "[configured → permits 5 permits 5 → permits 9, rate 2.5 permits 9, rate 2.5 → configured configured → permits 3 permits 3 → configured]"
		if fmt.Sprint(spans) != want {
			t.Errorf("%v, want %s", spans, want)
		}
		_ = in.Stop(t.Context())
	})
}
