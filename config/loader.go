package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// loader reads one file and keeps where everything in it came from.
type loader struct {
	Options
	name     string // of the file, for people
	dir      string // what file:PATH is relative to
	check    bool   // what depends on where it runs is a warning
	live     bool   // the environment is the process's
	lines    [][]rune
	problems []Problem
	spots    []spot
	more     int                   // problems beyond maxProblems
	hidden   map[int][]span        // by line
	broken   map[string]bool       // paths with a problem
	at       map[string]pair       // by path
	env      map[*yaml.Node]string // the variable that a node comes from
	defaults map[*yaml.Node]bool   // nodes below defaults
	order    []string              // of the containers in the file
	file     root
}

func newLoader(o Options, path string, check bool) *loader {
	live := o.Environ == nil
	if live {
		o.Environ = os.Environ()
	}
	return &loader{Options: o, live: live, name: path, dir: filepath.Dir(path), check: check, hidden: map[int][]span{}, broken: map[string]bool{},
		at: map[string]pair{}, env: map[*yaml.Node]string{}, defaults: map[*yaml.Node]bool{}}
}

// read takes the text apart. It returns false if nothing can be made of it.
func (l *loader) read(text []byte) bool {
	top := l.parse(text)
	if top == nil {
		return false
	}
	if top = resolved(top); top.Kind != yaml.MappingNode {
		if !isNull(top) {
			l.hideAll(top, maxAliases)
			l.notA("", top, "a mapping", "begin with containers:")
			return false
		}
		top = &yaml.Node{Kind: yaml.MappingNode}
	}
	top = l.override(flat(top))
	top = brokersFirst(l.withDefaults(top))
	l.section("", top, reflect.ValueOf(&l.file).Elem(), "")
	l.whole()
	return true
}

// withDefaults puts defaults below each container.
func (l *loader) withDefaults(top *yaml.Node) *yaml.Node {
	d, cs := entry(top, "defaults"), entry(top, "containers")
	if cs == nil || resolved(cs).Kind != yaml.MappingNode {
		return top
	}
	cs = flat(cs)
	for i := 1; i < len(cs.Content); i += 2 {
		l.order = append(l.order, cs.Content[i-1].Value)
		if d != nil {
			l.markDefaults(d, maxAliases)
			cs.Content[i] = under(cs.Content[i], d, fieldsOf(reflect.TypeFor[containerSection]()))
		}
	}
	l.order = slices.Compact(l.order)
	for i := 1; i < len(top.Content); i += 2 {
		if top.Content[i-1].Value == "containers" {
			top.Content[i] = cs
			break
		}
	}
	return top
}

func (l *loader) markDefaults(n *yaml.Node, depth int) {
	n = resolved(n)
	l.defaults[n] = true
	for _, c := range n.Content {
		if depth > 0 {
			l.markDefaults(c, depth-1)
		}
	}
}

// whole looks at what concerns the file as a whole.
func (l *loader) whole() {
	if v := l.file.Version; v != 0 && v != 1 {
		l.report(l.place("version"), Problem{Code: CodeUnknownValue, Path: "version", Text: "this version of the format is not known", Hint: "write version: 1"})
	}
	if d := l.file.Defaults; d != nil && d.Source != nil {
		l.report(l.spotOf(l.at[joinAll("defaults", "source")].key), Problem{Code: CodeUnknownKey, Path: joinAll("defaults", "source"),
			Text: "defaults have no source", Hint: "each container names its own"})
	}
	if len(l.file.Containers) == 0 && !l.broken["containers"] {
		l.report(l.place("containers"), Problem{Code: CodeMissing, Path: "containers", Text: "there is no container",
			Hint: "write containers: {orders: {source: \"amqp://localhost/?queue=orders\"}}"})
	}
}

// brokersFirst: what a source may say depends on its broker.
func brokersFirst(top *yaml.Node) *yaml.Node {
	for i := 0; i < len(top.Content); i += 2 {
		if top.Content[i].Value == "brokers" {
			b := slices.Clone(top.Content[i : i+2])
			top.Content = append(b, slices.Delete(slices.Clone(top.Content), i, i+2)...)
			break
		}
	}
	return top
}
