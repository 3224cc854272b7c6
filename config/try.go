package config

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// graceReserve is what the process needs beyond the bound of its stop, to hear of it
// and to end.
const graceReserve = 5 * time.Second

// try makes everything once, with a handler that is never called, so that what the
// constructors refuse is told like any other mistake.
func (c *Config) try() {
	l := c.loader
	for _, name := range slices.Sorted(maps.Keys(l.file.Brokers)) {
		c.tryBroker(name, l.file.Brokers[name])
	}
	parts := map[string]lifecycle.Component{}
	for _, name := range l.order {
		s := l.file.Containers[name]
		if s == nil || parts[name] != nil {
			continue
		}
		if made := c.tryContainer(name, s); made != nil {
			parts[name] = made
		}
	}
	c.makeMeters()
	c.tryAdmin()
	c.tryStop(parts)
}

func (c *Config) tryBroker(name string, s *brokerSection) {
	l, path := c.loader, joinAll("brokers", name)
	b, err := l.broker(s, c.memory)
	c.brokers[name] = b
	if src := b.source(); err == nil && src != nil {
		if check, ok := src.(transport.Checker); ok {
			err = check.Check()
		}
	}
	l.blame(path, join(path, "url"), err)
	c.told[name] = flatten(err)
}

// unlessTold leaves out what was told of the broker itself.
func (c *Config) unlessTold(broker string, err error) error {
	var rest []error
	for _, e := range flatten(err) {
		if !slices.ContainsFunc(c.told[broker], func(told error) bool { return told.Error() == e.Error() }) {
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

// standIn takes the place of a source that cannot be used, so that everything else of its
// container is looked at too.
type standIn struct {
	transport.Source
	transport.Outlet
	real transport.Fitter
}

func instead(name string, src transport.Source) standIn {
	q := memory.New(memory.Config{}).Queue(name, memory.QueueConfig{Partitions: 1})
	outlet, _ := q.(transport.Outlet)
	fitter, _ := src.(transport.Fitter)
	return standIn{q, outlet, fitter}
}

// Fits asks the one whose place it takes.
func (s standIn) Fits(o transport.OpenOptions) error {
	if s.real == nil {
		return nil
	}
	return s.real.Fits(o)
}

// stub is the handler of containers that are made to be looked at.
type stub struct{}

func (stub) Handle(context.Context, *longshore.Delivery) error        { return nil }
func (stub) HandleBatch(context.Context, []*longshore.Delivery) error { return nil }

func (c *Config) tryContainer(name string, s *containerSection) lifecycle.Component {
	l, path := c.loader, joinAll("containers", name)
	at := join(path, "source")
	if s.Source == nil {
		if !l.broken[at] && !l.broken[path] {
			l.report(l.spotOf(l.at[path].key), Problem{Code: CodeMissing, Path: at, Text: "container `" + name + "` has no source",
				Hint: "add source: \"amqp://localhost/?queue=" + name + "\", or a mapping with broker"})
		}
		s.Source = &sourceSection{}
	}
	complete := l.needs(at, s.Source)
	src, err := c.source(s.Source)
	if !complete {
		src = nil
	}
	if check, ok := src.(transport.Checker); ok && err == nil {
		err = check.Check()
		if err != nil && l.broken[joinAll("brokers", s.Source.Broker, "url")] {
			err = nil // told of the broker
			src = nil
		}
	}
	err = c.unlessTold(s.Source.Broker, err)
	l.blame(at, at, err)
	l.goTogether(path, s)
	useless := src == nil || err != nil || len(c.told[s.Source.Broker]) > 0
	if useless {
		src = instead(name, src)
	}
	cfg := s.settings(name)
	cfg.Logger = zap.NewNop()
	if cfg.Middleware, err = s.chain(nil, cfg.Logger); err != nil {
		l.blame(join(path, "breaker"), join(path, "breaker"), err)
	}
	made, err := makeContainer(src, stub{}, cfg, s.Batch != nil)
	l.blame(path, path, err)
	if useless || err != nil {
		return nil
	}
	return made
}

func makeContainer(src transport.Source, h longshore.Handler, cfg container.Config, batch bool) (*container.ListenerContainer, error) {
	if !batch {
		return container.New(src, h, cfg)
	}
	if b, ok := h.(longshore.BatchHandler); ok {
		return container.NewBatch(src, b.HandleBatch, cfg)
	}
	return nil, &longshore.Error{Code: longshore.CodeConfig, Op: "container \"" + cfg.Name + "\"", Source: cfg.Name,
		Err: errors.New("its configuration has a batch, and its handler takes single messages"), Hint: "make the handler with config.Batch, or leave batch out"}
}

// needs finds what a source mapping does not say; complete is that it lacks nothing.
func (l *loader) needs(path string, s *sourceSection) (complete bool) {
	b := l.file.Brokers[s.Broker]
	if s.URL != "" || b == nil {
		return true
	}
	complete = true
	missing := func(key, text, hint string) {
		complete = false
		if !l.broken[join(path, key)] {
			l.report(l.place(path), Problem{Code: CodeMissing, Path: join(path, key), Text: text, Hint: hint})
		}
	}
	switch kind := kindOf(b.URL); kind {
	case onKafka:
		l.aloneWithBroadcast(path, s)
		if s.Group == "" && !s.Broadcast {
			missing("group", "source has no consumer group", "add group: NAME; offsets are committed under it")
		}
		if len(s.Topics) == 0 {
			missing("topics", "source has no topics", "add topics: [NAME]")
		}
		if s.Declare != nil && s.Declare.Partitions == 0 {
			missing("declare", "declare says no partitions", "add partitions: 12, or leave declare out if the topics exist")
		}
	case "":
	default:
		if s.Queue == "" {
			missing("queue", "source has no queue", "add queue: NAME")
		}
		if d := s.Declare; kind == onRabbit && d != nil && d.Type == "" && len(d.Bindings) == 0 && len(d.Arguments) == 0 && !d.Transient && !d.AutoDelete {
			missing("declare", "declare says nothing", "add type: quorum, or leave declare out if the queue exists")
		}
	}
	return complete
}

// aloneWithBroadcast finds what belongs to a group and is said of a broadcast, which has
// none; code cannot say it.
func (l *loader) aloneWithBroadcast(path string, s *sourceSection) {
	if !s.Broadcast {
		return
	}
	for _, key := range []string{"group", "protocol", "instance_id", "pattern", "settle_linger", "rebalance_drain", "rebalance_timeout", "session_timeout"} {
		if e, ok := l.at[join(path, key)]; ok {
			l.report(l.spotOfEntry(e), Problem{Code: CodeOutOfRange, Path: join(path, key), Text: key + " does not go with broadcast: everybody reads everything, without a group",
				Hint: "leave " + key + " out, or broadcast"})
		}
	}
}

// goTogether finds settings that exclude each other and that code cannot say.
func (l *loader) goTogether(path string, s *containerSection) {
	if d := s.DeadLetter; d != nil && d.To == "" && d.Policy == "" && !l.brokenBelow(join(path, "dead_letter")) {
		l.report(l.place(join(path, "dead_letter")), Problem{Code: CodeMissing, Path: join(path, "dead_letter"), Text: "dead_letter says nothing",
			Hint: "add to: NAME, or policy: native, keep or discard"})
	}
	if s.Throttle == nil {
		return
	}
	at := join(path, "throttle")
	if r := s.Throttle.Rate; r != nil && *r < 0 {
		l.report(l.place(join(at, "rate")), Problem{Code: CodeOutOfRange, Path: join(at, "rate"), Text: "throttle.rate is negative", Hint: "0 holds everything; leave it out for no limit"})
	}
	k := s.Throttle.PerKey
	if k == nil || l.brokenBelow(join(at, "per_key")) {
		return
	}
	if (k.Permits == nil) == (k.Rate == nil) {
		l.report(l.place(join(at, "per_key")), Problem{Code: CodeMissing, Path: join(at, "per_key"), Text: "throttle.per_key has not one of permits and rate", Hint: "give one of the two"})
	}
}

func (l *loader) brokenBelow(path string) bool {
	for p := range l.broken {
		if p == path || strings.HasPrefix(p, path+sep) {
			return true
		}
	}
	return false
}

func (c *Config) tryAdmin() {
	if c.loader.file.Admin == nil {
		return
	}
	_, err := admin.New(c.loader.file.Admin.settings(nil, nil))
	c.loader.blame("admin", joinAll("admin", "listen"), err)
}

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
func (c *Config) tryStop(parts map[string]lifecycle.Component) {
	l := c.loader
	all := slices.Collect(maps.Values(parts))
	if l.file.Admin != nil {
		all = append(all, lifecycle.Hook("admin", lifecycle.PhaseAdmin, nil, nil))
	}
	need := lifecycle.Budget(all...)
	const least = 25 * time.Second // what lifecycle.Config has without a word
	if c.stop = l.file.Lifecycle.StopTimeout; c.stop == 0 {
		c.stop = max(need, least)
	}
	if c.stop < need {
		l.report(l.place(joinAll("lifecycle", "stop_timeout")), Problem{Code: longshore.CodeDrainBudget, Path: joinAll("lifecycle", "stop_timeout"),
			Text: "stop_timeout is " + c.stop.String() + ", and the containers may take " + c.drainOf(parts).String() + " to drain",
			Hint: "set it to " + need.String() + " or more, leave it out, or lower drain_timeout"})
	}
}

func (c *Config) drainOf(parts map[string]lifecycle.Component) time.Duration {
	var most time.Duration
	for _, p := range parts {
		if b, ok := p.(lifecycle.Budgeter); ok {
			most = max(most, b.StopBudget())
		}
	}
	return most
}
