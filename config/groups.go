package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// A container with several sources is a group: one container for each, CONTAINER/SOURCE by name,
// of the same settings. This file makes a section of each and a group of all.

// sourceWord stands for the name of the source in dead_letter.to.
const sourceWord = "{source}"

// isGroup reports whether the section has sources in place of a source.
func (s *containerSection) isGroup() bool { return s != nil && len(s.Sources) > 0 }

// members are the names of the containers of a section, in the order of the alphabet: its own, or
// one for each source.
func (s *containerSection) members(name string) []string {
	if !s.isGroup() {
		return []string{name}
	}
	var names []string
	for _, source := range slices.Sorted(maps.Keys(s.Sources)) {
		names = append(names, name+"/"+source)
	}
	return names
}

// member is the section of one source.
func (s *containerSection) member(source string) *containerSection {
	one := *s
	one.Source, one.Sources = s.Sources[source], nil
	if d := s.DeadLetter; d != nil {
		own := *d
		own.To = strings.ReplaceAll(d.To, sourceWord, source)
		one.DeadLetter = &own
	}
	return &one
}

// find is the section of a container, which has one source.
func (c *Config) find(name string) (*containerSection, error) {
	if s := c.loader.file.Containers[name]; s != nil {
		if !s.isGroup() {
			return s, nil
		}
		return nil, &longshore.Error{Code: CodeMissing, Op: "configuration " + c.loader.name, Source: name,
			Err: fmt.Errorf("container %q has several sources", name), Hint: "name one: " + strings.Join(s.members(name), ", ")}
	}
	// A name may have a slash of its own, so the group is looked for.
	for group, s := range c.loader.file.Containers {
		if source, ok := strings.CutPrefix(name, group+"/"); ok && s.Sources[source] != nil {
			return s.member(source), nil
		}
	}
	return nil, c.noContainer(name)
}

// Group makes the containers of a section with sources. Its second step, with two_step_stop, is
// the caller's; [Config.Components] has it.
func (c *Config) Group(name string, h longshore.Handler, code Code) (*container.Group, error) {
	s := c.loader.file.Containers[name]
	if s == nil || !s.isGroup() {
		return nil, cmp.Or(c.noGroup(name, s), c.noContainer(name))
	}
	cfg, err := c.settingsOf(name, s, code)
	if err != nil {
		return nil, err
	}
	g := container.GroupConfig{Config: cfg, TwoSteps: s.TwoStepStop}
	return c.group(name, s, h, g, func(one string, cfg *container.Config) {
		if code.Adjust != nil {
			code.Adjust(one, cfg)
		}
	})
}

// noGroup is the error about a container with one source; nil without a container.
func (c *Config) noGroup(name string, s *containerSection) error {
	if s == nil {
		return nil
	}
	return &longshore.Error{Code: CodeMissing, Op: "configuration " + c.loader.name, Source: name, Err: fmt.Errorf("container %q has one source", name), Hint: "make it by Container, or write sources: {NAME: …}"}
}

// group makes a group; adjust may change each container's settings.
func (c *Config) group(name string, s *containerSection, h longshore.Handler, cfg container.GroupConfig, adjust func(string, *container.Config)) (*container.Group, error) {
	var sources []transport.Source
	names := slices.Sorted(maps.Keys(s.Sources))
	for _, source := range names {
		src, err := c.sources.source(s.Sources[source])
		if err != nil {
			return nil, err
		}
		sources = append(sources, src)
	}
	at := 0 // Each is called in the order of the sources
	cfg.Each = func(_ string, one *container.Config) {
		source := names[at]
		at++
		one.Name = name + "/" + source
		one.DeadLetter = c.settings(one.Name, s.member(source)).DeadLetter
		adjust(one.Name, one)
	}
	if s.Batch == nil {
		return container.NewGroup(h, cfg, sources...)
	}
	b, ok := h.(longshore.BatchHandler)
	if !ok {
		return nil, noBatch(name)
	}
	return container.NewBatchGroup(b.HandleBatch, cfg, sources...)
}

