package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// Container is how a container stands.
type Container struct {
	Name      string          `json:"name"`
	Instance  string          `json:"instance,omitempty"`
	Transport string          `json:"transport"`
	Source    string          `json:"source"`
	State     container.State `json:"state"`
	Since     time.Time       `json:"since,omitzero"`
	Live      bool            `json:"live"`
	Ready     bool            `json:"ready"`
	// Reason says why it is not ready, or what holds it.
	Reason string    `json:"reason,omitempty"`
	Paused *pausedBy `json:"paused,omitempty"`
	// Level is how much it needs a person: ok, notice or problem.
	Level Level `json:"level"`
	// Limited is what limits it now, in one sentence.
	Limited container.Bottleneck `json:"limited"`

	// Rate is what was finished per second, over the last 10 s.
	Rate float64 `json:"rate"`
	// Backlog is what waits at the broker; null: unknown.
	Backlog   *int64    `json:"backlog"`
	BacklogAt time.Time `json:"backlog_at,omitzero"`
	// Oldest is the age in seconds of what is held the longest here: runs, waits, or is blocked.
	Oldest   float64 `json:"oldest"`
	InFlight int     `json:"in_flight"`
	Parked   int     `json:"parked"`
	// Window is how much may be held, parked retries aside; Waiting could start now, Queued
	// is behind others of its key, Blocked behind one whose handler does not return.
	Window  int `json:"window"`
	Waiting int `json:"waiting"`
	Queued  int `json:"queued"`
	Blocked int `json:"blocked"`
	// Lanes are the keys or partitions with work; HotShare is the part of the window of the
	// largest one.
	Lanes    int     `json:"lanes"`
	HotShare float64 `json:"hot_share"`
	// LastDelivery is when something was received last; absent: never.
	LastDelivery time.Time `json:"last_delivery,omitzero"`
	// DeadLetters: their place is known here, so they can be looked at.
	DeadLetters bool `json:"dead_letters"`
	// Standby: another consumer is the active one.
	Standby bool `json:"standby,omitempty"`

	// NextAttempt is when a recovering one tries to subscribe again; absent: it tries now.
	NextAttempt time.Time `json:"next_attempt,omitzero"`

	Workers Workers `json:"workers"`
	// Throttle is the limiter's state; null: the container has none.
	Throttle *throttle.State `json:"throttle"`

	// HandlerP50 and HandlerP99 are how long handlers took lately, in seconds; 0: none ended.
	HandlerP50 float64 `json:"handler_p50"`
	HandlerP99 float64 `json:"handler_p99"`
	// HandlerUsual is the median of before, which follows over hours; 0: not known.
	HandlerUsual float64 `json:"handler_usual"`
	// Failed are the failed calls of this run by the code of the error.
	Failed map[longshore.Code]int64 `json:"failed,omitempty"`

	Received    int64 `json:"received"`
	Redelivered int64 `json:"redelivered"`
	Acked       int64 `json:"acked"`
	Retried     int64 `json:"retried"`
	Dead        int64 `json:"dead"`
	Released    int64 `json:"released"`
	Lost        int64 `json:"lost"`
	Stuck       int   `json:"stuck"`
	Generation  int   `json:"generation"`
	// ConsumerTag is the name that RabbitMQ lists its consumers under.
	ConsumerTag string `json:"consumer_tag,omitempty"`
}

