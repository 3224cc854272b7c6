package otlp

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// The first failure is told at once, more of them once a minute with a count, and the end
// of them too.
func TestFailuresAreALineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		r := newReporter("traces", zap.New(core))
		times := func() (n []int64) {
			for _, e := range logs.TakeAll() {
				v, _ := e.ContextMap()["repeated"].(int64)
				n = append(n, v)
			}
			return n
		}
		for range 5 {
			r.result(errors.New("no route"))
		}
		if got := times(); len(got) != 1 || got[0] != 1 {
			t.Errorf("at once: %v", got)
		}
		<-time.After(reportEvery)
		r.result(errors.New("no route"))
		if got := times(); len(got) != 1 || got[0] != 5 {
			t.Errorf("after a minute: %v", got)
		}
		r.result(errors.New("no route"))
		r.result(nil)
		r.result(nil)
		if got := times(); len(got) != 1 {
			t.Errorf("works again: %v", got)
		}
		r.result(errors.New("no route"))
		r.result(errors.New("no route"))
		r.close()
		if got := times(); len(got) != 2 || got[1] != 1 {
			t.Errorf("at the end: %v", got)
		}
	})
}
