package lifecyclefx

import (
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore/lifecycle"
)

// group is the fx value group of all components.
const group = `group:"longshore.components"`

// Provide adds constructors of components to an fx application: one line for
// each container. A constructor may take whatever the graph has and returns a
// [lifecycle.Component], or something that is one, and possibly an error. It is needed
// instead of fx.Provide because fx refuses two constructors of one type.
func Provide(constructors ...any) fx.Option {
	opts := make([]fx.Option, 0, len(constructors))
	for _, c := range constructors {
		opts = append(opts, fx.Provide(fx.Annotate(c, fx.As(new(lifecycle.Component)), fx.ResultTags(group))))
	}
	return fx.Options(opts...)
}

// ProvideAll is [Provide] for constructors that return several components at once, a
// []lifecycle.Component, as a configuration file does.
func ProvideAll(constructors ...any) fx.Option {
	opts := make([]fx.Option, 0, len(constructors))
	for _, c := range constructors {
		opts = append(opts, fx.Provide(fx.Annotate(c, fx.ResultTags(group[:len(group)-1]+`,flatten"`))))
	}
	return fx.Options(opts...)
}

// Module starts and stops everything that [Provide] added, by phases, inside
// one fx hook, and sets fx.StopTimeout to cfg.StopTimeout. Give it last: fx obeys
// the last StopTimeout, and with a smaller one the drain is cut short (a warning
// says so). fx's own default of 15 s for all hooks together would skip the hooks
// behind a slow one. Of fx.StartTimeout a quarter, at most 5 s, is kept to undo a start
// that takes too long.
//
// Components get the application's *zap.Logger if there is one, and so do fx's
// events. The [lifecycle.Manager] is in the graph, to add components while the application runs.
//
// fx obeys signals only once everything has started. From the first start hook until then
// Module does: the first SIGINT or SIGTERM ends the start, which succeeds with what runs by then, and asks
// fx to shut down, as [fx.Shutdowner] does. App.Run then stops the application within
// StopTimeout and exits with 0, or with 1 if something is left behind. A second signal
// ends the waiting for handlers. A start hook of another module that runs when the signal
// comes is not cut short; there, a second signal kills the process. With an fx.WithLogger or fx.NopLogger
// behind Module, signals are obeyed from Module's own start hook on.
func Module(cfg lifecycle.Config) fx.Option {
	early := &startEvents{}
	return fx.Options(
		fx.StopTimeout(stopTimeout(cfg)),
		fx.WithLogger(func(in optionalLogger) fxevent.Logger {
			early.Logger = fxevent.NopLogger
			if in.Logger != nil {
				early.Logger = &fxevent.ZapLogger{Logger: in.Logger}
			}
			return early
		}),
		fx.Provide(newChain, func(in components) (*lifecycle.Manager, error) {
			if cfg.Logger == nil {
				cfg.Logger = in.Logger
			}
			return lifecycle.New(cfg, in.Parts...)
		}),
		fx.Invoke(func(lc fx.Lifecycle, m *lifecycle.Manager, down fx.Shutdowner) {
			h := m.Hosted(func() { _ = down.Shutdown() }) // its error says that another signal is already there
			early.hosted = h
			lc.Append(fx.StartStopHook(h.Start, h.Stop))
		}),
	)
}

// startEvents logs fx's events. From them it also learns when the application begins to start,
// which no hook of ours could: hooks run in the order in which constructors added them.
type startEvents struct {
	fxevent.Logger // where the events go

	hosted *lifecycle.Hosted // obeys signals; nil until the graph is complete
}

// LogEvent implements fxevent.Logger.
func (e *startEvents) LogEvent(event fxevent.Event) {
	e.Logger.LogEvent(event)
	if e.hosted == nil {
		return
	}
	switch event.(type) {
	case *fxevent.OnStartExecuting:
		e.hosted.Listen() // at the first hook; later calls do nothing
	case *fxevent.Started:
		e.hosted.Unlisten()
	}
}

// fxCeiling is the StopTimeout of fx where the manager's grows: fx takes its own before
// the components are known. The manager's bounds the stop.
const fxCeiling = 5 * time.Minute

func stopTimeout(cfg lifecycle.Config) time.Duration {
	switch {
	case cfg.Grow:
		return max(cfg.StopTimeout, fxCeiling)
	case cfg.StopTimeout == 0:
		return lifecycle.DefaultStopTimeout
	}
	return cfg.StopTimeout
}

type optionalLogger struct {
	fx.In
	Logger *zap.Logger `optional:"true"`
}

type components struct {
	fx.In
	Parts  []lifecycle.Component `group:"longshore.components"`
	Logger *zap.Logger           `optional:"true"`
}
