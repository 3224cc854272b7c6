package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// Group is one container for each of several sources, all made from one configuration: one
// handler, the same middlewares and the same limits. Each can be started, stopped, paused and
// inspected by its name while the others go on, and all of them at once. It is a component of
// package lifecycle. All methods are safe for concurrent use.
type Group struct {
	name  string               // Config.Name, else the names of all
	all   []*ListenerContainer // in the order of the sources
	step  time.Duration        // of each step of a stop in two steps; 0: it has one
	grace time.Duration        // the longest of the containers
	clock longshore.Clock      // of the steps

	mu     sync.Mutex // guards what follows
	ending *groupStop // a stop in two steps that has begun; nil: none has
	report string     // how the last step went
}

// GroupConfig is how a group works.
type GroupConfig struct {
	// Config is that of each container. Its Name, if there is one, goes before the names of
	// the sources. Workers, Lookahead and MaxBytes count for each source; Throttle is one limit
	// for all of them together.
	Config
	// TwoSteps stops in two steps: Stop waits DrainTimeout for handlers and returns, whoever
	// still runs, and Destroy waits for the rest. Handlers are cancelled, as CancelGrace says,
	// twice DrainTimeout after Stop began, whenever Destroy is called. Between the two others
	// can stop. Both steps report what still runs.
	TwoSteps bool
	// Each changes the configuration of one source, whose name and copy it gets: DeadLetter,
	// Workers, Name. With TwoSteps DrainTimeout is the same for all.
	Each func(source string, cfg *Config)
}

// NewGroup makes a container for each source. Errors are those of [New], for all sources.
func NewGroup(h longshore.Handler, cfg GroupConfig, sources ...transport.Source) (*Group, error) {
	return newGroup(cfg, sources, func(src transport.Source, each Config) (*ListenerContainer, error) { return New(src, h, each) })
}

// NewBatchGroup is NewGroup for a handler of several deliveries at once, which are all of one
// source.
func NewBatchGroup(h longshore.BatchHandlerFunc, cfg GroupConfig, sources ...transport.Source) (*Group, error) {
	return newGroup(cfg, sources, func(src transport.Source, each Config) (*ListenerContainer, error) { return NewBatch(src, h, each) })
}

