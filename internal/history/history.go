package history

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore/container"
)

const (
	// Step is the time between two points.
	Step = time.Second
	// Points is how many are kept: 15 minutes.
	Points = 900
	// Marks is how many changes of the workers are kept.
	Marks = 128

	// minutes is for how long the handler times are kept, one value a minute.
	minutes = 64
	// longestReason bounds the text of a mark.
	longestReason = 80
)

// Point is a container in one second. Rates are per second, times in seconds.
type Point struct {
	// At is the Unix time of the second.
	At int64 `json:"at"`
	// In is what was received; Done was acked or discarded; Retried failed and is tried
	// again; Dead went to the dead-letter destination; Lost was taken back by the broker.
	In      float32 `json:"in"`
	Done    float32 `json:"done"`
	Retried float32 `json:"retried"`
	Dead    float32 `json:"dead"`
	Lost    float32 `json:"lost"`
	// Backlog is what waits at the broker; null: not known.
	Backlog *int64 `json:"backlog"`
	// InFlight is what is held, Parked what waits for a retry, Busy how many handlers run.
	InFlight int `json:"in_flight"`
	Parked   int `json:"parked"`
	Workers  int `json:"workers"`
	Busy     int `json:"busy"`
	// Permits is the throttle's limit; -1: none.
	Permits int `json:"permits"`
	// P50 and P99 are how long handlers took in the last 10 to 20 s; 0: none ended.
	P50 float32 `json:"p50"`
	P99 float32 `json:"p99"`
	// Oldest is the age of the oldest held delivery.
	Oldest float32 `json:"oldest"`
	// State is the container's.
	State container.State `json:"state"`
}

// Mark is one change of the count of workers.
type Mark struct {
	At     time.Time `json:"at"`
	From   int       `json:"from"`
	To     int       `json:"to"`
	Reason string    `json:"reason,omitempty"`
}

// Latency is how long handlers took, in seconds.
type Latency struct {
	P50 float32 `json:"p50"`
	P99 float32 `json:"p99"`
}

// packed is a Point in 60 bytes.
type packed struct {
	at                            uint32
	in, done, retried, dead, lost float32
	backlog, inFlight, parked     uint32 // backlog: unknown is all ones
	workers, busy                 uint16
	permits                       int32
	p50, p99, oldest              float32
	state                         uint8
}

const unknown = math.MaxUint32

// sums are the counters of a container at the last point.
type sums struct {
	run                           time.Time // start of the run that they belong to
	in, done, retried, dead, lost int64
}

// History is the past of one container. Its size is fixed, but for the reasons of marks.
type History struct {
	mu     sync.Mutex
	ring   [Points]packed
	n      int // points ever added
	last   sums
	at     time.Time // of the last point
	marks  [Marks]Mark
	marked int // marks ever added

	hour  [minutes]Latency
	hourN int // minutes ever added
}

// Add takes a point from the sums of a container. It returns false where there is nothing
// to compare with yet, and for a second that has its point.
func (h *History) Add(now time.Time, st *container.Stats) (Point, bool) {
	var dead int64
	for _, n := range st.DeadLetters {
		dead += n
	}
	s := sums{run: st.Since, in: st.Received, done: st.Acked + st.Discarded, retried: st.Retried, dead: dead, lost: st.Lost}
	h.mu.Lock()
	defer h.mu.Unlock()
	passed := now.Sub(h.at).Seconds()
	if !h.at.IsZero() && now.Unix() <= h.at.Unix() {
		return Point{}, false
	}
	was, first := h.last, h.at.IsZero()
	h.last, h.at = s, now
	if first || passed > 10 {
		return Point{}, false // what happened in a gap belongs to no second
	}
	if !was.run.Equal(s.run) {
		was = sums{} // a new run counts from 0
	}
	per := func(now, before int64) float32 { return float32(float64(max(now-before, 0)) / passed) }
	p := packed{at: uint32(now.Unix()), in: per(s.in, was.in), done: per(s.done, was.done), retried: per(s.retried, was.retried), //nolint:gosec // until 2106
		dead: per(s.dead, was.dead), lost: per(s.lost, was.lost), backlog: unknown, inFlight: fit32(st.InFlight), parked: fit32(st.Parked),
		workers: fit16(st.Workers), busy: fit16(st.Busy), permits: int32(min(max(st.Permits, -1), math.MaxInt32)), //nolint:gosec // bounded
		p50: float32(st.Handler.P50.Seconds()), p99: float32(st.Handler.P99.Seconds()), oldest: float32(st.Oldest.Seconds()), state: stateNumber(st.State)}
	if !st.BacklogAt.IsZero() {
		p.backlog = min(fit32(int(st.Backlog)), unknown-1)
	}
	h.ring[h.n%Points] = p
	h.n++
	if h.n%60 == 0 {
		h.hour[h.hourN%minutes] = Latency{p.p50, p.p99}
		h.hourN++
	}
	return p.point(), true
}

