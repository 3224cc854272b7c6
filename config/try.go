package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport"
)

// graceReserve is what the process needs beyond the bound of its stop, to hear of it
// and to end.
const graceReserve = 5 * time.Second

// trial makes everything of a configuration once, to find mistakes that only the
// constructors know. It is over before Load returns the Config.
type trial struct {
	loader *loader            // where mistakes are reported
	made   *Config            // what it fills in
	told   map[string][]error // by broker: what was reported about it, and is not repeated for each user
}

// try makes everything once, with a handler that is never called, so that what the
// constructors refuse is reported like any other mistake.
func (t *trial) try() {
	l := t.loader
	for _, name := range slices.Sorted(maps.Keys(l.file.Brokers)) {
		t.tryBroker(name, l.file.Brokers[name])
	}
	parts, owners := map[string]part{}, map[string]string{}
	for _, name := range l.order {
		s := l.file.Containers[name]
		if _, twice := parts[name]; s == nil || twice {
			continue
		}
		l.ownNames(name, s, owners)
		if made, ok := t.trySection(name, s); ok {
			parts[name] = made
		}
	}
	t.tryRoutes()
	t.makeMeters()
	t.tryAdmin()
	t.tryStop(parts)
}

// tryBroker makes a broker without connecting, to find what only its package can check.
func (t *trial) tryBroker(name string, s *brokerSection) {
	l, path := t.loader, joinAll("brokers", name)
	b, err := l.broker(s, t.made.sources.memory)
	t.made.sources.brokers[name] = b
	if check, ok := b.source().(transport.Checker); ok {
		err = errors.Join(err, check.Check())
	}
	l.blame(path, join(path, "url"), err)
	t.told[name] = problem.Split(err)
}

// unlessTold leaves out what was reported about the broker itself.
func (t *trial) unlessTold(broker string, err error) error {
	return errors.Join(newMistakes(err, t.told[broker])...)
}

// stub is the handler of containers that are made to be looked at.
type stub struct{}

func (stub) Handle(context.Context, *longshore.Delivery) error        { return nil }
func (stub) HandleBatch(context.Context, []*longshore.Delivery) error { return nil }

// trySection makes what a section of containers says.
func (t *trial) trySection(name string, s *containerSection) (p part, ok bool) {
	path := joinAll("containers", name)
	t.loader.goTogether(path, s)
	if s.isGroup() {
		return t.tryGroup(name, s)
	}
	made := t.tryContainer(name, s, placed{path, join(path, "source"), path})
	return part{component: made}, made != nil
}

// tryContainer makes a container with a handler that does nothing: the checks of the container and of
// its transport are those that a start runs.
func (t *trial) tryContainer(name string, s *containerSection, in placed) lifecycle.Component {
	l, path, at := t.loader, in.path, in.source
	if s.Source == nil {
		if !l.broken[at] && !l.broken[path] && !l.broken[join(path, "sources")] {
			l.report(l.spotOf(l.at[path].key), Problem{Code: CodeMissing, Path: at, Text: "container `" + name + "` has no source",
				Hint: "add source: \"amqp://localhost/?queue=" + name + "\", or a mapping with broker"})
		}
		s.Source = &sourceSection{}
	}
	complete := l.needs(at, s.Source)
	said := s.Source
	if !complete { // look at the rest
		said = said.filled(name)
	}
	src, err := t.made.sources.source(said)
	err = t.checked(said, src, err)
	l.blame(at, at, err)
	useless := src == nil || !complete || err != nil || len(t.told[s.Source.Broker]) > 0
	if useless {
		src = t.made.sources.instead(name, said, src)
	}
	t.tryVia(path, s)
	cfg := t.made.settings(name, s)
	cfg.Logger = zap.NewNop()
	if cfg.Middleware, err = s.chain(nil, cfg.Logger); err != nil {
		l.blame(join(path, "breaker"), join(path, "breaker"), err)
	}
	made, err := makeContainer(src, stub{}, cfg, s.Batch != nil)
	l.blame(in.base, path, err)
	if err != nil { // how long it takes to stop does not depend on the rest
		made, err = container.New(t.made.sources.instead(name, &sourceSection{}, nil), stub{}, container.Config{Name: name, DrainTimeout: s.DrainTimeout, CancelGrace: s.CancelGrace, Logger: zap.NewNop()})
	}
	if err != nil {
		return nil
	}
	return made
}

// checked is all that is wrong with a source, but what was told of its broker.
func (t *trial) checked(s *sourceSection, src transport.Source, err error) error {
	if err != nil && s.URL != "" {
		err = errors.Join(err, t.made.sources.behind(s, err))
	}
	if check, ok := src.(transport.Checker); ok && err == nil {
		err = check.Check()
		if err != nil && t.loader.broken[joinAll("brokers", s.Broker, "url")] {
			return nil // reported about the broker
		}
	}
	return t.unlessTold(s.Broker, err)
}

