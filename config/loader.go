package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// loader reads one file: the document with its positions, what is wrong with it, and the
// sections that were decoded.
type loader struct {
	*reporter
	*surroundings
	check bool     // the check may run elsewhere than the service, so what only the service's host knows is a warning
	order []string // names of the containers, as they are in the file
	file  root     // what was decoded
}

// surroundings are the environment and the files that a configuration refers to.
type surroundings struct {
	Options
	dir  string // what file:PATH is relative to
	live bool   // the environment is the process's own, and is read again at each connect
}

// newLoader takes the environment as it is now, unless Options have one: a test or a check must not
// depend on the machine.
func newLoader(o Options, path string, check bool) *loader {
	live := o.Environ == nil
	if live {
		o.Environ = os.Environ()
	}
	doc := &document{name: path, hidden: map[int][]span{}, at: map[string]pair{}, env: map[*yaml.Node]string{}, defaults: map[*yaml.Node]bool{}}
	return &loader{reporter: &reporter{document: doc, broken: map[string]bool{}, fields: map[reflect.Type][]field{}}, surroundings: &surroundings{Options: o, live: live, dir: filepath.Dir(path)}, check: check}
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
			cs.Content[i] = under(cs.Content[i], d, l.fieldsOf(reflect.TypeFor[containerSection]()))
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

// markDefaults notes nodes that come from the section defaults, so that the origin of their values
// can be shown.
func (doc *document) markDefaults(n *yaml.Node, depth int) {
	n = resolved(n)
	doc.defaults[n] = true
	for _, c := range n.Content {
		if depth > 0 {
			doc.markDefaults(c, depth-1)
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
	if len(l.file.Containers) == 0 && len(l.file.Bridge) == 0 && !l.broken["containers"] && !l.broken["bridge"] {
		l.report(l.place("containers"), Problem{Code: CodeMissing, Path: "containers", Text: "no container",
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
