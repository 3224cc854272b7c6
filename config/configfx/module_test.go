package configfx_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/config/configfx"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
	"github.com/longshore-go/longshore/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Options{Environ: []string{}}.Parse("longshore.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestModuleRunsTheFile(t *testing.T) {
	c := parse(t, "containers: {a: {source: mem://a}}")
	var n, wrapped atomic.Int32
	done := make(chan struct{})
	app := fxtest.New(t,
		lifecyclefx.ProvideMiddleware(1, func() longshore.Middleware {
			return longshore.MiddlewareFunc(func(next longshore.Handler) longshore.Handler {
				wrapped.Add(1)
				return next
			})
		}),
		fx.Provide(func() config.Handlers {
			return config.Handlers{"a": longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
				if n.Add(1) == 1 {
					close(done)
				}
				return nil
			})}
		}), fx.Supply(zap.NewNop()), configfx.Module(c))
	app.RequireStart()
	publish(t, c)
	<-done
	app.RequireStop()
	if wrapped.Load() != 1 {
		t.Errorf("the chain of the application wrapped %d handlers", wrapped.Load())
	}
}

// publish sends one message to the container's source.
func publish(t *testing.T, c *config.Config) {
	t.Helper()
	src, err := c.Source("a")
	if err != nil {
		t.Fatal(err)
	}
	outlet, ok := src.(transport.Outlet)
	if !ok {
		t.Fatal("the source cannot publish")
	}
	p, self, err := outlet.Publisher(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Publish(t.Context(), self, &longshore.Message{Body: []byte("a")}), p.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// The module counts the components that the file does not know, and names the file's setting
// where it refuses them, as Config.Manager does.
func TestTheStopFitsWhatIsNotInTheFile(t *testing.T) {
	handlers := config.Handlers{"a": longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })}
	slow := func() lifecycle.Component { return slowStop{lifecycle.Hook("relay", lifecycle.PhaseRelays, nil, nil)} }
	for text, want := range map[string]time.Duration{
		"containers: {a: {source: mem://a}}":                                 40 * time.Second,
		"lifecycle: {stop_timeout: 30s}\ncontainers: {a: {source: mem://a}}": 0,
	} {
		var m *lifecycle.Manager
		err := fx.New(fx.NopLogger, fx.Supply(handlers, zap.NewNop()), lifecyclefx.Provide(slow), configfx.Module(parse(t, text)), fx.Populate(&m)).Err()
		switch {
		case want == 0:
			if !errors.Is(err, longshore.CodeDrainBudget) || !strings.Contains(err.Error(), "set lifecycle.stop_timeout to 40s") {
				t.Errorf("%s: %v", text, err)
			}
		case err != nil || m.StopTimeout() != want:
			t.Errorf("%s: %v", text, err)
		}
	}
}

// slowStop is a component with a budget of its own.
type slowStop struct{ lifecycle.Component }

func (slowStop) Phase() int                { return lifecycle.PhaseRelays }
func (slowStop) StopBudget() time.Duration { return 15 * time.Second }