// pausedBy is who paused a container, when and why.
type pausedBy struct {
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// Workers are a container's workers and their bounds.
type Workers struct {
	Now  int `json:"now"`
	Busy int `json:"busy"`
	Min  int `json:"min"`
	Max  int `json:"max"`
	// Limit is what keeps them from growing, Reason that of the last change.
	Limit  string `json:"limit,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// limiter returns the container's throttle, if it can be changed.
func limiter(c *container.ListenerContainer) *throttle.Limiter {
	l, _ := c.Throttle().(*throttle.Limiter)
	return l
}

func (cs *containers) status(c *served) Container {
	st := c.Stats()
	return cs.statusOf(c, &st, time.Now())
}

// statusOf is the status from numbers that were read before.
func (cs *containers) statusOf(c *served, st *container.Stats, now time.Time) Container {
	v := Container{Name: st.Name, Instance: cs.instance, Level: levelOf(st), Transport: st.Transport, Source: st.Source, State: st.State, Since: st.Since,
		Live: st.Live, Ready: st.Ready, Reason: st.Reason, Rate: c.meter.rate(st, now),
		Oldest: st.Oldest.Seconds(), InFlight: st.InFlight, Parked: st.Parked, BacklogAt: st.BacklogAt,
		Workers:  Workers{Now: st.Workers, Busy: st.Busy, Min: st.Min, Max: st.Max, Limit: st.Scaling.Limit, Reason: st.Scaling.Reason},
		Received: st.Received, Redelivered: st.Redelivered, Acked: st.Acked, Retried: st.Retried, Released: st.Released,
		Lost: st.Lost, Stuck: st.Stuck, Generation: st.Generation, ConsumerTag: st.ConsumerTag, Limited: st.Bottleneck,
		HandlerP50: st.Handler.P50.Seconds(), HandlerP99: st.Handler.P99.Seconds(), Failed: st.FailedBy,
		HandlerUsual: st.Handler.Usual.Seconds(), Window: st.Window, Waiting: st.ReadyToStart + st.Buffered, Queued: st.Queued, Blocked: st.Blocked,
		Lanes: st.Lanes, HotShare: st.HotShare, LastDelivery: st.LastDelivery, Standby: st.Standby, DeadLetters: c.dead != nil,
		NextAttempt: st.NextAttempt}
	if !st.BacklogAt.IsZero() {
		v.Backlog = &st.Backlog
	}
	for _, n := range st.DeadLetters {
		v.Dead += n
	}
	if l := limiter(c.ListenerContainer); l != nil {
		state := l.State()
		v.Throttle = &state
		if v.Level == LevelOK && (state.Operator != nil || state.Fleet != nil) {
			v.Level = LevelNotice // a person set it, and may have forgotten it
		}
	}
	if st.State == container.StatePaused {
		v.Paused = c.pausedBy()
	}
	return v
}

// Bare returns the container as it is shown without a token: without the texts, which may
// name ids, keys and people.
func (v Container) Bare() Container {
	v.Reason, v.Limited = "", v.Limited.Bare()
	v.Workers.Limit, v.Workers.Reason = "", ""
	if v.Paused != nil {
		v.Paused = &pausedBy{At: v.Paused.At}
	}
	if v.Throttle != nil {
		v.Throttle = &throttle.State{Limits: v.Throttle.Limits}
	}
	return v
}

func (cs *containers) showAll(w http.ResponseWriter, r *http.Request) {
	list := make([]Container, 0, len(cs.list))
	for _, c := range cs.list {
		list = append(list, shownTo(r.Context(), cs.status(c)))
	}
	answer(w, http.StatusOK, map[string]any{"instance": cs.instance, "containers": list})
}

func (cs *containers) show(w http.ResponseWriter, r *http.Request) {
	if c := cs.find(w, r); c != nil {
		answer(w, http.StatusOK, shownTo(r.Context(), cs.status(c)))
	}
}

// said is the reason that a probe is given: the sentence, or for a caller without a token
// its fixed word, because the sentence may name ids, keys and people.
func said(ctx context.Context, st *container.Stats) string {
	if st.Reason != "" && !sees(ctx) {
		return st.Bottleneck.By
	}
	return st.Reason
}

func (cs *containers) live(w http.ResponseWriter, r *http.Request) {
	status, dead := http.StatusOK, map[string]string{}
	for _, c := range cs.list {
		if st := c.Stats(); !st.Live {
			status, dead[st.Name] = http.StatusServiceUnavailable, said(r.Context(), &st)
		}
	}
	answer(w, status, map[string]any{"live": status == http.StatusOK, "containers": dead})
}

func (cs *containers) ready(w http.ResponseWriter, r *http.Request) {
	status, reasons := http.StatusOK, map[string]string{}
	only := r.PathValue("name")
	if only != "" && cs.find(w, r) == nil {
		return
	}
	for _, c := range cs.list {
		st := c.Stats()
		if only != "" && st.Name != only {
			continue
		}
		switch {
		case st.Reason != "":
			reasons[st.Name] = said(r.Context(), &st)
		case st.Ready:
			reasons[st.Name] = "ready"
		}
		if !st.Ready {
			status = http.StatusServiceUnavailable
		}
	}
	answer(w, status, map[string]any{"ready": status == http.StatusOK, "containers": reasons})
}

// meter turns sums into a rate.
type meter struct {
	mu      sync.Mutex
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

const meterFor = 10 * time.Second

// rate notes the sums of now and returns what was finished per second lately.
func (m *meter) rate(st *container.Stats, now time.Time) float64 {
	done := st.Acked + st.Retried + st.Rejected + st.Discarded
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.samples); n > 0 && done < m.samples[n-1].done {
		m.samples = nil // a new run
	}
	if n := len(m.samples); n == 0 || now.Sub(m.samples[n-1].at) >= meterFor/20 {
		m.samples = append(m.samples, sample{now, done})
	}
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= meterFor {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	if d := now.Sub(first.at).Seconds(); d > 0.1 {
		return float64(done-first.done) / d
	}
	return 0
}
