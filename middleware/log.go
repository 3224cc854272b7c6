package middleware

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Log writes one line for each call of a handler, at level info: what became of the
// message, how long it took, and the error if there was one. Bodies and headers are
// not written. What goes wrong the container logs by itself, at warn and error; Log
// is for those who want to see every message.
//
// Outside a container it does nothing: it lives on the verdicts that a container
// notifies its middlewares. A nil logger is zap's no-op.
func Log(l *zap.Logger) longshore.Middleware {
	return logger{logs.Of(l)}
}

type logger struct{ log *zap.Logger }

func (logger) Name() string { return nameLog }

func (logger) Wrap(next longshore.Handler) longshore.Handler { return next }

func (logger) WrapBatch(next longshore.BatchHandler) longshore.BatchHandler { return next }

// Outcome writes the line.
func (l logger) Outcome(d *longshore.Delivery, o longshore.Outcome) {
	line := l.log.Check(zapcore.InfoLevel, "handled")
	if line == nil {
		return
	}
	fields := make([]zap.Field, 0, 10)
	fields = append(fields, zap.Stringer("verdict", o.Verdict), zap.Duration("took", o.Took), zap.Int("attempt", d.Attempt), zap.String("message_id", d.Received().ID))
	if s := d.Origin.Subscription; s != nil {
		fields = append(fields, zap.String("transport", s.Transport), zap.String("source", s.Source))
	}
	if key := d.Received().Key; key != nil {
		fields = append(fields, zap.ByteString("key", key[:min(len(key), 64)]))
	}
	line.Write(logs.Unique(append(fields, logs.Failure(o.Err)...))...)
}
