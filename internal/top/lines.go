package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/fleet"
)

// Line is how a container stands at a time, over all instances: what longshore top prints
// where there is no terminal.
type Line struct {
	At        time.Time `json:"at"`
	Container string    `json:"container"`
	State     string    `json:"state"`
	// Instances have it, Silent of them do not answer.
	Instances int     `json:"instances"`
	Silent    int     `json:"silent"`
	Rate      float64 `json:"rate"`
	Backlog   *int64  `json:"backlog"` // null: not known
	Oldest    float64 `json:"oldest"`
	Workers   int     `json:"workers"`
	Busy      int     `json:"busy"`
	Max       int     `json:"max"`
	P50       float64 `json:"handler_p50"`
	P99       float64 `json:"handler_p99"`
	Parked    int     `json:"parked"`
	Retried   int64   `json:"retried"`
	Dead      int64   `json:"dead"`
	// By and Why say what limits the worst instance.
	By  string `json:"limited_by,omitempty"`
	Why string `json:"why,omitempty"`
}

// Lines is one line for each container, the worst first.
func Lines(snap fleet.Snapshot, now time.Time) []Line {
	s := Screen{Fleet: snap, Now: now}
	lines := []Line{}
	for _, g := range s.groups() {
		r := rowOf(&g)
		t := &r.total
		_, word, _ := s.state(r.worst, r.urge)
		l := Line{At: now, Container: g.Name, State: word, Instances: t.Instances, Silent: t.Silent, Rate: t.Rate, Oldest: t.Oldest, Workers: t.Now, Busy: t.Busy,
			Max: t.Max, P50: t.P50, P99: t.P99, Parked: t.Parked, Retried: t.Retried, Dead: t.Dead, By: r.worst.Limited.By}
		if t.Backlog >= 0 {
			l.Backlog = &t.Backlog
		}
		if r.urge > fleet.Fine {
			l.Why = stands(t) + s.sentence(r.worst)
		}
		lines = append(lines, l)
	}
	return lines
}

// String is the line for people and awk: fields in a fixed order, the sentence last.
func (l Line) String() string {
	backlog := -1.0
	if l.Backlog != nil {
		backlog = float64(*l.Backlog)
	}
	plain := func(seconds float64) string { return strings.ReplaceAll(span(seconds), " ", "") }
	on := fmt.Sprint(l.Instances)
	if l.Silent > 0 {
		on = fmt.Sprintf("%d/%d", l.Instances-l.Silent, l.Instances)
	}
	text := fmt.Sprintf("%s %s state=%s instances=%s rate=%.1f backlog=%s oldest=%s workers=%d/%d busy=%d p50=%s p99=%s parked=%d retried=%d dead=%d", l.At.Format(time.RFC3339), clean(l.Container),
		strings.ReplaceAll(l.State, " ", "-"), on, l.Rate, strings.ReplaceAll(number(backlog), ",", ""), plain(l.Oldest), l.Workers, l.Max, l.Busy, plain(l.P50), plain(l.P99), l.Parked, l.Retried, l.Dead)
	if l.Why != "" {
		text += " why=" + fmt.Sprintf("%q", l.Why)
	}
	return text
}
