package bridge

import (
	"time"

	"github.com/longshore-go/longshore/container"
)

// Progress is how far a route has come, as of its last look at the source.
type Progress struct {
	Moved int64 // messages that the route is done with since Start: forwarded, parked, looped, skipped
	Known int64 // Moved and what remains; -1 = the source does not count
	Lag   int64 // what remains at the source: ready, unsettled and delayed; -1 = unknown
	// Delayed are those of Lag that cannot be moved before they are due.
	Delayed int64
	// Rate is messages a second that the route moves, In those that producers add; averages of
	// about the last 20 s.
	Rate, In float64
	// ETA is when the source is empty if nothing changes; 0 = unknown, or it grows.
	ETA time.Duration
	// Age of the message forwarded last: now minus its publish time; 0 = unknown.
	Age time.Duration
	// Limit is the side that limits the route: one of the constants, "" = none.
	Limit Side
	// Why is a sentence about Limit.
	Why string
	// Failing is the error of the side that holds the route, such as credentials that were
	// revoked; of the target also while its breaker probes it. "" = none.
	Failing string
	// Standby: another instance of the route is the active one.
	Standby bool
	// At is when the source was looked at; zero = not yet.
	At time.Time
	Stats
}

// Side is what limits a route.
type Side string

// The sides.
const (
	BySource Side = "source" // messages come no faster, or the source cannot be reached
	ByTarget Side = "target" // it confirms no faster, or cannot be reached
	ByRate   Side = "rate"   // Config.Rate, or a throttle
	ByHand   Side = "paused" // an operator holds it, or it does not run
)

// limit says which side limits a container that forwards.
func limit(s *container.Stats, lag int64) Side {
	switch s.Bottleneck.By {
	case container.ByHold, container.ByDeadLetter, container.ByAlarm, container.ByStuck, container.BySlow, container.ByMax, container.ByKnee,
		container.ByFailures, container.ByParking, container.ByAside, container.ByHotKey, container.ByLanes:
		return ByTarget
	case container.ByRate, container.ByPermits:
		return ByRate
	case container.ByState:
		return ByHand
	case container.ByBroker, container.ByStandby, container.ByPartitions, container.ByUnused:
		return BySource
	}
	switch {
	case lag <= 0:
		return ""
	case s.Workers > 0 && s.Busy >= s.Workers:
		return ByTarget // all workers wait for its confirmations
	}
	return BySource
}

// meter turns totals into rates.
type meter struct {
	at          time.Time
	moved, lag  int64
	rate, grows float64 // messages a second; growth of the lag
	known       bool
}

// meterSpan is about how long the past counts.
const meterSpan = 20 * time.Second

// read takes the totals of now.
func (m *meter) read(now time.Time, moved, lag int64) {
	if took := now.Sub(m.at).Seconds(); !m.at.IsZero() && took > 0 {
		weight := min(1, took/meterSpan.Seconds())
		if !m.known {
			weight = 1
		}
		m.rate += weight * (float64(moved-m.moved)/took - m.rate)
		m.grows += weight * (float64(lag-m.lag)/took - m.grows)
		m.known = true
	}
	m.at, m.moved, m.lag = now, moved, lag
}

// in is what producers add in a second.
func (m *meter) in() float64 { return max(0, m.rate+m.grows) }

// eta is when a lag that shrinks is 0.
func (m *meter) eta() time.Duration {
	if m.lag <= 0 || m.grows >= 0 {
		return 0
	}
	return time.Duration(float64(m.lag) / -m.grows * float64(time.Second)).Round(time.Second)
}

// moved is how many messages a route is done with.
func (s *Stats) moved() int64 { return s.Forwarded + s.Parked + s.Looped + s.Skipped }
