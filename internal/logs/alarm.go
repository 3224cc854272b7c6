package logs

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Alarm is the log's memory of one condition that may last, such as a broker that is away.
// It decides which lines are written: the first one, then one in [Every], and one when the
// condition is over. Whoever read of the problem also reads of its end, and nothing about
// the problem is written after that. It reads no clock and writes nothing; the zero value
// is ready, and all methods may be called at once.
type Alarm struct {
	on atomic.Bool // the condition lasts: without it Over costs one load, on the path of every message

	mu      sync.Mutex
	lines   Quiet     // of the line that reports the condition
	since   time.Time // of the first report, zero while there is none
	unread  int       // reports since the last written line
	written bool      // the log has a line of it, so its end is owed
}

// Raise notes the condition, and reports whether its line is to be written, and how many
// reports the line then stands for. A condition that comes again within [Every] of its last
// line stays unwritten until then.
func (a *Alarm) Raise(now time.Time) (stands int, due bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = now
	}
	a.on.Store(true)
	a.unread++
	if stands, due = a.lines.Due(now); due {
		stands, a.unread, a.written = a.unread, 0, true
	}
	return stands, due
}

// Over notes that the condition has ended. If the log has a line of it, the fields of the
// line about its end are returned, to be written at the same level.
func (a *Alarm) Over(now time.Time) (fields []zap.Field, due bool) {
	if !a.on.Load() {
		return nil, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	since, unread, due := a.since, a.unread, a.written
	a.since, a.unread, a.written = time.Time{}, 0, false
	a.on.Store(false)
	if !due {
		return nil, false
	}
	fields = append(fields, zap.Duration("after", now.Sub(since)))
	if unread > 0 {
		fields = append(fields, zap.Int("suppressed", unread))
	}
	return fields, true
}
