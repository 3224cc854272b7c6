package otlp

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// reporter tells of what could not be sent: the first time at once, then one line a
// minute with a count, and that it works again.
type reporter struct {
	signal string
	log    *zap.Logger

	mu     sync.Mutex
	told   time.Time // zero: it works
	unsaid int       // failures since
	last   error
}

const reportEvery = time.Minute

func newReporter(signal string, log *zap.Logger) *reporter {
	return &reporter{signal: signal, log: logs.Of(log)}
}

func (r *reporter) result(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil && r.told.IsZero():
	case err == nil:
		r.log.Warn("telemetry is sent again", zap.String("signal", r.signal), zap.Int("repeated", r.unsaid))
		r.told, r.unsaid = time.Time{}, 0
	default:
		r.last = err
		if r.unsaid++; time.Since(r.told) >= reportEvery {
			r.tell()
		}
	}
}

// tell writes what is unsaid.
func (r *reporter) tell() {
	code, hint := judged(r.last)
	r.log.Warn("telemetry not sent", zap.String("signal", r.signal), zap.String("code", string(code)), zap.String("error", cut(r.last.Error())),
		zap.String("help", hint), zap.Int("repeated", r.unsaid))
	r.told, r.unsaid = time.Now(), 0
}

// close tells what no line has told yet.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsaid > 0 {
		r.tell()
	}
}

// judged is what an error of the client means. It has the answer in its text alone.
func judged(err error) (code longshore.Code, hint string) {
	has := func(text string) bool { return strings.Contains(err.Error(), text) }
	switch {
	case has(" 401 "), has(" 403 "):
		return longshore.CodeAuth, "check the headers that carry the key"
	case has(" 404 "):
		return longshore.CodeNotFound, "check the endpoint: /v1/traces and /v1/metrics are appended to it"
	case has("x509:"), has("tls:"):
		return longshore.CodeTLS, "check the authorities and the name in the collector's certificate"
	}
	return longshore.CodeUnreachable, "check the endpoint and that the collector runs"
}

// cut keeps an answer's page out of the log.
func cut(text string) string {
	const limit = 300
	if text = strings.ToValidUTF8(text, "?"); len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
