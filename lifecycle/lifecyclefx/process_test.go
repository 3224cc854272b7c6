package lifecyclefx_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
	"github.com/longshore-go/longshore/transport/memory"
)

// TestMain subscribes to signals once before any synctest bubble does: the runtime's own
// goroutine for signals must not be created inside a bubble.
func TestMain(m *testing.M) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

// F-N30: the same with a process, a real signal and fx.App.Run.
func TestFxProcessTakesASignalDuringItsStart(t *testing.T) {
	if os.Getenv("LIFECYCLEFX_TEST_CHILD") != "" {
		fxChild(t)
		return
	}
	for hangs, code := range map[string]int{"no": 0, "yes": 1} {
		t.Run("a handler hangs: "+hangs, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFxProcessTakesASignalDuringItsStart$")
			child.Env = append(os.Environ(), "LIFECYCLEFX_TEST_CHILD="+hangs)
			var out bytes.Buffer
			child.Stdout, child.Stderr = &out, &out
			if err := child.Run(); child.ProcessState.ExitCode() != code {
				t.Errorf("exit %d (%v), want %d: %s", child.ProcessState.ExitCode(), err, code, out.String())
			}
			if !strings.Contains(out.String(), "orders drained") {
				t.Errorf("output %q", out.String())
			}
		})
	}
}

// fxChild signals itself as soon as a handler runs, while a component still starts.
func fxChild(t *testing.T) {
	broker := memory.New(memory.Config{})
	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		if os.Getenv("LIFECYCLEFX_TEST_CHILD") == "yes" {
			select {}
		}
		<-time.After(100 * time.Millisecond)
		return ctx.Err()
	}), container.Config{Workers: container.Workers{Min: 1, Max: 1}})
	if err != nil {
		t.Fatal(err)
	}
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := pub.Publish(t.Context(), "orders", &longshore.Message{ID: "1"}); err != nil {
		t.Fatal(err)
	}
	report := lifecycle.Hook("report", lifecycle.PhasePools, nil, func(context.Context) error {
		_, _ = os.Stdout.WriteString(c.Name() + " " + c.DrainReport() + "\n")
		return nil
	})
	fx.New(lifecyclefx.Provide(func() lifecycle.Component { return c }, func() lifecycle.Component { return report }, func() lifecycle.Component {
		return lifecycle.Hook("invoices", lifecycle.PhaseContainers, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
	}),
		lifecyclefx.Module(lifecycle.Config{StopTimeout: 25 * time.Second}), fx.StopTimeout(2*time.Second)).Run()
	os.Exit(0)
}

// F-N30: a signal during a start hook before ours ends the start too, and what had started is
// stopped; where that hook hangs, a second signal ends the process.
func TestFxProcessTakesASignalDuringAnEarlierHook(t *testing.T) {
	if how := os.Getenv("LIFECYCLEFX_TEST_EARLY"); how != "" {
		fxEarlyChild(how == "hangs")
		return
	}
	for how, want := range map[string]struct {
		code int
		text string
	}{"returns": {0, "stopped"}, "hangs": {-1, ""}} {
		t.Run(how, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFxProcessTakesASignalDuringAnEarlierHook$")
			child.Env = append(os.Environ(), "LIFECYCLEFX_TEST_EARLY="+how)
			out, err := child.CombinedOutput()
			if code := child.ProcessState.ExitCode(); code != want.code || string(out) != want.text {
				t.Errorf("exit %d (%v), want %d: %q", code, err, want.code, out)
			}
		})
	}
}

// fxEarlyChild signals itself in a start hook that comes before Module's.
func fxEarlyChild(hangs bool) {
	signals := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) }
	hook := fx.StartStopHook(func(ctx context.Context) {
		signals()
		if hangs {
			for ctx.Err() == nil { // the first ones count as one
				<-time.After(100 * time.Millisecond)
				signals()
			}
		}
		<-time.After(100 * time.Millisecond)
	}, func() { _, _ = os.Stdout.WriteString("stopped") })
	orders := lifecycle.Hook("orders", lifecycle.PhaseContainers, func(context.Context) error {
		_, _ = os.Stdout.WriteString("orders started, ")
		return nil
	}, nil)
	fx.New(fx.Invoke(func(lc fx.Lifecycle) { lc.Append(hook) }), lifecyclefx.Provide(func() lifecycle.Component { return orders }),
		lifecyclefx.Module(lifecycle.Config{})).Run()
	os.Exit(0)
}
