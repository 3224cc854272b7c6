package fleet

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/history"
	"github.com/longshore-go/longshore/transport"
)

// Target is the admin API of an instance.
type Target struct {
	// Name is how the instance is shown: host and port, without a scheme.
	Name string
	// Base is the URL below which /api lies, without a slash at its end.
	Base string
	// Token is read for each request, because an instance without operators makes a new one
	// at each start. Zero: requests go without.
	Token transport.Secret
	// Hint says what to do when the token is refused.
	Hint string
	// Named is where the address comes from, for the hint to check it; "": not known.
	Named string
}

// Config says how often instances are read and for how long. The zero value is ready to use.
type Config struct {
	// Every is the time between two reads. Zero: 1 s.
	Every time.Duration
	// Timeout ends a read. Zero: 3 s.
	Timeout time.Duration
	// Frames hears of everything that instances stream, one call at a time for each. nil:
	// nothing does.
	Frames func(instance, kind string, data []byte)
}

func (c Config) withDefaults() Config {
	if c.Every <= 0 {
		c.Every = time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 3 * time.Second
	}
	return c
}

// Status is whether an instance answers.
type Status string

// The statuses.
const (
	Asking Status = "asking" // no answer yet, and no failure
	Live   Status = "live"
	Silent Status = "silent" // the last read failed; its numbers are old
)

// Instance holds the known facts about an instance.
type Instance struct {
	Name   string    `json:"name"`
	Status Status    `json:"status"`
	Since  time.Time `json:"since,omitzero"` // of the status
	Heard  time.Time `json:"heard,omitzero"` // its last answer
	// Code, Problem and Help say why it is silent.
	Code    string `json:"code,omitempty"`
	Problem string `json:"problem,omitempty"`
	Help    string `json:"help,omitempty"`
	// Session is what the instance says of itself and of the operator.
	Session admin.Session `json:"session"`
	// Restarted is when a restart was noticed; zero: none was.
	Restarted time.Time `json:"restarted,omitzero"`
	// Containers are the last that it reported, also while it is silent.
	Containers []admin.Container `json:"containers"`
	// Events are its last events, the newest at the end.
	Events []admin.Event `json:"-"`
	// Series are the numbers of the last 15 minutes by container, the newest at the end.
	Series map[string][]Point `json:"-"`
}

// Snapshot holds the known facts about all instances, in the order of the targets.
type Snapshot struct {
	At        time.Time  `json:"at"`
	Instances []Instance `json:"instances"`
}

// Fleet reads instances.
type Fleet struct {
	readers []*reader
	changed chan struct{}
}

// New returns a fleet that reads nothing before Run.
func New(targets []Target, cfg Config) *Fleet {
	f := &Fleet{changed: make(chan struct{}, 1)}
	for _, t := range targets {
		f.readers = append(f.readers, newReader(t, cfg.withDefaults(), f.signal))
	}
	return f
}

// signal marks that something changed; it never waits.
func (f *Fleet) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// Changed receives after a change of the snapshot, once for several changes.
func (f *Fleet) Changed() <-chan struct{} { return f.changed }

// Run reads all instances until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, r := range f.readers {
		wg.Go(func() { r.run(ctx) })
		wg.Go(func() { r.follow(ctx) })
	}
	wg.Wait()
	for _, r := range f.readers {
		r.Close()
	}
}

// Snapshot returns the current facts.
func (f *Fleet) Snapshot() Snapshot {
	s := Snapshot{At: time.Now()}
	for _, r := range f.readers {
		s.Instances = append(s.Instances, r.instance())
	}
	return s
}

// Past reads the last 15 minutes of a container from all instances that answer.
func (f *Fleet) Past(ctx context.Context, container string) {
	var wg sync.WaitGroup
	for _, r := range f.readers {
		wg.Go(func() {
			var past history.Series
			if r.Call(ctx, http.MethodGet, "/api/containers/"+url.PathEscape(container)+"/history", nil, &past) == nil {
				past.Container = container
				r.notePast([]history.Series{past})
			}
		})
	}
	wg.Wait()
}

// Names returns the names of the instances.
func (f *Fleet) Names() []string {
	var names []string
	for _, r := range f.readers {
		names = append(names, r.target.Name)
	}
	return names
}

// Call asks an instance, as [Client.Call] does.
func (f *Fleet) Call(ctx context.Context, instance, method, path string, body, v any) error {
	for _, r := range f.readers {
		if r.target.Name == instance {
			return r.Call(ctx, method, path, body, v)
		}
	}
	return unknown(instance)
}

// Forward sends a request to an instance as it is, with the token of that instance, and
// returns the response, whose body the caller closes.
func (f *Fleet) Forward(ctx context.Context, instance string, req Request) (*http.Response, error) {
	for _, r := range f.readers {
		if r.target.Name == instance {
			return r.Send(ctx, req)
		}
	}
	return nil, unknown(instance)
}
