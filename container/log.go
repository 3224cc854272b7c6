package container

import (
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
)

// stderrLogger is for containers that were given none.
func stderrLogger() *zap.Logger {
	cfg := zap.NewProductionEncoderConfig()
	cfg.EncodeTime = zapcore.ISO8601TimeEncoder
	return zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(cfg), zapcore.Lock(os.Stderr), zapcore.WarnLevel))
}

// repeatEvery is how often the same code may be logged by one container.
const repeatEvery = time.Minute

// limitedLog writes events as log lines. What repeats is written at once, then
// once a minute with a count: an outage must not fill a disk.
type limitedLog struct {
	log   *zap.Logger
	clock longshore.Clock

	mu   sync.Mutex
	seen map[string]*repeat
}

type repeat struct {
	last       time.Time
	suppressed int
}

func newLimitedLog(s *settings) *limitedLog {
	log := s.log.With(zap.String("container", s.name), zap.String("source", s.about.Name), zap.String("transport", s.about.Transport))
	return &limitedLog{log: log, clock: s.clock, seen: map[string]*repeat{}}
}

// allow says whether a line of this kind may be written, and how many were not.
func (l *limitedLog) allow(key string, now time.Time) (ok bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.seen[key]
	if s == nil {
		l.seen[key] = &repeat{last: now}
		return true, 0
	}
	if now.Sub(s.last) < repeatEvery {
		s.suppressed++
		return false, 0
	}
	suppressed = s.suppressed
	s.last, s.suppressed = now, 0
	return true, suppressed
}

// phrases are the fixed messages of the lines; the facts are fields.
//
//nolint:gochecknoglobals // a constant table
var phrases = map[EventKind]struct {
	text    string
	level   zapcore.Level
	limited bool
}{
	EventState:            {"container state", zapcore.DebugLevel, false},
	EventSubscribed:       {"container subscribed", zapcore.InfoLevel, false},
	EventDown:             {"consumer lost", zapcore.WarnLevel, true},
	EventLost:             {"deliveries lost", zapcore.WarnLevel, true},
	EventScaled:           {"workers scaled", zapcore.InfoLevel, false},
	EventFailed:           {"delivery failed", zapcore.WarnLevel, true},
	EventDiscarded:        {"delivery discarded", zapcore.WarnLevel, true},
	EventDeadLettered:     {"delivery dead-lettered", zapcore.WarnLevel, true},
	EventDeadLetterFailed: {"dead-letter failed", zapcore.ErrorLevel, true},
	EventDelayCut:         {"retry delay cut", zapcore.WarnLevel, true},
	EventParkingFull:      {"parking full", zapcore.WarnLevel, true},
	EventLaneFull:         {"lane fills the window", zapcore.WarnLevel, true},
	EventStuck:            {"handler stuck", zapcore.ErrorLevel, true},
	EventUnstuck:          {"handler returned after all", zapcore.WarnLevel, true},
	EventHeld:             {"intake held", zapcore.WarnLevel, false},
	EventReleased:         {"intake released", zapcore.InfoLevel, false},
	EventSettleFailed:     {"settlement failed", zapcore.WarnLevel, true},
	EventDrained:          {"container drained", zapcore.InfoLevel, false},
	EventStandby:          {"consumer on standby", zapcore.InfoLevel, false},
	EventActive:           {"consumer active", zapcore.InfoLevel, false},
	EventBlocked:          {"broker blocks publishers", zapcore.WarnLevel, false},
	EventUnblocked:        {"broker takes messages again", zapcore.InfoLevel, false},
	EventSkipped:          {"messages skipped", zapcore.WarnLevel, true},
	EventNotice:           {"container notice", zapcore.WarnLevel, true},
}

// event writes the line of an event.
func (l *limitedLog) event(e Event) {
	p := phrases[e.Kind]
	level := l.level(e, p.level)
	ce := l.log.Check(level, p.text)
	if ce == nil {
		return
	}
	var suppressed int
	if p.limited {
		key := string(e.Kind) + " " + string(longshore.CodeOf(e.Err))
		if e.Kind == EventNotice {
			key += " " + e.Text
		}
		ok, n := l.allow(key, e.Time)
		if !ok {
			return
		}
		suppressed = n
	}
	ce.Write(fields(e, suppressed)...)
}

// level is what the event's code or size asks for.
func (l *limitedLog) level(e Event, usual zapcore.Level) zapcore.Level {
	switch e.Kind {
	case EventScaled:
		if small := 4*abs(e.To-e.From) < e.From; small {
			return zapcore.DebugLevel
		}
	case EventDrained:
		if e.Report != nil && e.Report.Bad() {
			return zapcore.WarnLevel
		}
	case EventFailed, EventDown:
		switch longshore.CodeOf(e.Err) {
		case longshore.CodePanic, longshore.CodeAuth, longshore.CodeForbidden, longshore.CodeVhost, longshore.CodeNotFound, longshore.CodeDiffers, longshore.CodeTLS, longshore.CodeConfig:
			return zapcore.ErrorLevel
		}
	}
	return usual
}

func abs(n int) int { return max(n, -n) }

// kindFields are the facts whose names depend on the kind.
func kindFields(e Event) []zap.Field {
	var fs []zap.Field
	count := "count"
	switch e.Kind {
	case EventSubscribed:
		return []zap.Field{zap.Int("generation", e.Generation), zap.Int("workers", e.Workers), zap.Int("window", e.Window)}
	case EventScaled:
		fs = append(fs, zap.Int("from", e.From), zap.Int("to", e.To))
	case EventDeadLettered:
		return []zap.Field{zap.String("to", e.Reason), zap.String("reason", string(longshore.CodeOf(e.Err))), zap.Int("attempts", e.Delivery.Attempt)}
	case EventDown, EventLost:
		count = "lost"
	}
	if e.Reason != "" {
		fs = append(fs, zap.String("reason", e.Reason))
	}
	if e.Count > 0 {
		fs = append(fs, zap.Int(count, e.Count))
	}
	return fs
}

// fields are the facts of an event that are there.
func fields(e Event, suppressed int) []zap.Field {
	var fs []zap.Field
	if e.Err != nil {
		fs = append(fs, zap.String("code", string(longshore.CodeOf(e.Err))), zap.String("error", e.Err.Error()))
		var le *longshore.Error
		if errors.As(e.Err, &le) && le.Hint != "" {
			fs = append(fs, zap.String("help", le.Hint))
		}
	}
	text := func(name, v string) {
		if v != "" {
			fs = append(fs, zap.String(name, v))
		}
	}
	if e.Err == nil || e.Kind == EventNotice {
		text("text", e.Text)
	}
	fs = append(fs, kindFields(e)...)
	if e.Delay > 0 {
		fs = append(fs, zap.Duration("retry_in", e.Delay))
	}
	if d := e.Delivery; d != nil {
		text("message_id", d.MessageID)
		text("key", d.Key)
		fs = append(fs, zap.Int("attempt", d.Attempt), zap.Int("of", d.Of))
		if d.Age > 0 {
			fs = append(fs, zap.Duration("age", d.Age))
		}
	}
	if e.Report != nil {
		fs = append(fs, e.Report.fields()...)
	}
	text("stack", e.Stack)
	if suppressed > 0 {
		fs = append(fs, zap.Int("repeated", suppressed))
	}
	return fs
}
