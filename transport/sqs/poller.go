package sqs

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
)

const (
	// cutTime bounds the call that asks for what a poll of a FIFO queue may have been
	// given when it was cut off, where the broker does not need more.
	cutTime = 500 * time.Millisecond
	// ghostTime is how long a poll that was cut off counts as open: until the broker
	// has noticed, it would be given what goes back, and hide it for its lease.
	ghostTime = 50 * time.Millisecond
	// slowest is the longest that a stop waits for a broker that answers slowly.
	slowest = time.Second
	// quietLease is the lease that a poll asks for while the queue is quiet. If its
	// answer is lost, because we cut it off or on the wire, the messages come again after
	// this time and not after the queue's own, which may be hours. Under load, where a
	// poll is answered at once, it asks for more and spares the extension of what is
	// handled within it.
	quietLease = 20 * time.Second
	busyLease  = time.Minute
	// unwanted is how long messages may wait for a Receive after one was called off.
	unwanted = time.Second
	// enduring is how long polls may fail for passing reasons before the consumer gives
	// up.
	enduring = 10 * time.Second
	// cancelGrace is how long the end of polling waits for answers that are on their way
	// before it cuts the polls off. A long poll on an empty queue always takes this long
	// to end.
	cancelGrace = 200 * time.Millisecond
)

// poller decides how many long polls are open, how long each waits, and when they are cut
// off. One is open while the queue is quiet; full answers double their number. It makes no
// calls and reads no clock; the consumer's lock guards it.
type poller struct {
	most   int                // polls that may be open
	life   context.Context    //nolint:containedctx // of the consumer; outlasts the polls
	ctx    context.Context    //nolint:containedctx // of the open polls
	cut    context.CancelFunc // ends them without their answers
	cutAt  time.Time          // the open polls are unwanted and cut off then; zero: they are wanted
	open   int                // polls on their way
	asked  int                // messages that they may bring
	wanted int                // polls that the load calls for
	loaded bool               // the last answer was full and came at once

	granted     int       // how many more messages the last Receive had room for
	waiting     bool      // a Receive waits
	interrupted time.Time // a Receive was called off then and none has come since; zero: not so

	paused   bool // between Pause and Resume
	ending   bool // Cancel waits for the open polls, whose messages are taken in where a return would count
	canceled bool // no poll is opened any more

	failing   time.Time     // since when polls fail; zero: they do not
	failures  int           // in a row
	reported  time.Time     // when a failure was last reported, which is done once a minute
	troubled  bool          // and no poll has succeeded since then
	patience  time.Duration // of a poll where something on the way allows less than SQS does; 0: nothing does
	impatient time.Time     // when that was last seen
}

// poll is the terms of one receive.
type poll struct {
	ctx      context.Context //nolint:containedctx // ends when the poll is cut off
	room     int             // messages it may bring
	patience time.Duration   // how long it waits for the first
	lease    time.Duration   // under which they come
}

func newPoller(life context.Context, most int, paused bool) poller {
	p := poller{most: most, life: life, wanted: 1, paused: paused}
	p.ctx, p.cut = context.WithCancel(life)
	return p
}

// grant notes that Receive waits and for how many.
func (p *poller) grant(limit int) { p.granted, p.waiting, p.interrupted = limit, true, time.Time{} }

// served notes that Receive returned and would have taken more.
func (p *poller) served(rest int) { p.granted, p.interrupted = rest, time.Time{} }

// callOff notes that a Receive ended without anything.
func (p *poller) callOff(now time.Time) { p.interrupted = now }

// next opens one more poll if there is room for it: while Receive waits, and under load
// also between its calls, so that the next one finds something. Beside others, and ahead
// of Receive, only full ones, so that calls are few. ready is how many messages wait for
// Receive, lease the length of the queue's.
func (p *poller) next(ready int, lease time.Duration) *poll {
	switch {
	case p.canceled || p.paused || p.open >= min(p.wanted, p.most):
		return nil
	case p.waiting && ready > 0: // it is about to take them, and says what room is left
		return nil
	case !p.waiting && (!p.loaded || !p.interrupted.IsZero()):
		return nil
	}
	room := min(p.granted-ready-p.asked, maxBatch)
	if room <= 0 || (p.open > 0 || !p.waiting) && room < maxBatch {
		return nil
	}
	p.open++
	p.asked += room
	out := &poll{ctx: p.ctx, room: room, patience: maxWait, lease: min(lease, quietLease)}
	if p.patience > 0 {
		out.patience = p.patience
	}
	if p.loaded {
		out.lease = min(lease, busyLease)
	}
	return out
}