func newGroup(cfg GroupConfig, sources []transport.Source, one func(transport.Source, Config) (*ListenerContainer, error)) (*Group, error) {
	l := &problem.List{Op: "make a group of containers", Source: cfg.Name}
	if len(sources) == 0 {
		l.Add(problem.Bad("sources", "name at least one", "are missing").OfKind(problem.Missing))
	}
	if cfg.TwoSteps && cfg.DrainTimeout == -1 {
		l.Conflict("TwoSteps", nil, "a {DrainTimeout} of 0{? (-1)}", "neither step would wait", "leave {TwoSteps} out, or {DrainTimeout}")
	}
	g, seen := &Group{name: cfg.Name}, map[string]bool{}
	for _, src := range sources {
		c, err := one(src, cfg.of(src))
		if err != nil {
			l.Join(err)
			continue
		}
		short := strings.TrimPrefix(c.Name(), g.name+"/") // Container finds it by that, too
		if seen[short] {
			l.Bad("sources", "give them names of their own by {Each}, or groups of their own", "have %q twice", c.Name())
		}
		seen[short] = true
		g.all = append(g.all, c)
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	g.clock = g.all[0].set.clock
	for _, c := range g.all {
		g.grace = max(g.grace, c.set.grace)
	}
	if cfg.TwoSteps {
		g.step = g.all[0].set.drain / 2
	}
	if g.name == "" {
		g.name = strings.Join(g.Names(), ",")
	}
	return g, nil
}

// of is the configuration of the container of a source.
func (cfg GroupConfig) of(src transport.Source) Config {
	each, name := cfg.Config, described(src).Name
	each.Name = name
	if cfg.Name != "" {
		each.Name = cfg.Name + "/" + name
	}
	if cfg.Each != nil {
		cfg.Each(name, &each)
	}
	if cfg.TwoSteps {
		each.DrainTimeout = cfg.DrainTimeout
		if cfg.DrainTimeout >= 0 { // others are refused
			each.DrainTimeout = 2 * cmp.Or(cfg.DrainTimeout, defaultDrain)
		}
	}
	return each
}

// Name returns GroupConfig.Name, or the names of the containers.
func (g *Group) Name() string { return g.name }

// Names returns the names of the containers: GroupConfig.Name and the name of the source with
// a slash between, or the name of the source, or what GroupConfig.Each has made of it.
func (g *Group) Names() []string {
	names := make([]string, len(g.all))
	for i, c := range g.all {
		names[i] = c.Name()
	}
	return names
}

// Containers returns all of them, for the admin API, telemetry and tests.
func (g *Group) Containers() []*ListenerContainer { return slices.Clone(g.all) }

// Container returns the one of a name as Names has it, with or without GroupConfig.Name and the
// slash before it. A source that Each has given another name is found by that one only.
func (g *Group) Container(name string) (*ListenerContainer, error) {
	for _, c := range g.all {
		if own := c.Name(); own == name || strings.TrimPrefix(own, g.name+"/") == name {
			return c, nil
		}
	}
	return nil, &longshore.Error{Code: longshore.CodeNotFound, Op: fmt.Sprintf("find %q in group %q", name, g.name), Source: name,
		Err: errors.New("the group has no such source"), Hint: "it has " + strings.Join(g.Names(), ", ")}
}

// StartSource starts the container of one source.
func (g *Group) StartSource(ctx context.Context, name string) error {
	c, err := g.Container(name)
	if err != nil {
		return err
	}
	return c.Start(ctx)
}

// StopSource drains the container of one source, in one step; the others go on.
func (g *Group) StopSource(ctx context.Context, name string) error {
	c, err := g.Container(name)
	if err != nil {
		return err
	}
	return c.Stop(ctx)
}

// PauseSource pauses one source.
func (g *Group) PauseSource(name string) error { return g.with(name, (*ListenerContainer).Pause) }

// ResumeSource ends a pause of one source.
func (g *Group) ResumeSource(name string) error { return g.with(name, (*ListenerContainer).Resume) }

// Stats returns the numbers of one source.
func (g *Group) Stats(name string) (s Stats, err error) {
	err = g.with(name, func(c *ListenerContainer) { s = c.Stats() })
	return s, err
}

func (g *Group) with(name string, f func(*ListenerContainer)) error {
	c, err := g.Container(name)
	if err == nil {
		f(c)
	}
	return err
}

// Pause pauses all of them.
func (g *Group) Pause() {
	for _, c := range g.all {
		c.Pause()
	}
}

// Resume ends all pauses.
func (g *Group) Resume() {
	for _, c := range g.all {
		c.Resume()
	}
}

// Start starts all of them at once. If one fails, those that were started are stopped again.
func (g *Group) Start(ctx context.Context) error {
	ran := map[*ListenerContainer]bool{} // before; one that drains is started again
	for _, c := range g.all {
		s := c.State()
		ran[c] = s != StateStopped && s != StateNew && s != StateDraining
	}
	err := g.each(func(c *ListenerContainer) error { return c.Start(ctx) })
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.grace)
		defer cancel()
		return errors.Join(err, g.each(func(c *ListenerContainer) error {
			if ran[c] {
				return nil
			}
			return c.Stop(stop)
		}))
	}
	g.locked(func() { g.ending, g.report = nil, "" })
	return nil
}

// each calls all of them at once.
func (g *Group) each(f func(*ListenerContainer) error) error {
	errs := make([]error, len(g.all))
	var wg sync.WaitGroup
	for i, c := range g.all {
		wg.Go(func() { errs[i] = f(c) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (g *Group) locked(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// StopBudget is the longest time that Stop takes: DrainTimeout, and CancelGrace unless the
// stop has two steps.
func (g *Group) StopBudget() time.Duration {
	if g.step > 0 {
		return g.step
	}
	var most time.Duration
	for _, c := range g.all {
		most = max(most, c.StopBudget())
	}
	return most
}

// DrainReport says in one line how the last step of the stop went.
func (g *Group) DrainReport() (report string) {
	g.locked(func() { report = g.report })
	return report
}

// DeadLetterRoutes implements lifecycle.DeadLetterRouters: each source has its own.
func (g *Group) DeadLetterRoutes(each func(name string, from []string, to string)) {
	for _, c := range g.all {
		from, to := c.DeadLetterRoute()
		each(c.Name(), from, to)
	}
}
