package fleet

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
)

// reader reads one instance.
type reader struct {
	*Client
	cfg    Config
	signal func()

	mu     sync.Mutex
	known  Instance // without Series
	series map[string]*series
	lastID int64 // of the events
}

func newReader(t Target, cfg Config, signal func()) *reader {
	return &reader{Client: NewClient(t, cfg.Timeout), cfg: cfg, signal: signal, known: Instance{Name: t.Name, Status: Asking, Since: time.Now()}, series: map[string]*series{}}
}

// run reads the containers until ctx ends.
func (r *reader) run(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Every)
	defer tick.Stop()
	for {
		r.read(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// list is the answer of GET /api/containers.
type list struct {
	Containers []admin.Container `json:"containers"`
}

func (r *reader) read(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	var l list
	err := r.Call(short, http.MethodGet, "/api/containers", nil, &l)
	if ctx.Err() != nil {
		return // the end, no failure of the instance
	}
	r.mu.Lock()
	r.note(l, err, time.Now())
	r.mu.Unlock()
	r.signal()
}

// note takes what a read brought. The caller holds mu.
func (r *reader) note(l list, err error, now time.Time) {
	k := &r.known
	if err != nil {
		if k.Status != Silent {
			k.Status, k.Since = Silent, now
		}
		k.Code, k.Problem, k.Help = string(longshore.CodeOf(err)), err.Error(), ""
		var e *longshore.Error
		if errors.As(err, &e) && e.Err != nil {
			k.Problem, k.Help = e.Err.Error(), e.Hint
		}
		return
	}
	if k.Status != Live {
		k.Status, k.Since = Live, now
	}
	if restarted(k.Containers, l.Containers) {
		r.begin(now)
	}
	k.Code, k.Problem, k.Help = "", "", ""
	k.Heard, k.Containers = now, l.Containers
	for _, c := range l.Containers {
		if r.series[c.Name] == nil {
			r.series[c.Name] = &series{}
		}
		r.series[c.Name].add(c, now)
	}
	maps.DeleteFunc(r.series, func(name string, _ *series) bool {
		return !slices.ContainsFunc(l.Containers, func(c admin.Container) bool { return c.Name == name })
	})
}

// begin notes that another process answers: its sums begin at 0. The caller holds mu.
func (r *reader) begin(now time.Time) {
	r.known.Restarted = now
	clear(r.series)
}

// restarted reports whether the containers belong to a later run than before. A container that
// only reconnected keeps its Since.
func restarted(before, after []admin.Container) bool {
	began := map[string]time.Time{}
	for _, c := range before {
		began[c.Name] = c.Since
	}
	return slices.ContainsFunc(after, func(c admin.Container) bool {
		was, known := began[c.Name]
		return known && !was.IsZero() && c.Since.After(was)
	})
}

// instance returns a copy of the known facts.
func (r *reader) instance() Instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.known
	v.Containers, v.Events = slices.Clone(v.Containers), slices.Clone(v.Events)
	v.Series = make(map[string][]Point, len(r.series))
	for name, s := range r.series {
		v.Series[name] = s.all()
	}
	return v
}
