package container

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
)

// A release counts no attempt, so no limit ends it. A message that is released again and
// again is slowed down and reported here; otherwise it could be redelivered for ever
// unnoticed.

const (
	loopFrom   = 5                      // releases in a row of one message that are a loop
	loopMost   = 1000                   // messages that are watched
	loopForget = 10 * time.Minute       // after the last release: it went to another instance
	loopQuick  = 100 * time.Millisecond // delays below it are slowed down; others are as they were asked for
	loopSlow   = time.Second            // up to which
	loopDelay  = 10 * time.Second       // up to which without a delay that was asked for, on its way through the broker
	loopEvery  = time.Minute            // between two events of one code
)

// loops are the messages of a container that were released and not settled since.
type loops struct {
	any atomic.Bool // so that nearly all messages need no lock

	mu       sync.Mutex                   // guards what follows
	byID     map[string]*loop             // the messages that are watched
	reported map[longshore.Code]time.Time // when each code was last reported
}

type loop struct {
	since, last time.Time      // the first and the last release
	times       int            // releases in a row
	quick       int            // of these, with a delay below loopQuick
	code        longshore.Code // of the last release
	text        string         // of the last release's reason
}

// Loops are messages that come back uncounted again and again.
type Loops struct {
	Messages int            // how many come back like that
	Times    int            // releases of the one that has most
	Since    time.Time      // of that one, the first
	Code     longshore.Code // of that one, the last
	Text     string         // of that one, the last
}

// again notes a release with the delay that was asked for and says how it stands with
// the message, and whether to report it.
func (l *loops) again(id string, asked time.Duration, code longshore.Code, text string, now time.Time) (is loop, tell bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.byID[id]
	if one == nil {
		l.forget(now)
		if len(l.byID) >= loopMost {
			return loop{times: 1}, false
		}
		if l.byID == nil {
			l.byID, l.reported = map[string]*loop{}, map[longshore.Code]time.Time{}
		}
		one = &loop{since: now}
		l.byID[id] = one
		l.any.Store(true)
	}
	one.times++
	if asked > 0 && asked < loopQuick {
		one.quick++
	}
	one.last, one.code, one.text = now, code, text
	if one.times < loopFrom {
		return *one, false
	}
	if last, ok := l.reported[code]; ok && now.Sub(last) < loopEvery {
		return *one, false
	}
	if len(l.reported) >= mostCodes {
		clear(l.reported)
	}
	l.reported[code] = now
	return *one, true
}

// delay is at least how long the message stays away, 0: as it is. A delay of some length
// was asked for by a middleware that knows when it is ready, like a breaker.
func (l *loop) delay(asked time.Duration, backoff func(n int) time.Duration) time.Duration {
	switch {
	case l.times < loopFrom || asked >= loopQuick:
		return 0
	case asked > 0:
		return min(time.Millisecond<<min(l.quick, 20), loopSlow)
	}
	return min(backoff(l.times), loopDelay)
}

// over ends the watch of a message that was settled.
func (l *loops) over(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
	l.any.Store(len(l.byID) > 0)
}

// forget drops what was not released for long. The caller holds mu.
func (l *loops) forget(now time.Time) {
	for id, one := range l.byID {
		if now.Sub(one.last) > loopForget {
			delete(l.byID, id)
		}
	}
}

// worst sums up what is a loop now.
func (l *loops) worst(now time.Time) (w Loops) {
	if !l.any.Load() {
		return w
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	for _, one := range l.byID {
		if one.times < loopFrom {
			continue
		}
		w.Messages++
		if one.times > w.Times {
			w.Times, w.Since, w.Code, w.Text = one.times, one.since, one.code, one.text
		}
	}
	return w
}

// settled ends the watch of a message whose verdict is final for this container.
func (l *loops) settled(d *longshore.Delivery, v longshore.Verdict) {
	if !l.any.Load() || v == longshore.VerdictRelease || v == longshore.VerdictLost || v == longshore.VerdictNone {
		return
	}
	l.over(idOf(d))
}

// whyLoops is the sentence about them.
func whyLoops(w Loops) string {
	return fmt.Sprintf("%s given back uncounted again and again, one %d times (%s: %s)", messagesAre(w.Messages), w.Times, w.Code, w.Text)
}

func messagesAre(n int) string {
	if n == 1 {
		return "1 message is"
	}
	return fmt.Sprintf("%d messages are", n)
}
