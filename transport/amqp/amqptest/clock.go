package amqptest

import (
	"container/heap"
	"time"
)

// alarm is something that happens at a time of the server's clock: a message
// expires, a queue was unused too long, a delivery was held too long. It runs
// under the server's lock.
type alarm struct {
	at    time.Time
	fire  func()
	index int // position in the heap + 1; 0 = not set
}

type alarms []*alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i+1, j+1
}

func (a *alarms) Push(x any) {
	al, _ := x.(*alarm)
	*a = append(*a, al)
	al.index = len(*a)
}

func (a *alarms) Pop() any {
	old := *a
	al := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	al.index = 0
	return al
}

// set (re)schedules al.
func (s *Server) set(al *alarm, at time.Time) {
	al.at = at
	if al.index == 0 {
		heap.Push(&s.alarms, al)
	} else {
		heap.Fix(&s.alarms, al.index-1)
	}
	if s.alarms[0] == al && !s.cfg.VirtualClock {
		select {
		case s.rearm <- struct{}{}:
		default:
		}
	}
}

func (s *Server) unset(al *alarm) {
	if al.index != 0 {
		heap.Remove(&s.alarms, al.index-1)
	}
}

// fireDue runs due work up to limit, in order of time, and finishes the work
// that each alarm caused before the next.
func (s *Server) fireDue(limit time.Time) {
	for len(s.alarms) > 0 && !s.alarms[0].at.After(limit) {
		al := s.alarms[0]
		heap.Remove(&s.alarms, 0)
		if s.cfg.VirtualClock {
			s.now = al.at
		}
		al.fire()
		s.work()
	}
}

// runClock fires alarms in real time until the server closes.
func (s *Server) runClock() {
	defer s.wg.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.begin()
		s.fireDue(s.now)
		wait := time.Hour
		if len(s.alarms) > 0 {
			wait = s.alarms[0].at.Sub(s.now)
		}
		s.end()
		timer.Reset(max(wait, 50*time.Microsecond))
		select {
		case <-s.done:
			return
		case <-s.rearm:
		case <-timer.C:
		}
	}
}

// Now is the time of the server's clock: what x-death and every timeout use.
func (s *Server) Now() time.Time {
	s.begin()
	defer s.end()
	return s.now
}

// Advance moves a virtual clock on by d and does everything that falls due on
// the way, in order, before it returns. Without [Config.VirtualClock] it does
// nothing. Heartbeats and [Server.Delay] always follow the real clock, since a
// client does.
func (s *Server) Advance(d time.Duration) {
	if !s.cfg.VirtualClock {
		return
	}
	s.begin()
	defer s.end()
	limit := s.now.Add(d)
	s.fireDue(limit)
	s.now = limit
}
