package logs

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
)

// Stderr is the logger of a part that was given none: lines for people, on stderr.
func Stderr(level zapcore.Level) *zap.Logger {
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), zapcore.Lock(os.Stderr), level))
}

// Of is how Longshore writes with a logger that it was given: a caller or a stack would only
// show frames of Longshore, the same at every line. nil is not a log.
func Of(given *zap.Logger) *zap.Logger {
	if given == nil {
		return zap.NewNop()
	}
	return given.WithOptions(zap.WithCaller(false), zap.AddStacktrace(zapcore.FatalLevel))
}

// OrStderr is Of; nil is Stderr from that level on.
func OrStderr(given *zap.Logger, level zapcore.Level) *zap.Logger {
	if given == nil {
		return Stderr(level)
	}
	return Of(given)
}

// Failure are the fields of an error: code, error, help if it has a hint, and its own.
func Failure(err error) []zap.Field {
	if err == nil {
		return nil
	}
	text := err.Error()
	var e *longshore.Error
	found := errors.As(err, &e)
	if found && e.Hint != "" {
		text = strings.TrimSuffix(text, "; "+e.Hint) // it has a field of its own
	}
	text = strings.TrimPrefix(text, "longshore: ")
	fs := []zap.Field{zap.String("code", string(codeOf(err))), zap.String("error", text)}
	if found && e.Hint != "" {
		fs = append(fs, zap.String("help", e.Hint))
	}
	for _, f := range longshore.FieldsOf(err) {
		fs = append(fs, zap.String(f.Name, f.Value))
	}
	return fs
}

// Unique drops fields whose name an earlier one has, or one of taken.
func Unique(fs []zap.Field, taken ...string) []zap.Field {
	out := fs[:0]
	for _, f := range fs {
		if f.Type != zapcore.SkipType && !slices.Contains(taken, f.Key) {
			out, taken = append(out, f), append(taken, f.Key)
		}
	}
	return out
}

// codeOf is longshore.CodeOf, but an error of the network that has no code yet, or a time
// that is over, is not that of a handler: a handler's error comes with its code.
func codeOf(err error) longshore.Code {
	code := longshore.CodeOf(err)
	var e *longshore.Error
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case code != longshore.CodeHandler || errors.As(err, &e):
	case errors.As(err, &op) || errors.As(err, &dns):
		return longshore.CodeUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return longshore.CodeTimeout
	}
	return code
}

// Every is how often a line that repeats is written.
const Every = time.Minute

// Quiet lets a line through at once and then once in Every: an outage must not fill a
// disk. The zero value is ready.
type Quiet struct {
	mu   sync.Mutex
	last time.Time
	held int
}

// Due reports whether the line is to be written, and how many it then stands for.
func (q *Quiet) Due(now time.Time) (stands int, due bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held++
	if !q.last.IsZero() && now.Sub(q.last) < Every {
		return 0, false
	}
	stands, q.held, q.last = q.held, 0, now
	return stands, true
}

// Repeated says how many a line stands for, if that is more than itself.
func Repeated(stands int) zap.Field {
	if stands < 2 {
		return zap.Skip()
	}
	return zap.Int("repeated", stands)
}
