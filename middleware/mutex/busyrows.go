package mutex

import (
	"sync"
	"time"
)

const (
	maxRemembered = 10_000
	alertEvery    = 5 * time.Minute
)

// memory knows which rows were found held or missing, since when and how often. It
// is only this process's: it spaces looks and raises alarms, nothing is decided by it
// that another instance must know.
type memory struct {
	mu   sync.Mutex
	rows map[string]*sight
}

type sight struct {
	first, last, alerted time.Time
	times                int
}

type sighting struct {
	times int
	since time.Duration
	alert bool
}

func (m *memory) see(id string, now time.Time) sighting {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[string]*sight{}
	}
	s := m.rows[id]
	if s == nil {
		if len(m.rows) >= maxRemembered {
			m.dropOldest()
		}
		s = &sight{first: now, alerted: now}
		m.rows[id] = s
	}
	s.times++
	s.last = now
	alert := now.Sub(s.alerted) >= alertEvery
	if alert {
		s.alerted = now
	}
	return sighting{times: s.times, since: now.Sub(s.first), alert: alert}
}

// forget drops a row, and returns for how long it was in the way, and whether an alarm
// was raised about it.
func (m *memory) forget(id string, now time.Time) (age time.Duration, alerted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.rows[id]
	if s == nil {
		return 0, false
	}
	delete(m.rows, id)
	return now.Sub(s.first), s.alerted.After(s.first)
}

// dropOldest makes room: half of all, so that it is rare.
func (m *memory) dropOldest() {
	var newest, oldest time.Time
	for _, s := range m.rows {
		if oldest.IsZero() || s.last.Before(oldest) {
			oldest = s.last
		}
		if s.last.After(newest) {
			newest = s.last
		}
	}
	middle := oldest.Add(newest.Sub(oldest) / 2)
	for id, s := range m.rows {
		if !s.last.After(middle) {
			delete(m.rows, id)
		}
	}
}
