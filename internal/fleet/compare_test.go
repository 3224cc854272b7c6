package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// on is a snapshot of live instances a, b, …, each with the container orders.
func on(set ...func(*admin.Container)) *Snapshot {
	s := &Snapshot{}
	for i, f := range set {
		c := admin.Container{Name: "orders", Transport: "rabbitmq", Source: "orders", State: container.StateRunning, Live: true, Ready: true,
			Workers: admin.Workers{Now: 2, Busy: 1, Min: 1, Max: 10}, Throttle: &throttle.State{Limits: throttle.Limits{Permits: 5, Rate: -1}}, Rate: 10, Acked: 100}
		if f != nil {
			f(&c)
		}
		s.Instances = append(s.Instances, Instance{Name: string(rune('a' + i)), Status: Live, Session: admin.Session{Version: "v1"}, Containers: []admin.Container{c}})
	}
	return s
}

func TestDifferencesOfInstances(t *testing.T) {
	for name, row := range map[string]struct {
		s    *Snapshot
		want []string
	}{
		"none": {on(nil, nil), nil},
		"one":  {on(nil), nil},
		"worker bounds": {on(nil, func(c *admin.Container) { c.Workers.Max = 50 }, nil),
			[]string{"orders workers: 1..10 on a, c; 1..50 on b"}},
		"how many there are now is none": {on(nil, func(c *admin.Container) { c.Workers.Now = 9 }), nil},
		"permits": {on(nil, func(c *admin.Container) { c.Throttle = nil }, func(c *admin.Container) { c.Throttle.Permits = 0 }),
			[]string{"orders permits: 5 on a; no limit on b; 0 on c"}},
		"rate":   {on(nil, func(c *admin.Container) { c.Throttle.Rate = 2.5 }), []string{"orders rate limit: no limit on a; 2.5 on b"}},
		"source": {on(nil, func(c *admin.Container) { c.Source = "orders2" }), []string{"orders source: rabbitmq orders on a; rabbitmq orders2 on b"}},
		"pause":  {on(nil, func(c *admin.Container) { c.State = container.StatePaused }), []string{"orders pause: not paused on a; paused on b"}},
		"version": {func() *Snapshot { s := on(nil, nil); s.Instances[1].Session.Version = "v2"; return s }(),
			[]string{"version: v1 on a; v2 on b"}},
		"a version that is not known is none": {func() *Snapshot { s := on(nil, nil); s.Instances[1].Session.Version = ""; return s }(), nil},
		"missing": {func() *Snapshot { s := on(nil, nil); s.Instances[1].Containers = nil; return s }(),
			[]string{"orders container: present on a; missing on b"}},
		"what is old is not compared": {func() *Snapshot {
			s := on(nil, func(c *admin.Container) { c.Workers.Max = 50 })
			s.Instances[1].Status = Silent
			return s
		}(), nil},
	} {
		var got []string
		for _, d := range Differences(row.s) {
			got = append(got, d.String())
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestTotals(t *testing.T) {
	waits := func(n int64) func(*admin.Container) { return func(c *admin.Container) { c.Backlog = &n } }
	log := func(n int64) func(*admin.Container) {
		return func(c *admin.Container) { c.Backlog, c.Transport = &n, "kafka" }
	}
	total := func(s *Snapshot) Total {
		g := Groups(s)
		return g[0].Total()
	}
	if got := total(on(waits(70), waits(72), nil)); got.Backlog != 72 || got.Rate != 30 || got.Permits != 15 || got.Now != 6 || got.Max != 30 || got.Instances != 3 || got.Silent != 0 {
		t.Errorf("a queue: %+v", got)
	}
	if got := total(on(log(70), log(72))); got.Backlog != 142 {
		t.Errorf("partitions: %+v", got)
	}
	s := on(waits(70), waits(900))
	s.Instances[1].Status = Silent
	if got := total(s); got.Backlog != 70 || got.Rate != 10 || got.Silent != 1 || got.Permits != 5 || got.Acked != 100 {
		t.Errorf("one is silent: %+v", got)
	}
	s.Instances[0].Status = Silent
	if got := total(s); got.Backlog != -1 || got.Rate != 0 || got.Silent != 2 || got.Permits != -1 {
		t.Errorf("all are silent: %+v", got)
	}
	if got := total(on(nil, func(c *admin.Container) { c.Throttle = nil })); got.Permits != -1 {
		t.Errorf("one has no limit: %+v", got)
	}
}

func TestARestartIsALaterRun(t *testing.T) {
	at := time.Now()
	c := func(name string, since time.Time) []admin.Container {
		return []admin.Container{{Name: name, Since: since}}
	}
	for name, row := range map[string]struct {
		before, after []admin.Container
		want          bool
	}{
		"first answer": {nil, c("a", at), false}, "same": {c("a", at), c("a", at), false}, "later": {c("a", at), c("a", at.Add(time.Second)), true},
		"started now": {c("a", time.Time{}), c("a", at), false}, "another": {c("a", at), c("b", at.Add(time.Second)), false}, "gone": {c("a", at), nil, false},
	} {
		if got := restarted(row.before, row.after); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTheWorstComesFirst(t *testing.T) {
	s := on(nil)
	by := func(name string, f func(*admin.Container)) {
		c := s.Instances[0].Containers[0]
		c.Name, c.Level = name, admin.LevelOK
		f(&c)
		s.Instances[0].Containers = append(s.Instances[0].Containers, c)
	}
	by("b-limited", func(c *admin.Container) { c.Limited.By = container.ByLanes })
	by("c-held", func(c *admin.Container) { c.Level = admin.LevelNotice })
	by("d-stuck", func(c *admin.Container) { c.Level = admin.LevelProblem })
	by("e-recovering", func(c *admin.Container) { c.State, c.Ready = container.StateRecovering, false })
	by("a-scaling", func(c *admin.Container) { c.Limited.By = container.ByPolicy })
	by("f-old-and-not-ready", func(c *admin.Container) { c.Level, c.Ready = "", false })
	groups := Groups(s)
	ByUrgency(groups)
	var names []string
	for _, g := range groups {
		names = append(names, g.Name)
	}
	if got, want := strings.Join(names, " "), "e-recovering d-stuck f-old-and-not-ready c-held b-limited a-scaling orders"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// One that does not answer says nothing of those that do, but is to be seen.
	s = on(nil, nil)
	s.Instances[0].Status = Silent
	g := Groups(s)[0]
	if p, u := g.Worst(); p.Instance.Name != "b" || u != Held {
		t.Errorf("%s, %d", p.Instance.Name, u)
	}
	s.Instances[1].Status = Silent
	g = Groups(s)[0]
	if _, u := g.Worst(); u != Broken {
		t.Errorf("none answers: %d", u)
	}
}
