package transporttest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a test that may fail without failing the real one.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	log      []string
	cleanups []func()
}

func (r *recorder) note(fail bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || fail
	if text != "" {
		r.log = append(r.log, strings.TrimSpace(text))
	}
}

func (r *recorder) Helper()                      {}
func (r *recorder) Log(args ...any)              { r.note(false, fmt.Sprintln(args...)) }
func (r *recorder) Logf(f string, args ...any)   { r.note(false, fmt.Sprintf(f, args...)) }
func (r *recorder) Error(args ...any)            { r.note(true, fmt.Sprintln(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.note(true, fmt.Sprintf(f, args...)) }
func (r *recorder) Fail()                        { r.note(true, "") }
func (r *recorder) FailNow()                     { r.note(true, ""); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)            { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }
func (r *recorder) Failed() bool                 { r.mu.Lock(); defer r.mu.Unlock(); return r.failed }
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) clean() {
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		f := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		f()
	}
}

// judge makes one check in a bubble of virtual time and returns what it said.
func judge(t *testing.T, c check, harness func(t testing.TB) Harness) (failed bool, log []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{TB: t}
		alone := func(f func()) {
			done := make(chan struct{})
			go func() { defer close(done); f() }()
			<-done
		}
		alone(func() { c.execute(r, harness(r).withDefaults()) })
		alone(r.clean)
		r.mu.Lock()
		defer r.mu.Unlock()
		failed, log = r.failed, slices.Clone(r.log)
	})
	return failed, log
}
