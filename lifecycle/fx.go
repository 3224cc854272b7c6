package lifecycle

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"
	"go.uber.org/zap"
)

// group is the fx value group of all components.
const group = `group:"longshore.components"`

// Provide adds constructors of components to an fx application: one line for
// each container. A constructor may take whatever the graph has and returns a
// [Component], or something that is one, and possibly an error. It is needed
// instead of fx.Provide because fx refuses two constructors of one type.
func Provide(constructors ...any) fx.Option {
	opts := make([]fx.Option, 0, len(constructors))
	for _, c := range constructors {
		opts = append(opts, fx.Provide(fx.Annotate(c, fx.As(new(Component)), fx.ResultTags(group))))
	}
	return fx.Options(opts...)
}

// ProvideAll is [Provide] for constructors that return several components at once, a
// []Component, as a configuration file does.
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
// events.
func Module(cfg Config) fx.Option {
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = defaultStopTimeout
	}
	return fx.Options(
		fx.StopTimeout(cfg.StopTimeout),
		fx.WithLogger(func(in optionalLogger) fxevent.Logger {
			if in.Logger == nil {
				return fxevent.NopLogger
			}
			return &fxevent.ZapLogger{Logger: in.Logger}
		}),
		fx.Invoke(func(lc fx.Lifecycle, in components) error {
			if cfg.Logger == nil {
				cfg.Logger = in.Logger
			}
			m, err := New(cfg, in.Parts...)
			if err != nil {
				return err
			}
			lc.Append(fx.StartStopHook(m.startHook, m.stopHook))
			return nil
		}),
		fx.Provide(newChain),
	)
}

// undoMost is what is kept of a start's time to undo it, where a quarter is more.
const undoMost = 5 * time.Second

// startHook keeps a part of the time that fx gives a start for undoing it. fx does not wait
// for a hook whose time is over and calls no stop of it; App.Run then ends the process
// (uber-go/fx #767, #1035).
func (m *Manager) startHook(ctx context.Context) error {
	var undoBy time.Time
	if end, ok := ctx.Deadline(); ok {
		kept := min(time.Until(end)/4, undoMost)
		early, cancel := context.WithDeadline(ctx, end.Add(-kept))
		defer cancel()
		ctx, undoBy = early, end.Add(-kept/8) // fx prefers its own error, without a name, to one that comes late
	}
	if err := m.start(ctx, undoBy); err != nil {
		return fmt.Errorf("lifecycle: %w", err)
	}
	return nil
}

// stopHook ends before the time that fx gives a stop, for the same reason: behind its
// limit fx says that it is over, and nobody hears who did not stop.
func (m *Manager) stopHook(ctx context.Context) error {
	var doneBy time.Time
	if end, ok := ctx.Deadline(); ok {
		doneBy = end.Add(-min(time.Until(end)/32, undoMost/8))
	}
	return m.stopBy(ctx, doneBy)
}

type optionalLogger struct {
	fx.In
	Logger *zap.Logger `optional:"true"`
}

type components struct {
	fx.In
	Parts  []Component `group:"longshore.components"`
	Logger *zap.Logger `optional:"true"`
}
