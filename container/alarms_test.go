package container

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	logged "go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// said is what the log writes of a line: level, phrase and the fields that matter here.
func said(l logged.LoggedEntry) string {
	text := l.Level.String() + " " + l.Message
	facts := l.ContextMap()
	for _, name := range []string{"attempt", "attempts", "after", "took", "suppressed", "repeated"} {
		if v, ok := facts[name]; ok && fmt.Sprint(v) != "0" {
			text += fmt.Sprintf(" %s=%v", name, v)
		}
	}
	return text
}

// Every alarm has its all-clear at the level of its report, and what was held back about an
// alarm is not written after it.
func TestAlarmsAreCleared(t *testing.T) {
	lost := Event{Kind: EventDown, Err: &longshore.Error{Code: longshore.CodeConnLost, Op: "o"}}
	refused := Event{Kind: EventDown, Attempt: 1, Err: &longshore.Error{Code: longshore.CodeUnreachable, Op: "o", Hint: "start the broker"}}
	login := Event{Kind: EventDown, Attempt: 1, Err: &longshore.Error{Code: longshore.CodeAuth, Op: "o"}}
	subscribed := func(n int) Event { return Event{Kind: EventSubscribed, Generation: n, Took: time.Second} }
	stuck := func(id string) Event { return Event{Kind: EventStuck, Delivery: &DeliveryFacts{MessageID: id}} }
	unstuck := func(id string) Event { return Event{Kind: EventUnstuck, Delivery: &DeliveryFacts{MessageID: id}} }
	polls := Event{Kind: EventNotice, Condition: "receive", Text: "polls fail"}
	works := Event{Kind: EventCleared, Condition: "receive", Text: "polls work"}
	for name, tc := range map[string]struct {
		events []Event
		want   []string
	}{
		"a start without trouble": {[]Event{subscribed(1)}, []string{"info container subscribed took=1s"}},
		"an outage": {[]Event{subscribed(1), lost, refused, refused, refused, subscribed(2)},
			[]string{"info container subscribed took=1s", "warn consumer lost", "warn cannot subscribe attempt=1", "warn consumer reconnected attempts=3 took=1s suppressed=2"}},
		"the first connection is refused": {[]Event{refused, refused, subscribed(1)},
			[]string{"warn cannot subscribe attempt=1", "warn container subscribed attempts=2 took=1s suppressed=1"}},
		"a worse alarm decides the level": {[]Event{subscribed(1), lost, login, subscribed(2)},
			[]string{"info container subscribed took=1s", "warn consumer lost", "error cannot subscribe attempt=1", "error consumer reconnected attempts=1 took=1s"}},
		"two outages within a minute": {[]Event{subscribed(1), lost, subscribed(2), lost, subscribed(3)},
			[]string{"info container subscribed took=1s", "warn consumer lost", "warn consumer reconnected took=1s", "warn consumer lost", "warn consumer reconnected took=1s"}},
		"publishers": {[]Event{{Kind: EventBlocked}, {Kind: EventUnblocked}, {Kind: EventUnblocked}},
			[]string{"warn broker blocks publishers", "warn broker unblocked publishers after=1s", "info broker unblocked publishers"}},
		"two middlewares hold": {[]Event{{Kind: EventHeld, Condition: "a"}, {Kind: EventHeld, Condition: "b"}, {Kind: EventIntakeResumed, Condition: "b"}, {Kind: EventIntakeResumed, Condition: "a"}},
			[]string{"warn intake held", "warn intake held", "warn intake released after=1s", "warn intake released after=3s"}},
		"handlers": {[]Event{stuck("1"), stuck("2"), stuck("3"), unstuck("2"), unstuck("1"), unstuck("3")},
			[]string{"error handler stuck", "error handler stuck repeated=2", "error stuck handler returned", "error stuck handler returned after=5s suppressed=1"}},
		"parking": {[]Event{{Kind: EventParkingFull}, {Kind: EventParkingFree}}, []string{"warn parking full", "warn parking has room again after=1s"}},
		"lanes":   {[]Event{{Kind: EventLaneBlocked}, {Kind: EventLaneBlocked}, {Kind: EventLanesFree}}, []string{"warn lane blocked", "warn lane blocked", "warn lanes unblocked after=2s"}},
		"the dead-letter destination": {[]Event{{Kind: EventDeadLetterFailed}, {Kind: EventDeadLetterFailed}, {Kind: EventDeadLettered}},
			[]string{"error dead-letter failed", "error delivery dead-lettered after=2s suppressed=1"}},
		"a transport's own":       {[]Event{polls, polls, works, works, polls}, []string{"warn container notice", "warn container notice cleared after=2s suppressed=1"}},
		"one that comes and goes": {[]Event{polls, works, polls, works, polls, works}, []string{"warn container notice", "warn container notice cleared after=1s"}},
		"dead letters that sometimes fail": {[]Event{{Kind: EventDeadLetterFailed}, {Kind: EventDeadLettered}, {Kind: EventDeadLetterFailed}, {Kind: EventDeadLettered}},
			[]string{"error dead-letter failed", "error delivery dead-lettered after=1s", "warn delivery dead-lettered"}},
		"a new subscription ends a transport's own": {[]Event{subscribed(1), polls, polls, lost, subscribed(2), works},
			[]string{"info container subscribed took=1s", "warn container notice", "warn consumer lost", "warn consumer reconnected took=1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			core, lines := logged.New(zapcore.DebugLevel)
			clock := &heldClock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			log := &limitedLog{log: zap.New(core), clock: clock, repeats: newRepeats(clock)}
			for _, e := range tc.events {
				e.Time = clock.now
				log.event(e)
				clock.now = clock.now.Add(time.Second)
			}
			clock.now = clock.now.Add(time.Hour)
			over := len(tc.events) > 0 && tc.events[len(tc.events)-1].Kind != EventNotice
			before := lines.Len()
			log.summaries(true)
			for _, l := range lines.All()[before:] {
				if over && l.Message != "stuck handler returned" {
					t.Errorf("written after the all-clear: %s", said(l))
				}
			}
			var got []string
			for _, l := range lines.All()[:before] {
				got = append(got, said(l))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
}

// The development logger of zap adds callers and stacks; the lines of a container show
// neither, and no field twice.
func TestLinesHaveNoCallerNoStackAndNoFieldTwice(t *testing.T) {
	core, lines := logged.New(zapcore.DebugLevel)
	s := &settings{name: "orders", log: logs.Of(zap.New(core, zap.Development(), zap.AddCaller(), zap.AddStacktrace(zapcore.WarnLevel))), clock: &heldClock{}}
	log := newLimitedLog(s)
	log.event(Event{Kind: EventFailed, Delay: time.Second, Delivery: &DeliveryFacts{MessageID: "m", Attempt: 1},
		Err: &longshore.Error{Code: longshore.CodeHandler, Op: "handle", Hint: "do it", Err: errors.New("no stock"), Fields: []longshore.Field{{Name: "attempt", Value: "7"}, {Name: "source", Value: "s"}}}})
	log.event(Event{Kind: EventDeadLetterFailed, Err: errors.New("refused")})
	for _, l := range lines.All() {
		seen := map[string]bool{}
		for _, f := range l.Context {
			if seen[f.Key] {
				t.Errorf("%s has %s twice", l.Message, f.Key)
			}
			seen[f.Key] = true
		}
		if l.Caller.Defined || l.Stack != "" {
			t.Errorf("%s has caller %q and stack %q", l.Message, l.Caller, l.Stack)
		}
	}
	if lines.Len() != 2 || lines.All()[0].ContextMap()["help"] != "do it" || lines.All()[0].ContextMap()["error"] != "handle: no stock" {
		t.Errorf("%v", lines.All())
	}
}
