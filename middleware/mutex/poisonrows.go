package mutex

import "sync"

// suspects are rows that took the broker's channel with them when they were sent
// alone. Once is bad luck. If others pass in between, or it happens again and again
// while the broker can be reached, it is the row.
type suspects struct {
	mu    sync.Mutex
	count int // confirmed publishings
	rows  map[int64]suspect
}

type suspect struct{ times, count int }

const (
	maxSuspicions = 5
	maxSuspects   = 1000
)

func (s *suspects) passed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
}

// again reports whether the row is guilty by now.
func (s *suspects) again(r *record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.rows[r.seq]
	if known && (s.count > was.count || was.times+1 >= maxSuspicions) {
		delete(s.rows, r.seq)
		return true
	}
	if s.rows == nil || len(s.rows) >= maxSuspects {
		s.rows = map[int64]suspect{}
	}
	s.rows[r.seq] = suspect{times: was.times + 1, count: s.count}
	return false
}