// makeContainer makes a container for single messages or for batches, as the file says; the handler
// has to be of that kind.
func makeContainer(src transport.Source, h longshore.Handler, cfg container.Config, batch bool) (*container.ListenerContainer, error) {
	if !batch {
		return container.New(src, h, cfg)
	}
	if b, ok := h.(longshore.BatchHandler); ok {
		return container.NewBatch(src, b.HandleBatch, cfg)
	}
	return nil, noBatch(cfg.Name)
}

// noBatch is the error about a handler of single messages for a container of batches.
func noBatch(name string) error {
	return &longshore.Error{Code: longshore.CodeConfig, Op: "container \"" + name + "\"", Source: name,
		Err: errors.New("its configuration has a batch, and its handler takes single messages"), Hint: "make the handler with config.Batch, or leave batch out"}
}

// brokenBelow keeps a first mistake from being reported again by its consequences.
func (rp *reporter) brokenBelow(path string) bool {
	for p := range rp.broken {
		if p == path || strings.HasPrefix(p, path+sep) {
			return true
		}
	}
	return false
}

// tryAdmin makes the admin API without listening.
func (t *trial) tryAdmin() {
	if t.loader.file.Admin == nil {
		return
	}
	s := t.loader.file.Admin
	if s.TLS != nil {
		_, err := t.loader.adminTLS(s)
		t.loader.blame("admin", joinAll("admin", "tls"), err)
	}
	_, err := admin.New(s.settings(nil, nil))
	t.loader.blame("admin", joinAll("admin", "listen"), err)
	t.tryTokens(joinAll("admin", "operators"), s.Operators)
	t.tryTokens(joinAll("admin", "viewers"), s.Viewers)
}

// tryTokens refuses tokens that the admin API would refuse at its start. One that cannot
// be read here was reported as such.
func (t *trial) tryTokens(path string, tokens map[string]secret) {
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		at := join(path, name)
		if token, err := tokens[name].Get(context.Background()); err == nil && len(token) < admin.MinToken {
			t.loader.report(t.loader.place(at), Problem{Code: CodeOutOfRange, Path: at, Text: fmt.Sprintf("the token of %s is shorter than %d characters", name, admin.MinToken),
				Hint: "generate one: openssl rand -hex 16"})
		}
	}
}

// settings are those of the admin API. Tokens stay references, so that changed ones are used
// without a restart.
func (s *adminSection) settings(cs []*container.ListenerContainer, metrics http.Handler) admin.Config {
	secrets := func(from map[string]secret) map[string]transport.Secret {
		to := map[string]transport.Secret{}
		for name, s := range from {
			to[name] = s.Secret
		}
		return to
	}
	return admin.Config{Addr: s.Listen, Containers: cs, Operators: secrets(s.Operators), Viewers: secrets(s.Viewers), Hosts: s.Hosts, TokenFile: s.TokenFile, Metrics: metrics}
}

// tryStop finds the bound of the stop.
func (t *trial) tryStop(parts map[string]part) {
	l := t.loader
	var all []lifecycle.Component
	for _, p := range parts {
		all = append(all, p.components()...)
	}
	if l.file.Admin != nil {
		all = append(all, lifecycle.Hook("admin", lifecycle.PhaseAdmin, nil, nil))
	}
	if len(t.made.vias) > 0 || t.made.meters != nil && t.made.meters.otlp != nil {
		all = append(all, lifecycle.Hook("shared", lifecycle.PhasePublishers, nil, nil))
	}
	t.made.slowest = slowestStop(parts)
	need := lifecycle.Budget(all...)
	const least = 25 * time.Second // what lifecycle.Config has without a word
	if t.made.stop = l.file.Lifecycle.StopTimeout; t.made.stop == 0 {
		t.made.stop = max(need, least)
	}
	if t.made.stop < need {
		l.report(l.place(joinAll("lifecycle", "stop_timeout")), Problem{Code: longshore.CodeDrainBudget, Path: joinAll("lifecycle", "stop_timeout"),
			Text: "stop_timeout is " + t.made.stop.String() + ", and the containers may take " + t.made.slowest.String() + " to drain",
			Hint: "set it to " + need.String() + " or more, leave it out, or lower drain_timeout"})
	}
}

// slowestStop is the longest stop of all components, from which the grace of the process follows.
func slowestStop(parts map[string]part) time.Duration {
	var most time.Duration
	for _, p := range parts {
		var whole time.Duration
		for _, c := range p.components() {
			if b, ok := c.(lifecycle.Budgeter); ok {
				whole += b.StopBudget()
			}
		}
		most = max(most, whole)
	}
	return most
}
