package container

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// limitedLog writes events as log lines; what repeats is limited, see repeats.
type limitedLog struct {
	log     *zap.Logger
	clock   longshore.Clock
	repeats *repeats
	paused  bool // the last state written; only the pump uses it
}

func newLimitedLog(s *settings) *limitedLog {
	log := s.log.With(zap.String("container", s.name), zap.String("source", s.about.Name), zap.String("transport", s.about.Transport))
	return &limitedLog{log: log, clock: s.clock, repeats: newRepeats(s.clock)}
}

// phrases are the fixed messages of the lines; the facts are fields.
//
//nolint:gochecknoglobals // a constant table
var phrases = map[EventKind]struct {
	text    string
	level   zapcore.Level
	limited bool
}{
	EventState:            {"container", zapcore.InfoLevel, false}, // with the state
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
	EventGivenBack:        {"message given back again and again", zapcore.WarnLevel, false}, // rare by itself
	EventLaneFull:         {"lane fills the window", zapcore.WarnLevel, true},
	EventLaneBlocked:      {"lane blocked", zapcore.WarnLevel, false},
	EventStuck:            {"handler stuck", zapcore.ErrorLevel, true},
	EventUnstuck:          {"handler returned after all", zapcore.WarnLevel, true},
	EventHeld:             {"intake held", zapcore.WarnLevel, false},
	EventIntakeResumed:    {"intake released", zapcore.InfoLevel, false},
	EventSettleFailed:     {"settlement failed", zapcore.WarnLevel, true},
	EventDrained:          {"container drained", zapcore.InfoLevel, false},
	EventStandby:          {"consumer on standby", zapcore.InfoLevel, false},
	EventActive:           {"consumer active", zapcore.InfoLevel, false},
	EventBlocked:          {"broker blocks publishers", zapcore.WarnLevel, false},
	EventUnblocked:        {"broker takes messages again", zapcore.InfoLevel, false},
	EventSkipped:          {"messages skipped", zapcore.WarnLevel, true},
	EventDeclared:         {"topology declared", zapcore.InfoLevel, false},
	EventNotice:           {"container notice", zapcore.WarnLevel, true},
}

// event writes the line of an event.
func (l *limitedLog) event(e Event) {
	if e.Kind == EventDrained || e.Kind == EventSubscribed { // what came before has its lines before it
		l.summaries(true)
	}
	p := phrases[e.Kind]
	text, level := p.text, l.level(e, p.level)
	text = phrase(e, text)
	ce := l.log.Check(level, text)
	if ce == nil {
		return
	}
	if p.limited {
		alone, due := l.repeats.note(e)
		if due != nil {
			l.summary(due)
		}
		if !alone {
			return
		}
	}
	ce.Write(fields(e)...)
}

// phrase is the message of an event's line.
func phrase(e Event, usual string) string {
	switch {
	case e.Kind == EventState:
		return "container " + e.Text
	case e.Kind == EventLost && longshore.CodeOf(e.Err) == longshore.CodeLeaseLost:
		return "lease lost"
	}
	return usual
}

// summaries writes the lines of what was held back: all, or what has waited long
// enough.
func (l *limitedLog) summaries(all bool) {
	for _, s := range l.repeats.take(all) {
		l.summary(s)
	}
}

// summary is the line of the last event held back, and says how many it stands
// for.
func (l *limitedLog) summary(s *repeat) {
	p := phrases[s.event.Kind]
	ce := l.log.Check(l.level(s.event, p.level), phrase(s.event, p.text))
	if ce == nil {
		return
	}
	last := s.event
	if len(s.ids) > 1 { // then the facts of the last one alone would mislead
		last.Delivery = nil
	}
	fs := append(fields(last), zap.Time("at", last.Time))
	if s.held > 1 {
		fs = append(fs, zap.Int("repeated", s.held))
	}
	if len(s.ids) > 1 {
		fs = append(fs, zap.Strings("message_ids", s.ids))
	}
	ce.Write(fs...)
}

// level is what the event's code or size asks for.
func (l *limitedLog) level(e Event, usual zapcore.Level) zapcore.Level {
	switch e.Kind {
	case EventState:
		// "container subscribed" says it already, except at the end of a pause.
		resumed := l.paused && e.Text == string(StateRunning)
		l.paused = e.Text == string(StatePaused)
		if e.Text == string(StateRunning) && !resumed {
			return zapcore.DebugLevel
		}
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
		case longshore.CodePanic, longshore.CodeAuth, longshore.CodeForbidden, longshore.CodeVhost, longshore.CodeNotFound, longshore.CodeMismatch, longshore.CodeTLS, longshore.CodeConfig:
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
		return []zap.Field{zap.Int("generation", e.Generation), zap.Int("workers", e.Workers), zap.Int("window", e.Window), zap.Duration("took", e.Took)}
	case EventScaled:
		fs = append(fs, zap.Int("from", e.From), zap.Int("to", e.To))
	case EventDeadLettered:
		fs = append(fs, zap.String("to", e.Reason), zap.String("reason", string(longshore.CodeOf(e.Err))))
		if e.Delivery != nil {
			fs = append(fs, zap.Int("attempts", e.Delivery.Attempt))
		}
		return fs
	case EventDeadLetterFailed:
		return []zap.Field{zap.String("to", e.Reason)}
	case EventSettleFailed:
		return []zap.Field{zap.String("verb", e.Reason)}
	case EventLaneFull, EventLaneBlocked:
		return []zap.Field{zap.String("key", e.Reason), zap.Int("waiting", e.Count)}
	case EventDown:
		count = "lost"
		if e.Attempt > 0 {
			fs = append(fs, zap.Int("attempt", e.Attempt))
		}
	case EventLost:
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
func fields(e Event) []zap.Field {
	fs := logs.Failure(e.Err)
	text := func(name, v string) {
		if v != "" {
			fs = append(fs, zap.String(name, v))
		}
	}
	if e.Kind != EventState && e.Kind != EventSubscribed && (e.Err == nil || e.Kind == EventNotice) {
		text("text", e.Text)
	}
	fs = append(fs, kindFields(e)...)
	if e.Delay > 0 {
		fs = append(fs, zap.Duration("retry_in", e.Delay))
	}
	if d := e.Delivery; d != nil {
		text("message_id", d.MessageID)
		text("key", d.Key)
		if e.Kind != EventDeadLettered { // it has attempts
			fs = append(fs, zap.Int("attempt", d.Attempt))
			if d.Of > 0 && d.Attempt <= d.Of {
				fs = append(fs, zap.Int("of", d.Of))
			}
		}
		if d.Age > 0 {
			fs = append(fs, zap.Duration("age", d.Age))
		}
	}
	if e.Report != nil {
		fs = append(fs, e.Report.fields()...)
	}
	text("stack", e.Stack)
	return fs
}
