package config

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport"
)

// Shared is what containers use together and none of them owns: the publishers of
// dead_letter.via and where telemetry is sent. They outlive the containers. Who makes
// single containers, by [Config.Container], starts and stops it with them;
// [Config.Components] and its components have it already.
func (c *Config) Shared(code Code) ([]lifecycle.Component, error) { return c.shared(nil, code) }

// shared makes the components that several containers use, once for all of them: the publishers of dead
// letters on other brokers, and telemetry.
func (c *Config) shared(cs []*container.ListenerContainer, code Code) ([]lifecycle.Component, error) {
	var parts []lifecycle.Component
	for _, name := range slices.Sorted(maps.Keys(c.vias)) {
		v := c.vias[name]
		parts = append(parts, lifecycle.Hook("dead letters by "+name, lifecycle.PhasePublishers, v.start, v.Close))
	}
	t, err := c.meters.component(cs, code)
	if err != nil || t == nil {
		return parts, err
	}
	return append(parts, t), nil
}

// via publishes to another broker than the source's. It connects when it first has to.
type via struct {
	broker broker

	mu     sync.Mutex
	pub    transport.Publisher
	closed bool
}

// Publish publishes, until it is closed.
func (v *via) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	p, err := v.publisher(ctx)
	if err != nil {
		return err
	}
	return p.Publish(ctx, dest, msgs...)
}

// publisher opens the publisher of dead letters at its first use: a broker that only takes dead letters
// must not keep a container from starting.
func (v *via) publisher(ctx context.Context) (transport.Publisher, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, longshore.ErrClosed
	}
	if v.pub != nil {
		return v.pub, nil
	}
	o, ok := v.broker.named("longshore-check").(transport.Outlet)
	if !ok {
		return nil, &longshore.Error{Code: longshore.CodeUnsupported, Op: "publish dead letters", Err: errors.New("the broker of dead_letter.via has no publisher")}
	}
	p, _, err := o.Publisher(ctx)
	if err == nil {
		v.pub = p
	}
	return p, err
}

// start is there for a service that is started again.
func (v *via) start(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = false
	return nil
}

// Close waits for calls in progress.
func (v *via) Close(ctx context.Context) error {
	v.mu.Lock()
	p := v.pub
	v.pub, v.closed = nil, true
	v.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Close(ctx)
}

// elsewhere is the broker that the dead letters of a container go to, where it is not the
// source's own.
func (s *containerSection) elsewhere() string {
	if d := s.DeadLetter; d != nil && (s.Source == nil || d.Via != s.Source.Broker) {
		return d.Via
	}
	return ""
}

// tryVia finds the broker of dead_letter.via, and whether it takes the name.
func (t *trial) tryVia(path string, s *containerSection) {
	d, l := s.DeadLetter, t.loader
	if d == nil || d.Via == "" {
		return
	}
	at := joinAll(path, "dead_letter", "via")
	if _, ok := l.file.Brokers[d.Via]; !ok {
		l.noBroker(at, l.at[at].value, d.Via)
		return
	}
	b, name := t.made.sources.brokers[d.Via], s.elsewhere()
	if name == "" || b == (broker{}) { // the source's own, or its problem was reported
		return
	}
	if t.made.vias[name] == nil {
		t.made.vias[name] = &via{broker: b}
	}
	if f, ok := b.named("longshore-check").(transport.Validator); ok && d.To != "" {
		for _, e := range problem.Split(f.ValidateOpen(transport.OpenOptions{DeadLetter: d.To})) {
			l.blameOne(path, joinAll(path, "dead_letter", "to"), ", on broker "+name, e)
		}
	}
}
