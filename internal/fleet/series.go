package fleet

import (
	"time"

	"github.com/longshore-go/longshore/admin"
)

// keepPoints is how many points are kept of a container.
const keepPoints = 900

// Point is how a container stood at a time. In, Done, Failed and Dead are per second.
type Point struct {
	At               time.Time
	In, Done, Failed float64
	Dead             float64
	Backlog          float64 // −1: unknown
	Workers, Busy    int
	Parked           int
	P50, P99         float64 // seconds
}

// sums are those that rates are made of.
type sums struct {
	at                       time.Time
	in, done, failed, deadly int64
}

func sumsOf(c admin.Container, now time.Time) sums {
	s := sums{at: now, in: c.Received, done: c.Acked, deadly: c.Dead}
	for _, n := range c.Failed {
		s.failed += n
	}
	return s
}

// series are the last points of a container.
type series struct {
	points []Point
	last   sums
}

// add notes how the container stands. The first point, and one after sums that have
// shrunk, has no rates.
func (s *series) add(c admin.Container, now time.Time) {
	p := Point{At: now, Backlog: -1, Workers: c.Workers.Now, Busy: c.Workers.Busy, Parked: c.Parked, P50: c.HandlerP50, P99: c.HandlerP99}
	if c.Backlog != nil {
		p.Backlog = float64(*c.Backlog)
	}
	is := sumsOf(c, now)
	if d := now.Sub(s.last.at).Seconds(); !s.last.at.IsZero() && d > 0 {
		rate := func(from, to int64) float64 { return max(float64(to-from)/d, 0) }
		p.In, p.Done = rate(s.last.in, is.in), rate(s.last.done, is.done)
		p.Failed, p.Dead = rate(s.last.failed, is.failed), rate(s.last.deadly, is.deadly)
	}
	s.last = is
	if len(s.points) == cap(s.points) { // into a new array: readers have the old one
		s.points = append(make([]Point, 0, 2*keepPoints), s.all()...)
	}
	s.points = append(s.points, p)
}

// all returns the last points, which are never written again.
func (s *series) all() []Point {
	n := len(s.points)
	return s.points[max(0, n-keepPoints):n:n]
}
