package fleet

import (
	"time"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/history"
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

// add notes how the container stands. The first time there is nothing to compare with, and
// no point.
func (s *series) add(c admin.Container, now time.Time) {
	is, was := sumsOf(c, now), s.last
	s.last = is
	d := now.Sub(was.at).Seconds()
	if was.at.IsZero() || d <= 0 {
		return
	}
	rate := func(from, to int64) float64 { return max(float64(to-from)/d, 0) }
	p := Point{At: now, In: rate(was.in, is.in), Done: rate(was.done, is.done), Failed: rate(was.failed, is.failed), Dead: rate(was.deadly, is.deadly), Backlog: -1,
		Workers: c.Workers.Now, Busy: c.Workers.Busy, Parked: c.Parked, P50: c.HandlerP50, P99: c.HandlerP99}
	if c.Backlog != nil {
		p.Backlog = float64(*c.Backlog)
	}
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

// before puts points before those that are known.
func (s *series) before(past []Point) {
	if len(s.points) > 0 {
		first := s.points[0].At
		for len(past) > 0 && !past[len(past)-1].At.Before(first) {
			past = past[:len(past)-1]
		}
	}
	s.points = append(past[:len(past):len(past)], s.points...)
}

// pointsOf are the points of an instance's own past.
func pointsOf(h *history.Series) []Point {
	n := len(h.At)
	for _, m := range []int{len(h.In), len(h.Done), len(h.Retried), len(h.Dead), len(h.Backlog), len(h.Workers), len(h.Busy), len(h.Parked), len(h.P50), len(h.P99)} {
		n = min(n, m) // of another version, a measure may be missing
	}
	points := make([]Point, 0, n)
	for i := range n {
		p := Point{At: time.Unix(h.At[i], 0), In: float64(h.In[i]), Done: float64(h.Done[i]), Failed: float64(h.Retried[i]), Dead: float64(h.Dead[i]), Backlog: -1,
			Workers: h.Workers[i], Busy: h.Busy[i], Parked: h.Parked[i], P50: float64(h.P50[i]), P99: float64(h.P99[i])}
		if h.Backlog[i] != nil {
			p.Backlog = float64(*h.Backlog[i])
		}
		points = append(points, p)
	}
	return points
}
