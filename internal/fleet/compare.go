package fleet

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
)

// Part is a container on one instance.
type Part struct {
	Instance *Instance
	admin.Container
}

// Group is a container on all instances that have it.
type Group struct {
	Name  string
	Parts []Part
}

// Groups are the containers of a snapshot, sorted by name.
func Groups(s *Snapshot) []Group {
	byName := map[string]int{}
	var groups []Group
	for i := range s.Instances {
		in := &s.Instances[i]
		for _, c := range in.Containers {
			at, ok := byName[c.Name]
			if !ok {
				at = len(groups)
				byName[c.Name] = at
				groups = append(groups, Group{Name: c.Name})
			}
			groups[at].Parts = append(groups[at].Parts, Part{in, c})
		}
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return groups
}

// Total is what the instances of a group come to. Of an instance that does not answer
// nothing is added: its numbers are old.
type Total struct {
	Instances, Silent int
	Rate              float64
	// Backlog is the largest that an instance reports where the instances share a source,
	// else the sum; −1: none knows it.
	Backlog        int64
	Oldest         float64
	InFlight       int
	Parked, Stuck  int
	Now, Busy, Max int
	Min            int
	Permits        int // −1: an instance has no limit
	P50, P99       float64
	Retried, Dead  int64
	Acked, Lost    int64
	Received       int64
	Failed         map[longshore.Code]int64
	// Window, Queued, Blocked and HotShare say how full it is, and by whom; of the share and
	// of Usual, the median handler time of before, the largest counts. Last is the newest
	// message; zero: none ever came.
	Window, Queued, Blocked int
	HotShare, Usual         float64
	Last                    time.Time
}

// Total adds the numbers of a group up.
func (g *Group) Total() Total {
	t := Total{Backlog: -1, Failed: map[longshore.Code]int64{}}
	waits := map[string]int64{} // by source
	limited := true
	for i := range g.Parts {
		p := &g.Parts[i]
		t.Instances++
		if p.Instance.Status != Live {
			t.Silent++
			continue
		}
		t.Rate += p.Rate
		t.Oldest = max(t.Oldest, p.Oldest)
		t.InFlight, t.Parked, t.Stuck = t.InFlight+p.InFlight, t.Parked+p.Parked, t.Stuck+p.Stuck
		t.Now, t.Busy, t.Min, t.Max = t.Now+p.Workers.Now, t.Busy+p.Workers.Busy, t.Min+p.Workers.Min, t.Max+p.Workers.Max
		t.Window, t.Queued, t.Blocked = t.Window+p.Window, t.Queued+p.Queued, t.Blocked+p.Blocked
		t.HotShare, t.Usual = max(t.HotShare, p.HotShare), max(t.Usual, p.HandlerUsual)
		if p.LastDelivery.After(t.Last) {
			t.Last = p.LastDelivery
		}
		t.P50, t.P99 = max(t.P50, p.HandlerP50), max(t.P99, p.HandlerP99)
		t.Received, t.Acked, t.Retried, t.Dead, t.Lost = t.Received+p.Received, t.Acked+p.Acked, t.Retried+p.Retried, t.Dead+p.Dead, t.Lost+p.Lost
		for code, n := range p.Failed {
			t.Failed[code] += n
		}
		if p.Backlog != nil {
			// A broker counts what waits once, however many instances ask it; on a log each one
			// counts its own partitions.
			at := p.Transport + " " + p.Source
			if p.Transport == "kafka" {
				at += " " + p.Instance.Name
			}
			waits[at] = max(waits[at], *p.Backlog)
		}
		if p.Throttle == nil || p.Throttle.Permits < 0 {
			limited = false
		} else {
			t.Permits = min(t.Permits, math.MaxInt-p.Throttle.Permits) + p.Throttle.Permits
		}
	}
	if !limited || t.Silent == t.Instances {
		t.Permits = -1
	}
	for _, n := range waits {
		t.Backlog = max(t.Backlog, 0) + n
	}
	return t
}

// Urgency orders containers: what needs a person comes first.
type Urgency int

// The urgencies.
const (
	Fine     Urgency = iota // nothing to do
	Limited                 // something limits it, which may be all right
	Held                    // it is unusual, often on purpose: a pause, a throttle
	Troubled                // it does less than it should
	Broken                  // it does nothing, or its numbers are old
)

// Urgent says how much a container needs a person: by the level that its instance reports.
func Urgent(p *Part) Urgency {
	switch {
	case p.Instance.Status == Silent, !p.Live, p.State == container.StateRecovering:
		return Broken
	case p.Level == admin.LevelProblem, p.Level == "" && !p.Ready: // "": of a version without levels
		return Troubled
	case p.Level == admin.LevelNotice:
		return Held
	case p.Limited.By == "", p.Limited.By == container.ByPolicy:
		return Fine
	}
	return Limited
}

// Worst is the part that needs a person most, and how much the group does. An instance that
// does not answer is the worst only where none does: of the others it says nothing.
func (g *Group) Worst() (*Part, Urgency) {
	var worst *Part
	most, silent := Fine, false
	for i := range g.Parts {
		p := &g.Parts[i]
		if p.Instance.Status != Live {
			silent = true
			continue
		}
		if u := Urgent(p); worst == nil || u > most {
			worst, most = p, u
		}
	}
	switch {
	case worst == nil:
		return &g.Parts[0], Urgent(&g.Parts[0])
	case silent:
		most = max(most, Held)
	}
	return worst, most
}

// ByUrgency sorts groups: the worst first, then by name.
func ByUrgency(groups []Group) {
	slices.SortStableFunc(groups, func(a, b Group) int {
		_, ua := a.Worst()
		_, ub := b.Worst()
		return cmp.Or(cmp.Compare(ub, ua), strings.Compare(a.Name, b.Name))
	})
}

// Difference is a setting that instances of one container do not share.
type Difference struct {
	Container string  `json:"container"`
	What      string  `json:"what"`
	Values    []Value `json:"values"`
}

// Value is what instances have in common.
type Value struct {
	Value     string   `json:"value"`
	Instances []string `json:"instances"`
}

// String is the difference in one line.
func (d Difference) String() string {
	var parts []string
	for _, v := range d.Values {
		parts = append(parts, fmt.Sprintf("%s on %s", v.Value, strings.Join(v.Instances, ", ")))
	}
	text := d.What + ": " + strings.Join(parts, "; ")
	if d.Container != "" {
		text = d.Container + " " + text
	}
	return text
}

// Differences finds settings that differ between the instances that answer: the version,
// and for each container its source, the bounds of its workers, its limits and whether it is
// paused. A container that some instances lack is one as well.
func Differences(s *Snapshot) []Difference {
	all := []Difference{}
	var live []*Instance
	for i := range s.Instances {
		if in := &s.Instances[i]; in.Status == Live {
			live = append(live, in)
		}
	}
	add := func(container, what string, of func(*Instance) (string, bool)) {
		if d := differing(live, of); len(d) > 1 {
			all = append(all, Difference{Container: container, What: what, Values: d})
		}
	}
	add("", "version", func(in *Instance) (string, bool) { return in.Session.Version, in.Session.Version != "" })
	for _, g := range Groups(s) {
		find := func(in *Instance) *admin.Container {
			at := slices.IndexFunc(in.Containers, func(c admin.Container) bool { return c.Name == g.Name })
			if at < 0 {
				return nil
			}
			return &in.Containers[at]
		}
		has := func(f func(*admin.Container) string) func(*Instance) (string, bool) {
			return func(in *Instance) (string, bool) {
				c := find(in)
				if c == nil {
					return "", false
				}
				return f(c), true
			}
		}
		add(g.Name, "container", func(in *Instance) (string, bool) {
			if find(in) == nil {
				return "missing", true
			}
			return "present", true
		})
		add(g.Name, "source", has(func(c *admin.Container) string { return c.Transport + " " + c.Source }))
		add(g.Name, "workers", has(func(c *admin.Container) string { return fmt.Sprintf("%d..%d", c.Workers.Min, c.Workers.Max) }))
		add(g.Name, "permits", has(func(c *admin.Container) string { return limitText(c, permitsOf) }))
		add(g.Name, "rate limit", has(func(c *admin.Container) string { return limitText(c, rateOf) }))
		add(g.Name, "pause", has(func(c *admin.Container) string {
			if c.State == container.StatePaused {
				return "paused"
			}
			return "not paused"
		}))
	}
	return all
}

func permitsOf(c *admin.Container) float64 { return float64(c.Throttle.Permits) }
func rateOf(c *admin.Container) float64    { return c.Throttle.Rate }

func limitText(c *admin.Container, of func(*admin.Container) float64) string {
	if c.Throttle == nil || of(c) < 0 {
		return "no limit"
	}
	return fmt.Sprintf("%v", of(c))
}

// differing groups instances by a value, in the order in which the values appear.
func differing(live []*Instance, of func(*Instance) (string, bool)) []Value {
	var values []Value
	for _, in := range live {
		v, ok := of(in)
		if !ok {
			continue
		}
		at := slices.IndexFunc(values, func(x Value) bool { return x.Value == v })
		if at < 0 {
			at = len(values)
			values = append(values, Value{Value: v})
		}
		values[at].Instances = append(values[at].Instances, in.Name)
	}
	return values
}
