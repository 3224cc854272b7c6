package lifecyclefx_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/fx"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
)

// F-A07: fx gives up a hook whose time is over and stops nothing of it, so a start that
// takes too long is undone before that, and says who it was.
func TestFxStartThatTakesTooLongIsUndoneInItsTime(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 15 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var undone []string
			note := func(name string, phase int) lifecycle.Component {
				return lifecycle.Hook(name, phase, nil, func(context.Context) error { undone = append(undone, name); return nil })
			}
			app := fx.New(
				lifecyclefx.Provide(
					func() lifecycle.Component { return note("db", lifecycle.PhasePools) },
					func() lifecycle.Component { return note("publisher", lifecycle.PhasePublishers) },
					func() lifecycle.Component {
						return lifecycle.Hook("orders", lifecycle.PhaseContainers, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil)
					}),
				lifecyclefx.Module(lifecycle.Config{}))
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begin := time.Now()
			err := app.Start(ctx)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `start "orders"`) {
				t.Errorf("limit %v: start: %v", limit, err)
			}
			if took := time.Since(begin); took < limit*3/4 || took >= limit {
				t.Errorf("limit %v: it took %v", limit, took)
			}
			if !slices.Equal(undone, []string{"publisher", "db"}) {
				t.Errorf("limit %v: undone before Start returned: %v", limit, undone)
			}
			synctest.Wait()
		})
	}
}

// A start that ignores its context is left behind early enough for the others to be undone,
// however short the time is.
func TestFxStartThatIgnoresItsContextIsNamedAndTheOthersUndone(t *testing.T) {
	for _, limit := range []time.Duration{time.Second, 4 * time.Second, 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var undone []string
			forever := make(chan struct{})
			app := fx.New(
				lifecyclefx.Provide(
					func() lifecycle.Component {
						return lifecycle.Hook("db", lifecycle.PhasePools, nil, func(context.Context) error { undone = append(undone, "db"); return nil })
					},
					func() lifecycle.Component {
						return lifecycle.Hook("orders", lifecycle.PhaseContainers, func(context.Context) error { <-forever; return nil }, nil)
					}),
				lifecyclefx.Module(lifecycle.Config{}))
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begin := time.Now()
			err := app.Start(ctx)
			if err == nil || !strings.Contains(err.Error(), `start "orders"`) {
				t.Errorf("limit %v: start: %v", limit, err)
			}
			if took := time.Since(begin); took >= limit {
				t.Errorf("limit %v: it took %v", limit, took)
			}
			if !slices.Equal(undone, []string{"db"}) {
				t.Errorf("limit %v: undone before Start returned: %v", limit, undone)
			}
			close(forever)
			synctest.Wait()
		})
	}
}

// A StopTimeout that grows is fx's ceiling, since fx takes its own before the components are known.
func TestFxStopTimeoutGrows(t *testing.T) {
	var m *lifecycle.Manager
	slow := func() lifecycle.Component { return budgeted{lifecycle.Hook("relay", lifecycle.PhaseRelays, nil, nil)} }
	app := fx.New(fx.NopLogger, lifecyclefx.Provide(slow), lifecyclefx.Module(lifecycle.Config{Grow: true}), fx.Populate(&m))
	if app.Err() != nil || m.StopTimeout() != 40*time.Second || app.StopTimeout() < 40*time.Second {
		t.Errorf("%v, %v of %v", app.Err(), m.StopTimeout(), app.StopTimeout())
	}
}

// budgeted is a component whose stop may take 37 s.
type budgeted struct{ lifecycle.Component }

func (budgeted) Phase() int                { return lifecycle.PhaseRelays }
func (budgeted) StopBudget() time.Duration { return 37 * time.Second }

// orders is a component of a type of its own, as constructors usually return one.
type orders struct{ lifecycle.Component }

func (orders) Phase() int { return lifecycle.PhaseContainers }

func TestFxStartsByPhaseWhateverTheGroupOrder(t *testing.T) {
	var lines []string
	hook := func(name string, phase int) lifecycle.Component {
		note := func(what string) func(context.Context) error {
			return func(context.Context) error { lines = append(lines, what+" "+name); return nil }
		}
		return lifecycle.Hook(name, phase, note("start"), note("stop"))
	}
	app := fx.New(
		lifecyclefx.Provide(func() orders { return orders{hook("orders", lifecycle.PhaseContainers)} },
			func() (lifecycle.Component, error) { return hook("invoices", lifecycle.PhaseContainers+1), nil }),
		lifecyclefx.Provide(func() lifecycle.Component { return hook("db", lifecycle.PhasePools) }),
		lifecyclefx.Module(lifecycle.Config{StopTimeout: 30 * time.Second}),
	)
	if app.StopTimeout() != 30*time.Second {
		t.Errorf("fx stop timeout %v", app.StopTimeout())
	}
	if err := errors.Join(app.Start(t.Context()), app.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []string{"start db", "start orders", "start invoices", "stop invoices", "stop orders", "stop db"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %v\nwant %v", lines, want)
	}
}

func named(name string, trace *[]string) longshore.Middleware {
	return longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
		return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			*trace = append(*trace, name)
			return next.Handle(ctx, d)
		})
	})
}

// Middlewares come from anywhere in an fx application and stand at their places.
func TestFxMiddlewaresStandAtTheirPlaces(t *testing.T) {
	for range 20 { // the order of a value group is random
		var trace []string
		var chain lifecyclefx.Chain
		app := fx.New(fx.NopLogger,
			lifecyclefx.ProvideMiddleware(50, func() (longshore.Middleware, error) { return named("mutex", &trace), nil }),
			fx.Module("telemetry", lifecyclefx.ProvideMiddleware(-10,
				func() longshore.Middleware { return named("trace", &trace) },
				func() longshore.Middleware { return named("metrics", &trace) })),
			lifecyclefx.ProvideMiddleware(20, func() longshore.Middleware { return named("log", &trace) }),
			lifecyclefx.Module(lifecycle.Config{}), fx.Populate(&chain))
		if app.Err() != nil {
			t.Fatal(app.Err())
		}
		h := longshore.Chain(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), chain...)
		if err := h.Handle(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if want := []string{"trace", "metrics", "log", "mutex"}; !slices.Equal(trace, want) {
			t.Fatalf("got %v, want %v", trace, want)
		}
	}
}

func TestFxMiddlewaresThatCannotBeOrderedOrMade(t *testing.T) {
	one := func() longshore.Middleware { return named("one", new([]string)) }
	var chain lifecyclefx.Chain
	for name, tc := range map[string]struct {
		opt  fx.Option
		text string
	}{
		"one place twice":          {fx.Options(lifecyclefx.ProvideMiddleware(1, one), lifecyclefx.ProvideMiddleware(1, one)), "place 1"},
		"a constructor that fails": {lifecyclefx.ProvideMiddleware(1, func() (longshore.Middleware, error) { return nil, errors.New("no table") }), "no table"},
	} {
		err := fx.New(fx.NopLogger, tc.opt, lifecyclefx.Module(lifecycle.Config{}), fx.Populate(&chain)).Err()
		if err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := fx.New(fx.NopLogger, lifecyclefx.Module(lifecycle.Config{}), fx.Populate(&chain)).Err(); err != nil || len(chain) != 0 {
		t.Errorf("none: %v, %v", chain, err)
	}
}
