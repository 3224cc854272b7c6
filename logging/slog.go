package logging

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Slog returns a zap logger that writes to l. The level, the format and the attributes of l
// apply. A nil l is [slog.Default].
func Slog(l *slog.Logger) *zap.Logger {
	if l == nil {
		l = slog.Default()
	}
	return zap.New(core{l.Handler()})
}

// core writes zap's entries to a slog handler.
type core struct{ to slog.Handler }

func (c core) Enabled(level zapcore.Level) bool {
	return c.to.Enabled(context.Background(), slogLevel(level))
}

func (c core) With(fields []zapcore.Field) zapcore.Core {
	root := group{}
	for _, f := range fields {
		root.add(f)
	}
	to := c.to
	if attrs := root.attrs; len(attrs) > 0 {
		to = to.WithAttrs(attrs)
	}
	for next := root.inner; next != nil; next = next.inner {
		if to = to.WithGroup(next.name); len(next.attrs) > 0 {
			to = to.WithAttrs(next.attrs)
		}
	}
	return core{to}
}

func (c core) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	root := group{}
	if e.LoggerName != "" {
		root.attrs = append(root.attrs, slog.String("logger", e.LoggerName))
	}
	for _, f := range fields {
		root.add(f)
	}
	if e.Stack != "" {
		root.attrs = append(root.attrs, slog.String("stack", e.Stack))
	}
	r.AddAttrs(root.all()...)
	return c.to.Handle(context.Background(), r)
}

func (core) Sync() error { return nil }

// group is the attributes since a zap.Namespace, and what follows the next one.
type group struct {
	name  string
	attrs []slog.Attr
	inner *group
}

// add appends a field to the innermost group.
func (g *group) add(f zapcore.Field) {
	for g.inner != nil {
		g = g.inner
	}
	switch f.Type {
	case zapcore.SkipType:
	case zapcore.NamespaceType:
		g.inner = &group{name: f.Key}
	case zapcore.StringType:
		g.attrs = append(g.attrs, slog.String(f.Key, f.String))
	case zapcore.ErrorType: // the error itself, so that a handler can examine it
		g.attrs = append(g.attrs, slog.Any(f.Key, f.Interface))
	default: // zap knows how to read its own fields; one may become several
		enc := zapcore.NewMapObjectEncoder()
		f.AddTo(enc)
		for key, v := range enc.Fields {
			g.attrs = append(g.attrs, slog.Any(key, v))
		}
	}
}

func (g *group) all() []slog.Attr {
	if g.inner == nil {
		return g.attrs
	}
	return append(g.attrs, slog.Attr{Key: g.inner.name, Value: slog.GroupValue(g.inner.all()...)})
}

// slogLevel is the level of the same weight; slog has names up to error.
func slogLevel(l zapcore.Level) slog.Level {
	if l >= zapcore.DPanicLevel {
		return slog.LevelError + slog.Level(4*(l-zapcore.ErrorLevel))
	}
	return slog.Level(4 * l)
}
