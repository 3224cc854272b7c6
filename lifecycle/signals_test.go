package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
)

// blackHole is a component whose start ends only with its context.
func blackHole(name string) Component {
	return Hook(name, PhaseContainers, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
}

// F-N30: a signal while one component still starts and a container handles already drains
// what runs, reports, and exits with the documented code.
func TestSignalDuringTheStartDrainsAndReports(t *testing.T) {
	for name, tc := range map[string]struct {
		takes   time.Duration // of a handler; it ignores its context
		signals []os.Signal
		code    int
		text    string
	}{
		"handlers end":     {5 * time.Second, []os.Signal{syscall.SIGTERM}, 0, "completed while draining 1"},
		"a handler hangs":  {time.Hour, []os.Signal{syscall.SIGTERM}, 1, "abandoned 1"},
		"a second signal":  {time.Hour, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, 143, "abandoned 1"},
		"a second, Ctrl-C": {time.Hour, []os.Signal{os.Interrupt, os.Interrupt}, 130, "abandoned 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				running := make(chan struct{})
				c := consuming(t, "orders", 1, func(context.Context) error {
					close(running)
					<-time.After(tc.takes)
					return nil
				})
				signals := make(chan os.Signal)
				go func() {
					<-running
					for _, s := range tc.signals {
						synctest.Wait()
						signals <- s
						<-time.After(sameStop)
					}
				}()
				var out bytes.Buffer
				if code := run(signals, &out, []Component{c, blackHole("invoices")}); code != tc.code || !strings.Contains(out.String(), tc.text) {
					t.Errorf("exit %d, output %q", code, out.String())
				}
				<-time.After(2 * time.Hour)
			})
		})
	}
}

// F-N30: a failure that comes with the signal is not hidden by it.
func TestSignalDoesNotHideAFailedStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		missing := Hook("orders", PhaseContainers, func(ctx context.Context) error { <-ctx.Done(); return errors.New("no such queue") }, nil)
		go func() { synctest.Wait(); signals <- syscall.SIGTERM }() // both are starting
		var out bytes.Buffer
		if code := run(signals, &out, []Component{missing, blackHole("invoices")}); code != 1 || !strings.Contains(out.String(), "no such queue") || strings.Contains(out.String(), "invoices") {
			t.Errorf("exit %d, output %q", code, out.String())
		}
	})
}

// F-N30: Run takes the end of its context for what it is, also during the start.
func TestRunThatEndsDuringTheStart(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			end := make(chan struct{})
			c := consuming(t, "orders", 1, func(context.Context) error {
				if hangs {
					<-end
				}
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			err := Run(ctx, c, blackHole("invoices"))
			if hangs != errors.Is(err, longshore.CodeDrain) || !hangs && err != nil {
				t.Errorf("hangs %v: %v", hangs, err)
			}
			close(end)
			synctest.Wait()
		})
	}
}

// F-N30: in another framework a signal during the start leaves the draining to the stop, which has the
// whole StopTimeout for it. A signal after the start reaches the framework as well.
func TestHostedObeysSignalsFromTheStartOn(t *testing.T) {
	for name, started := range map[string]bool{"during the start": false, "behind it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{}
				parts := []Component{&part{journal: j, name: "orders", phase: PhaseContainers, budget: 20 * time.Second, stopFor: 18 * time.Second}}
				if !started {
					parts = append(parts, blackHole("invoices"))
				}
				m, err := New(Config{}, parts...)
				if err != nil {
					t.Fatal(err)
				}
				var signals chan<- os.Signal
				silent := false
				downs := 0
				hook := &Hosted{m: m, down: func() { downs++ }, notify: func(c chan<- os.Signal) func() {
					signals = c
					return func() { silent = true }
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
				defer cancel()
				result := make(chan error, 1)
				go func() { result <- hook.Start(ctx) }()
				synctest.Wait()
				signals <- syscall.SIGTERM
				if err := <-result; err != nil {
					t.Errorf("start: %v", err)
				}
				synctest.Wait()
				if downs != 1 || slices.Contains(j.lines, "stop orders") {
					t.Errorf("the framework was asked %d times; %v", downs, j.lines)
				}
				if err := hook.Stop(context.Background()); err != nil || !slices.Contains(j.lines, "stop orders") || !silent {
					t.Errorf("stop: %v; %v; silent %v", err, j.lines, silent)
				}
			})
		})
	}
}

// F-N30: the time of the start over, signals are left to the framework.
func TestHostedLeavesSignalsToItsFrameworkAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := New(Config{}, &part{journal: &journal{}, name: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		var silent atomic.Bool
		hook := &Hosted{m: m, notify: func(chan<- os.Signal) func() { return func() { silent.Store(true) } }}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if err := hook.Start(ctx); err != nil || silent.Load() {
			t.Errorf("%v, silent %v", err, silent.Load())
		}
		<-time.After(16 * time.Second)
		synctest.Wait()
		if !silent.Load() {
			t.Error("signals are still caught")
		}
		if err := hook.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
