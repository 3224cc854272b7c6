package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/middleware/throttle"
)

// Handlers are handlers by the names of their containers in the file.
type Handlers map[string]longshore.Handler

// Code is what a file cannot say, for all containers that are built with it. The zero
// value adds nothing.
type Code struct {
	// Middleware goes inside the file's, around its timeout.
	Middleware []longshore.Middleware
	// Logger is for containers and the lifecycle; a container's log_level can only
	// make it quieter. nil: warnings and errors on stderr, or what log_level says.
	Logger *zap.Logger
	// Outboxes are shown by the telemetry section's metrics, by these names: backlog, parked
	// rows and the age of the oldest one. Their relays start and stop as components.
	Outboxes map[string]*mutex.Outbox
	// Mutexes and Fleets are shown there too: what became of a mutex's looks at its rows,
	// for how long throttle directives could not be read.
	Mutexes map[string]*mutex.Mutex
	Fleets  map[string]*throttle.Fleet
	// Adjust may change what the file says of a container, as the last one: Classify,
	// OnEvent, an order by a function.
	Adjust func(name string, c *container.Config)
}

// Batch makes a handler of a function for batches, for containers with a batch
// section. In one without it gets batches of one.
func Batch(f func(ctx context.Context, ds []*longshore.Delivery) error) longshore.Handler {
	return batch(f)
}

// batch is a handler of batches that can stand among the Handlers, which are of single messages: Handle
// calls it with a batch of one.
type batch func(ctx context.Context, ds []*longshore.Delivery) error

func (b batch) HandleBatch(ctx context.Context, ds []*longshore.Delivery) error { return b(ctx, ds) }

func (b batch) Handle(ctx context.Context, d *longshore.Delivery) error {
	err := b(ctx, []*longshore.Delivery{d})
	var each longshore.BatchError
	if errors.As(err, &each) {
		return each[0]
	}
	return err
}

// Settings are the container.Config that the file and code make for a container. What
// [Config.Shared] has is to run with it.
func (c *Config) Settings(name string, code Code) (container.Config, error) {
	s, err := c.find(name)
	if err != nil {
		return container.Config{}, err
	}
	cfg, err := c.settingsOf(name, s, code)
	if err == nil && code.Adjust != nil {
		code.Adjust(name, &cfg)
	}
	return cfg, err
}

// settingsOf are those of the file and the code, without what Adjust says.
func (c *Config) settingsOf(name string, s *containerSection, code Code) (container.Config, error) {
	cfg := c.settings(name, s)
	cfg.Logger = s.logger(code.Logger)
	chain, err := s.chain(code.Middleware, cfg.Logger)
	if err != nil {
		return container.Config{}, err
	}
	at, err := c.meters.use(code.Logger)
	if err != nil {
		return container.Config{}, err
	}
	cfg.Middleware = append(slices.Clone(at.middlewares), chain...)
	return cfg, nil
}

// Container makes one container. Each call makes another one, with limits and breaker
// of its own. With dead_letter.via, or telemetry that is sent, the components of
// [Config.Shared] start and stop with it.
func (c *Config) Container(name string, h longshore.Handler, code Code) (*container.ListenerContainer, error) {
	s, err := c.find(name)
	if err != nil {
		return nil, err
	}
	src, err := c.sources.source(s.Source)
	if err != nil {
		return nil, err
	}
	cfg, err := c.Settings(name, code)
	if err != nil {
		return nil, err
	}
	return makeContainer(src, h, cfg, s.Batch != nil)
}

// Containers makes all containers, in the order of the file, one for each source. The error
// joins what is wrong with each, a container without a handler and a handler without a
// container. Where sources share a container in the file, [Config.Components] stops them
// together.
func (c *Config) Containers(handlers Handlers, code Code) ([]*container.ListenerContainer, error) {
	_, made, err := c.parts(handlers, code)
	return made, err
}

// parts makes what the sections say, and all containers in them.
func (c *Config) parts(handlers Handlers, code Code) ([]part, []*container.ListenerContainer, error) {
	var parts []part
	var made []*container.ListenerContainer
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		if _, ok := c.loader.file.Containers[name]; !ok {
			errs = append(errs, c.noContainer(name))
		}
	}
	for _, name := range c.loader.order {
		h := handlers[name]
		if h == nil {
			e := &longshore.Error{Code: CodeMissing, Op: "configuration " + c.loader.name, Source: name, Err: fmt.Errorf("container %q has no handler", name),
				Hint: fmt.Sprintf("give one: config.Handlers{%q: …}, or take the container out of the file", name)}
			errs = append(errs, e)
			continue
		}
		one, err := c.partOf(name, h, code)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		parts, made = append(parts, one), append(made, one.containers...)
	}
	if err := errors.Join(append(errs, container.DeadLetterCycle(made...))...); err != nil {
		return nil, nil, err
	}
	return parts, made, nil
}

// Components makes the containers and, where the file has an admin section, the admin
// API with them in it: for lifecycle.New, with c.Lifecycle().
func (c *Config) Components(handlers Handlers, code Code) ([]lifecycle.Component, error) {
	sections, made, err := c.parts(handlers, code)
	if err != nil {
		return nil, err
	}
	var parts []lifecycle.Component
	for _, one := range sections {
		parts = append(parts, one.components()...)
	}
	shared, err := c.shared(made, code)
	if err != nil {
		return nil, err
	}
	parts = append(parts, shared...)
	if s := c.loader.file.Admin; s != nil {
		cfg := s.settings(made, c.meters.handler())
		cfg.Logger = code.Logger
		if cfg.TLS, err = c.loader.adminTLS(s); err != nil {
			return nil, err
		}
		a, err := admin.New(cfg)
		if err != nil {
			return nil, err
		}
		parts = append(parts, a)
	}
	return parts, nil
}

// Manager makes everything that the file says, and what else is to start and stop with
// it: database pools, publishers, relays. [lifecycle.Manager.Main] runs it. Where the
// file has no stop_timeout, the others' time is added to it.
func (c *Config) Manager(handlers Handlers, code Code, others ...lifecycle.Component) (*lifecycle.Manager, error) {
	parts, err := c.Components(handlers, code)
	if err != nil {
		return nil, err
	}
	parts = append(parts, others...)
	cfg := c.Lifecycle()
	cfg.Logger = code.Logger
	return lifecycle.New(cfg, parts...)
}