// part is what a section of containers becomes: one container, or a group of them.
type part struct {
	component  lifecycle.Component
	second     lifecycle.Component // of a stop in two steps; nil: it has one
	containers []*container.ListenerContainer
}

// components are those that start and stop.
func (p part) components() []lifecycle.Component {
	if p.second == nil {
		return []lifecycle.Component{p.component}
	}
	return []lifecycle.Component{p.component, p.second}
}

// partOf makes what a section says.
func (c *Config) partOf(name string, h longshore.Handler, code Code) (part, error) {
	s := c.loader.file.Containers[name]
	if !s.isGroup() {
		one, err := c.Container(name, h, code)
		return part{component: one, containers: []*container.ListenerContainer{one}}, err
	}
	g, err := c.Group(name, h, code)
	if err != nil {
		return part{}, err
	}
	return groupPart(g, s.TwoStepStop), nil
}

// groupPart is a group with its second step, which comes behind all that stops between a
// container and a publisher.
func groupPart(g *container.Group, twoSteps bool) part {
	p := part{component: g, containers: g.Containers()}
	if twoSteps {
		p.second = g.Destroyer(lifecycle.PhaseRelays)
	}
	return p
}

// ownNames reports containers with one name: a name may have a slash, as those of a group's
// sources have. owners has the sections of those before.
func (l *loader) ownNames(name string, s *containerSection, owners map[string]string) {
	path := joinAll("containers", name)
	for _, member := range s.members(name) {
		if other, twice := owners[member]; twice && other != name {
			l.report(l.spotOf(l.at[path].key), Problem{Code: CodeDuplicateKey, Path: path,
				Text: fmt.Sprintf("container `%s` of `%s` is called like one of `%s`", member, name, other), Hint: "give one of them another name"})
		}
		owners[member] = name
	}
}

// placed is where a container is in the file: what it has in common with others, its own source,
// and what paths of problems are below.
type placed struct{ path, source, base string }

// tryGroup looks at each source with the settings of all, and at what concerns the group as a
// whole.
func (t *trial) tryGroup(name string, s *containerSection) (p part, ok bool) {
	l, path := t.loader, joinAll("containers", name)
	if s.Source != nil {
		at := join(path, "sources")
		l.report(l.spotOf(l.at[at].key), Problem{Code: CodeOutOfRange, Path: at, Text: "sources does not go with source", Hint: "keep one of the two"})
	}
	ok = true
	for _, source := range slices.Sorted(maps.Keys(s.Sources)) {
		at := joinAll(path, "sources", source)
		if in := s.Sources[source]; in.URL == "" && in.Broker == "" && !l.brokenBelow(at) {
			l.report(l.spotOf(l.at[at].key), Problem{Code: CodeMissing, Path: at, Text: "source `" + source + "` is empty",
				Hint: "write " + source + ": \"amqp://localhost/?queue=" + source + "\", or a mapping with broker"})
		}
		if t.tryContainer(name+"/"+source, s.member(source), placed{path, at, at}) == nil {
			ok = false
		}
	}
	// The group itself is made of sources that are right, so that it has mistakes of its own alone.
	var stands []transport.Source
	for _, source := range slices.Sorted(maps.Keys(s.Sources)) {
		stands = append(stands, memory.New(memory.Config{}).Queue(source, memory.QueueConfig{}))
	}
	g, err := container.NewGroup(stub{}, container.GroupConfig{TwoSteps: s.TwoStepStop, Config: container.Config{Name: name, DrainTimeout: s.DrainTimeout, CancelGrace: s.CancelGrace, Logger: zap.NewNop()}}, stands...)
	l.blame(path, path, err)
	if err != nil {
		return part{}, false
	}
	return groupPart(g, s.TwoStepStop), ok
}
