package container

import (
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
)

// alarms are the conditions that the log has reported and that still last. The line that
// ends one has the level of the line that reported it, so whoever reads of a problem also
// reads of its end. Pure; only the goroutine that writes the log uses it.
type alarms struct {
	on map[string]*alarm // by condition
}

// alarm is one condition that lasts.
type alarm struct {
	level zapcore.Level // the highest of its lines
	since time.Time     // of the first line
	tries int           // attempts to subscribe that failed since then
	stuck int           // handlers that have not returned
	// written: the log has a line of it. One that comes again within a minute may be held
	// back like any line that repeats, and then its end has no line either.
	written bool
}

// alarmPart says what an event means for a condition.
type alarmPart uint8

const (
	alarmNone   alarmPart = iota // an event of its own, such as a delivery that failed
	alarmRaised                  // the condition began, or was met again
	alarmOver                    // the condition is over
)

// The conditions that a transport does not name.
const (
	alarmSubscription = "subscription"
	alarmDeadLetter   = "dead letter"
	transportAlarm    = "transport " // before the name that the transport gives
)

// alarmOf is the table of what raises an alarm, and what ends it.
func alarmOf(e Event) (condition string, part alarmPart) {
	switch e.Kind {
	case EventDown:
		return alarmSubscription, alarmRaised
	case EventSubscribed:
		return alarmSubscription, alarmOver
	case EventBlocked:
		return "publishers", alarmRaised
	case EventUnblocked:
		return "publishers", alarmOver
	case EventHeld:
		return "intake " + e.Condition, alarmRaised
	case EventIntakeResumed:
		return "intake " + e.Condition, alarmOver
	case EventStuck:
		return "handlers", alarmRaised
	case EventUnstuck:
		return "handlers", alarmOver
	case EventParkingFull:
		return "parking", alarmRaised
	case EventParkingFree:
		return "parking", alarmOver
	case EventLaneBlocked:
		return "lanes", alarmRaised
	case EventLanesFree:
		return "lanes", alarmOver
	case EventDeadLetterFailed:
		return alarmDeadLetter, alarmRaised
	case EventDeadLettered:
		return alarmDeadLetter, alarmOver
	case EventNotice:
		if e.Condition != "" {
			return transportAlarm + e.Condition, alarmRaised
		}
	case EventCleared:
		return transportAlarm + e.Condition, alarmOver
	}
	return "", alarmNone
}

// raise notes a line of a condition and returns the condition.
func (a *alarms) raise(condition string, e Event, level zapcore.Level) *alarm {
	one := a.on[condition]
	if one == nil {
		if a.on == nil {
			a.on = map[string]*alarm{}
		}
		one = &alarm{level: level, since: e.Time}
		a.on[condition] = one
	}
	one.level = max(one.level, level)
	switch {
	case e.Kind == EventStuck:
		one.stuck++
	case e.Kind == EventDown && e.Attempt > 0: // 0: the loss, before the first attempt
		one.tries++
	}
	return one
}

// wrote notes that the log has a line of a condition.
func (a *alarms) wrote(condition string) {
	if one := a.on[condition]; one != nil {
		one.written = true
	}
}

// clear takes an event that ends a condition, and returns what was reported of it; nil:
// nothing. It is not over while other handlers have not returned.
func (a *alarms) clear(condition string, kind EventKind) (one *alarm, over bool) {
	one = a.on[condition]
	if one == nil {
		return nil, false
	}
	if kind == EventUnstuck {
		if one.stuck--; one.stuck > 0 {
			return one, false
		}
	}
	delete(a.on, condition)
	return one, true
}

// clearTransport ends what a transport has reported of the subscription before.
func (a *alarms) clearTransport() (ended []string) {
	for name := range a.on {
		if strings.HasPrefix(name, transportAlarm) {
			ended = append(ended, name)
			delete(a.on, name)
		}
	}
	return ended
}
