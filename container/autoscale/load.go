package autoscale

import (
	"math"
	"time"
)

// meter keeps the averages that sizing works with.
type meter struct {
	busy      float64   // smoothed concurrency
	sec, done float64   // smoothed, for the latency
	ok, bad   float64   // smoothed, for the share that fails
	carry     float64   // busy seconds of ticks that finished nothing
	hung      bool      // the next completion ends a stall
	unhung    bool      // it was in this tick
	hot       bool      // workers are busy nearly all the time and work waits
	fullSince time.Time // zero: the lookahead was not full
	moved     time.Time // last time that something ended or nothing ran
}

func (m *meter) pause() { m.fullSince, m.moved, m.hot = time.Time{}, time.Time{}, false }

// measure takes a sample into the averages.
func (m *meter) measure(s Sample) {
	dt := s.Dt.Seconds()
	m.busy += (s.BusySec/dt - m.busy) * min(dt/smooth, 1)
	m.carry += s.BusySec
	m.unhung = false
	switch {
	case s.Completed > 0 && m.hung: // what hung tells nothing of the usual latency
		m.carry, m.hung, m.unhung = 0, false, true
	case s.Completed > 0 && m.blind(): // what still runs would count for what has ended
		m.sec, m.done = math.Exp(s.SumLog/float64(max(s.Execs, 1)))*float64(s.Execs), float64(s.Completed)
		m.carry = 0
	case s.Completed > 0:
		w := min(dt/max(smooth, 4*m.latency()), 1)
		m.sec += (m.carry - m.sec) * w
		m.done += (float64(s.Completed) - m.done) * w
		m.carry = 0
	}
	if s.Execs > 0 {
		w := min(dt/smooth, 1)
		m.ok += (float64(s.Execs-s.Failed) - m.ok) * w
		m.bad += (float64(s.Failed) - m.bad) * w
	}
	if s.Completed > 0 || s.Busy == 0 || m.moved.IsZero() {
		m.moved = s.Now
	}
	m.hot = s.BusySec/dt/float64(max(s.Workers, 1)) >= saturated && s.FullFrac >= full
	if !m.hot {
		m.fullSince = time.Time{}
	} else if m.fullSince.IsZero() {
		m.fullSince = s.Now
	}
	if m.stalled(s) {
		m.hung = true
	}
}

// blind: no call has ended yet.
func (m *meter) blind() bool { return m.done <= 0 }

// latency is busy seconds per message; 0 as long as none is known.
func (m *meter) latency() float64 {
	if m.blind() {
		return 0
	}
	return m.sec / m.done
}

// failing: nearly everything fails, so more workers would only fail more.
func (m *meter) failing() bool { return m.bad > 0 && m.bad/(m.bad+m.ok) > mostlyFailed }

// stalled: something runs and nothing ends; a hang is not demand.
func (m *meter) stalled(s Sample) bool {
	if s.Busy == 0 || m.blind() {
		return false
	}
	limit := max(stallMin, time.Duration(stallTimes*m.latency()*float64(time.Second)))
	return s.Now.Sub(m.moved) > limit
}

// need is how many workers the load asks for: from which on growing starts, and
// how many it would be sized to.
func (a *adaptive) need(s Sample) (need, size float64) {
	m := &a.meter
	waiting := float64(s.Queued)
	fresh := s.BacklogAge >= 0 && s.BacklogAge <= backlogMax
	if fresh {
		waiting += float64(max(s.Backlog, 0))
	}
	todo := m.busy + waiting*m.latency()/a.set.Drain.Seconds()
	size = max(m.busy/a.set.Util, todo)
	need = max(m.busy/growAt, todo)
	// All workers are busy and more waits: how much more is not known, unless the
	// backlog was read after that began and it is known how long a message takes.
	if m.hot && (!fresh || m.blind() || s.Now.Add(-s.BacklogAge).Before(m.fullSince)) {
		more := a.set.Growth * float64(s.Workers)
		need, size = max(need, more), max(size, more)
	}
	return need, size
}