// Mark notes a change of the workers.
func (h *History) Mark(m Mark) {
	m.Reason = strings.ToValidUTF8(m.Reason[:min(len(m.Reason), longestReason)], "") // no half character at the end
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks[h.marked%Marks] = m
	h.marked++
}

// Series is a part of the past, one slice a measure; all have the length of At.
type Series struct {
	Container string            `json:"container"`
	Instance  string            `json:"instance,omitempty"`
	At        []int64           `json:"at"`
	In        []float32         `json:"in"`
	Done      []float32         `json:"done"`
	Retried   []float32         `json:"retried"`
	Dead      []float32         `json:"dead"`
	Lost      []float32         `json:"lost"`
	Backlog   []*int64          `json:"backlog"`
	InFlight  []int             `json:"in_flight"`
	Parked    []int             `json:"parked"`
	Workers   []int             `json:"workers"`
	Busy      []int             `json:"busy"`
	Permits   []int             `json:"permits"`
	P50       []float32         `json:"p50"`
	P99       []float32         `json:"p99"`
	Oldest    []float32         `json:"oldest"`
	State     []container.State `json:"state"`
	// Scaled are the changes of the workers in this time.
	Scaled []Mark `json:"scaled"`
	// HourAgo is how long handlers took an hour ago; null: not known.
	HourAgo *Latency `json:"hour_ago"`
}

// Bare returns the past as it is shown without a token: without the reasons of its changes,
// which may name ids, keys and people.
func (s Series) Bare() Series {
	s.Scaled = slices.Clone(s.Scaled)
	for i := range s.Scaled {
		s.Scaled[i].Reason = ""
	}
	return s
}

// Last returns the points of the last so many seconds, the oldest first.
func (h *History) Last(now time.Time, seconds int) Series {
	after := now.Unix() - int64(min(max(seconds, 1), Points))
	h.mu.Lock()
	defer h.mu.Unlock()
	s := empty(min(h.n, seconds, Points))
	for i := max(h.n-Points, 0); i < h.n; i++ {
		if p := &h.ring[i%Points]; int64(p.at) > after {
			s.add(p.point())
		}
	}
	for i := max(h.marked-Marks, 0); i < h.marked; i++ {
		if m := h.marks[i%Marks]; m.At.Unix() > after {
			s.Scaled = append(s.Scaled, m)
		}
	}
	if i := h.hourN - 60; i >= 0 {
		l := h.hour[i%minutes]
		s.HourAgo = &l
	}
	return s
}

func empty(n int) Series {
	n = max(n, 0)
	f := func() []float32 { return make([]float32, 0, n) }
	i := func() []int { return make([]int, 0, n) }
	return Series{At: make([]int64, 0, n), In: f(), Done: f(), Retried: f(), Dead: f(), Lost: f(), Backlog: make([]*int64, 0, n), InFlight: i(), Parked: i(),
		Workers: i(), Busy: i(), Permits: i(), P50: f(), P99: f(), Oldest: f(), State: make([]container.State, 0, n), Scaled: []Mark{}}
}

func (s *Series) add(p Point) {
	s.At, s.In, s.Done, s.Retried = append(s.At, p.At), append(s.In, p.In), append(s.Done, p.Done), append(s.Retried, p.Retried)
	s.Dead, s.Lost, s.Backlog = append(s.Dead, p.Dead), append(s.Lost, p.Lost), append(s.Backlog, p.Backlog)
	s.InFlight, s.Parked = append(s.InFlight, p.InFlight), append(s.Parked, p.Parked)
	s.Workers, s.Busy, s.Permits = append(s.Workers, p.Workers), append(s.Busy, p.Busy), append(s.Permits, p.Permits)
	s.P50, s.P99, s.Oldest, s.State = append(s.P50, p.P50), append(s.P99, p.P99), append(s.Oldest, p.Oldest), append(s.State, p.State)
}

func (p *packed) point() Point {
	v := Point{At: int64(p.at), In: p.in, Done: p.done, Retried: p.retried, Dead: p.dead, Lost: p.lost, InFlight: int(p.inFlight), Parked: int(p.parked),
		Workers: int(p.workers), Busy: int(p.busy), Permits: int(p.permits), P50: p.p50, P99: p.p99, Oldest: p.oldest, State: states()[p.state]}
	if p.backlog != unknown {
		n := int64(p.backlog)
		v.Backlog = &n
	}
	return v
}

func states() [8]container.State {
	return [8]container.State{container.StateNew, container.StateStarting, container.StateRunning, container.StateRecovering, container.StatePaused,
		container.StateDraining, container.StateStopped, ""}
}

func stateNumber(s container.State) uint8 {
	for i, known := range states() {
		if s == known {
			return uint8(i) //nolint:gosec // at most 7
		}
	}
	return 7
}

func fit32(n int) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) } //nolint:gosec // bounded
func fit16(n int) uint16 { return uint16(min(max(n, 0), math.MaxUint16)) } //nolint:gosec // bounded