// ended takes a poll off.
func (p *poller) ended(o *poll) {
	p.open--
	p.asked -= o.room
	if p.open == 0 {
		p.cutAt = time.Time{}
	}
}

// answered takes the answer of a poll: n messages. atOnce says that it came without
// waiting for them.
func (p *poller) answered(o *poll, n int, atOnce bool, now time.Time) (recovered bool) {
	p.ended(o)
	recovered, p.troubled = p.troubled, false
	p.failing, p.failures = time.Time{}, 0
	if now.Sub(p.impatient) > time.Hour { // perhaps it was only a bad time
		p.patience = 0
	}
	p.loaded = n == o.room && atOnce
	switch {
	case n == 0:
		p.wanted = 1
	case p.loaded:
		p.wanted = min(p.wanted*2, p.most)
	}
	return recovered
}

// pollFailure is what follows from a poll that failed.
type pollFailure struct {
	cut       bool          // no failure: we have ended the poll
	delay     time.Duration // before the next
	passing   bool          // the next may succeed
	exhausted bool          // polls have failed for enduring
	report    bool          // the first failure in a minute
}

// failed takes the failure of a poll that was not cut off by us. It still counts as open.
func (p *poller) failed(o *poll, code longshore.Code, passing bool, took time.Duration, now time.Time) (f pollFailure) {
	p.curb(took, o.patience, now)
	if p.failing.IsZero() {
		p.failing = now
		// Refused credentials may have been replaced: one more call uses the new ones.
		passing = passing || code == longshore.CodeAuth
	}
	f.delay = min(100*time.Millisecond<<min(p.failures, 6), 5*time.Second)
	p.failures++
	p.wanted, p.loaded = 1, false
	if f.report = now.Sub(p.reported) >= time.Minute; f.report {
		p.reported, p.troubled = now, true
	}
	if code == longshore.CodeBlocked { // a broker that asks for fewer calls is there, and what it gave us is ours
		p.failing = now
	}
	f.passing = passing
	f.exhausted = passing && now.Sub(p.failing) >= enduring
	return f
}

// curb shortens polls that are cut off while they wait, twice in a row: by a proxy that
// ends a connection which is silent for a while. It is not an outage, and each of them may
// have had messages.
func (p *poller) curb(took, patience time.Duration, now time.Time) {
	if p.failures == 0 || took < 2*time.Second || took >= patience {
		return
	}
	p.patience, p.impatient = max((took/2).Truncate(time.Second), time.Second), now
	p.failing, p.failures = time.Time{}, 0
}

// unwant lets the open polls be cut off when grace is over, and reports whether that is
// new.
func (p *poller) unwant(now time.Time, grace time.Duration) bool {
	if p.open == 0 || !p.cutAt.IsZero() {
		return false
	}
	p.cutAt = now.Add(grace)
	return true
}

// quit reports whether the open polls have ended, or are wanted again.
func (p *poller) quit() bool { return p.open == 0 || p.cutAt.IsZero() }

// resume makes polls wanted again.
func (p *poller) resume() { p.paused, p.cutAt = false, time.Time{} }

// cutLate cuts off unwanted polls whose time is over, and returns when to look again;
// zero: when something changes.
func (p *poller) cutLate(now time.Time) time.Time {
	if p.cutAt.After(now) {
		return p.cutAt
	}
	if !p.cutAt.IsZero() {
		p.cutOff()
	}
	return time.Time{}
}

// cutOff ends the open polls without their answers.
func (p *poller) cutOff() {
	p.cut()
	p.ctx, p.cut = context.WithCancel(p.life)
}

// leftover ends the polls that a Receive which was called off has left behind, and then
// lets what they brought go back: drop. It returns when to look again.
func (p *poller) leftover(now time.Time, grace time.Duration, stock int) (next time.Time, drop bool) {
	if p.interrupted.IsZero() || p.waiting {
		return time.Time{}, false
	}
	if p.open > 0 {
		if at := p.interrupted.Add(grace); at.After(now) {
			return at, false
		}
		p.cutOff()
	}
	if stock > 0 {
		if at := p.interrupted.Add(unwanted); at.After(now) {
			return at, false
		}
		return time.Time{}, true
	}
	return time.Time{}, false
}

// takesIn reports whether messages that arrive now are handed out. Otherwise they go
// back. While Cancel waits for the open polls, a message whose return the queue would
// count is handed out instead.
func (p *poller) takesIn(returnsCount bool) bool {
	return !p.paused && (!p.canceled || p.ending && returnsCount)
}
