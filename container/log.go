package container

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// limitedLog writes events as log lines; what repeats is limited, see repeats.
type limitedLog struct {
	log     *zap.Logger     // the container's
	clock   longshore.Clock // so that tests decide about time
	repeats *repeats        // counts the lines that are held back
	alarms  alarms          // what the log has reported and not yet cleared; only the pump uses it
	paused  bool            // the last state written; only the pump uses it
	brief   bool            // no logger was given: only warnings, the start, pauses and the end are written
	address string          // of the broker
}

func newLimitedLog(s *settings) *limitedLog {
	log := s.log.With(zap.String("container", s.name), zap.String("source", s.about.Name), zap.String("transport", s.about.Transport))
	return &limitedLog{log: log, clock: s.clock, repeats: newRepeats(s.clock), brief: s.briefLog, address: s.about.Address}
}

// phrases are the fixed messages of the lines; the facts are fields.
//
//nolint:gochecknoglobals // a constant table
var phrases = map[EventKind]struct {
	text    string
	level   zapcore.Level // of the line
	limited bool          // repeats of it are held back
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
	EventParkingFree:      {"parking has room again", zapcore.WarnLevel, true},
	EventGivenBack:        {"message given back again and again", zapcore.WarnLevel, false}, // rare by itself
	EventLaneFull:         {"lane fills the window", zapcore.WarnLevel, true},
	EventLaneBlocked:      {"lane blocked", zapcore.WarnLevel, false},
	EventLanesFree:        {"lanes unblocked", zapcore.WarnLevel, false},
	EventStuck:            {"handler stuck", zapcore.ErrorLevel, true},
	EventUnstuck:          {"stuck handler returned", zapcore.WarnLevel, true},
	EventHeld:             {"intake held", zapcore.WarnLevel, false},
	EventIntakeResumed:    {"intake released", zapcore.InfoLevel, false},
	EventSettleFailed:     {"settlement failed", zapcore.WarnLevel, true},
	EventDrained:          {"container drained", zapcore.InfoLevel, false},
	EventStandby:          {"consumer on standby", zapcore.InfoLevel, false},
	EventActive:           {"consumer active", zapcore.InfoLevel, false},
	EventBlocked:          {"broker blocks publishers", zapcore.WarnLevel, false},
	EventUnblocked:        {"broker unblocked publishers", zapcore.InfoLevel, false},
	EventSkipped:          {"messages skipped", zapcore.WarnLevel, true},
	EventDeclared:         {"topology declared", zapcore.InfoLevel, false},
	EventConsumer:         {"consumer changed", zapcore.DebugLevel, false},
	EventNotice:           {"container notice", zapcore.WarnLevel, true},
	EventCleared:          {"container notice cleared", zapcore.InfoLevel, false},
}

// event writes the line of an event.
func (l *limitedLog) event(e Event) {
	p := phrases[e.Kind]
	n := note{event: e, level: l.level(e, p.level), limited: p.limited}
	l.follow(&n)
	if e.Kind == EventDrained || e.Kind == EventSubscribed { // what came before has its lines before it
		l.summaries(true)
	}
	if n.dropped || l.brief && n.level < zapcore.WarnLevel && !routine(e) {
		return
	}
	ce := l.log.Check(n.level, phrase(e, p.text, n.ended))
	if ce == nil {
		return
	}
	if n.limited {
		alone, due := l.repeats.note(e)
		if due != nil {
			l.summary(due)
		}
		if !alone {
			return
		}
	}
	l.alarms.wrote(n.condition)
	if e.Kind == EventSubscribed && l.address != "" {
		n.extra = append(n.extra, zap.String("address", l.address))
	}
	ce.Write(logs.Unique(append(fields(e), n.extra...), "container", "source", "transport")...)
}

// note is an event on its way to its line.
type note struct {
	event   Event         // as it happened
	level   zapcore.Level // of the line
	limited bool          // repeats of it are held back
	dropped bool          // it ends what the log has not reported
	ended   bool          // it ends an alarm
	// condition is the alarm that it raises or repeats; "": none
	condition string
	extra     []zap.Field // facts of the alarm
}

// follow keeps the alarms: the line that ends one has the level of its report and is
// always written, and what was held back about it is not written after it.
func (l *limitedLog) follow(n *note) {
	condition, part := alarmOf(n.event)
	switch part {
	case alarmRaised:
		n.condition = condition
		if a := l.alarms.raise(condition, n.event, n.level); a.tries > 0 {
			n.extra = append(n.extra, zap.Int("attempt", a.tries))
		}
	case alarmOver:
		if n.event.Kind == EventUnstuck { // other handlers may still be stuck
			for _, s := range l.repeats.flush(condition) {
				l.summary(s)
			}
		}
		a, over := l.alarms.clear(condition, n.event.Kind)
		held := 0
		if over {
			held = l.repeats.forget(condition, condition == alarmSubscription)
		}
		if n.event.Kind == EventSubscribed {
			for _, c := range l.alarms.clearTransport() {
				l.repeats.forget(c, true)
			}
		}
		n.end(a, over, held)
	case alarmNone:
		if n.event.Kind == EventDrained {
			l.alarms = alarms{}
		}
	}
}

// end makes n the end of an alarm.
func (n *note) end(a *alarm, over bool, held int) {
	switch {
	case a == nil:
		n.dropped = n.event.Kind == EventCleared
		return
	case !a.written:
		n.dropped = n.event.Kind != EventDeadLettered && n.event.Kind != EventSubscribed // which say more than the end of an alarm
		return
	}
	n.level = max(n.level, a.level)
	if !over {
		return
	}
	n.ended, n.limited = true, false
	if n.event.Kind != EventSubscribed { // which has took
		n.extra = append(n.extra, zap.Duration("after", n.event.Time.Sub(a.since)))
	}
	if a.tries > 0 {
		n.extra = append(n.extra, zap.Int("attempts", a.tries))
	}
	if held > 0 {
		n.extra = append(n.extra, zap.Int("suppressed", held))
	}
}

// routine says which lines without a warning show a person that the container works.
func routine(e Event) bool {
	switch e.Kind {
	case EventState:
		return e.Text == string(StatePaused) || e.Text == string(StateRunning)
	case EventSubscribed, EventDrained, EventStandby, EventActive:
		return true
	}
	return false
}

// phrase is the message of an event's line.
func phrase(e Event, usual string, ended bool) string {
	switch {
	case e.Kind == EventState:
		return "container " + e.Text
	case e.Kind == EventLost && longshore.CodeOf(e.Err) == longshore.CodeLeaseLost:
		return "lease lost"
	case e.Kind == EventDown && e.Attempt > 0:
		return "cannot subscribe"
	case e.Kind == EventSubscribed && ended && e.Generation > 1:
		return "consumer reconnected"
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
	l.alarms.wrote(s.about)
	p := phrases[s.event.Kind]
	ce := l.log.Check(l.level(s.event, p.level), phrase(s.event, p.text, false))
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
		fs = append(fs, zap.Int("generation", e.Generation), zap.Int("workers", e.Workers), zap.Int("window", e.Window), zap.Duration("took", e.Took))
		if e.Prefetch > 0 {
			fs = append(fs, zap.Int("prefetch", e.Prefetch))
		}
		if e.ConsumerTag != "" {
			fs = append(fs, zap.String("consumer_tag", e.ConsumerTag))
		}
		if e.Reason != "" {
			fs = append(fs, zap.String("dead_letter", e.Reason))
		}
		return fs
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
	if e.Kind != EventState && e.Kind != EventSubscribed && (e.Err == nil || e.Kind == EventNotice && e.Text != e.Err.Error()) {
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
