package container

import (
	"time"

	"github.com/longshore-go/longshore"
)

// condition is something that is wrong for a while. The tick notes when each began, so that
// a diagnosis can say since when.
type condition int

const (
	condParking condition = iota // parking is full
	condAlarm                    // the broker blocks publishers
	condFailing                  // most calls fail
	condSlow                     // handlers take several times as long as before
	conditionCount
)

const (
	failingFrom = 0.5         // the share of failures from which on most calls fail
	failingFor  = time.Minute // after the last failure: nothing runs, so nothing fails
)

// failingOver is over about how many calls the share of failures is taken.
const failingOver = 16

// vitals are what a run knows of how its handlers do. Guarded by guard.mu.
type vitals struct {
	calls    latencies                 // how long they take
	share    float64                   // of failures among the last calls
	failed   map[longshore.Code]int64  // of the whole run
	recent   map[longshore.Code]int64  // while most calls fail
	lastFail time.Time                 // of the last failure: when nothing runs, nothing fails
	lastText string                    // of its error
	declared bool                      // Declare may have created the source: a wrong name is not noticed then
	since    [conditionCount]time.Time // when each condition began; zero: it is not there
}

// verdict counts what became of a delivery.
func (v *vitals) verdict(j judgement) {
	switch j.verdict {
	case longshore.VerdictAck, longshore.VerdictDiscard:
		v.share -= v.share / failingOver
	case longshore.VerdictRetry, longshore.VerdictReject:
		v.share += (1 - v.share) / failingOver
		v.failure(j.err, j.end)
	default:
	}
}

// failure counts a failed call by its kind.
func (v *vitals) failure(err error, now time.Time) {
	code := longshore.CodeHandler
	if c := longshore.CodeOf(err); c != "" {
		code = c
	}
	countCode(&v.failed, code)
	countCode(&v.recent, code)
	v.lastFail = now
	if err != nil {
		v.lastText = cutText(err.Error(), 160)
	}
}

// note keeps the time at which a condition began.
func (v *vitals) note(c condition, is bool, now time.Time) {
	switch {
	case !is:
		v.since[c] = time.Time{}
	case v.since[c].IsZero():
		v.since[c] = now
	}
}

// look notes at each tick what is wrong.
func (v *vitals) look(now time.Time, parkingFull, alarm bool) {
	v.calls.rotate(now)
	v.note(condParking, parkingFull, now)
	v.note(condAlarm, alarm, now)
	v.note(condSlow, v.calls.grown(), now)
	failing := v.fail(now)
	v.note(condFailing, failing, now)
	if !failing {
		v.recent = nil
	}
}

// fail says whether most calls fail.
func (v *vitals) fail(now time.Time) bool {
	return v.share >= failingFrom && now.Sub(v.lastFail) < failingFor
}

// Failing is what most calls fail of.
type Failing struct {
	Share float64        // of the last calls; 0: most succeed
	Code  longshore.Code // of most of the failures
	Text  string         // of the last one
	Since time.Time      // when it began
}

// failing says what most calls fail of; zero: they do not.
func (v *vitals) failing(now time.Time) Failing {
	if !v.fail(now) {
		return Failing{}
	}
	f := Failing{Share: v.share, Text: v.lastText, Since: v.since[condFailing]}
	most := int64(0)
	for code, n := range v.recent {
		if n > most || n == most && code < f.Code {
			f.Code, most = code, n
		}
	}
	return f
}

// Calls are how long handlers take.
type Calls struct {
	P50, P99 time.Duration // of the calls that ended in the last 10 to 20 s; 0: none did
	Usual    time.Duration // the median before; 0: not known
}

// Grown tells whether calls take several times as long as usual.
func (c Calls) Grown() bool { return c.Usual > 0 && c.P50 >= grownFrom && c.P50 >= grownBy*c.Usual }

// Overdue is the age from which on a call is one that may not end.
func (c Calls) Overdue() time.Duration { return max(oldCall, overdueBy*c.P99) }

// Call is a handler call that runs.
type Call struct {
	Record, Key string    // of its delivery
	Since       time.Time // when it began
}

// runs is for how long the worker's call has run; 0 without one.
func (w *worker) runs(now time.Time) time.Duration {
	began := w.busy.Load()
	if began == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, began))
}
