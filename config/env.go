package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-go/longshore/internal/edit"
)

// envPrefix begins the variables that change a configuration.
const envPrefix = "LONGSHORE_"

// target is a place that a variable sets.
type target struct {
	path []string
	f    *field
}

// override puts the environment's values into the tree.
func (l *loader) override(top *yaml.Node) *yaml.Node {
	fields := fieldsOf(reflect.TypeFor[root]())
	if !l.anyVariable(envPrefix) {
		return top // the list below is long
	}
	all := map[string][]target{}
	l.targets(top, fields, nil, all)
	var set []string
	values := map[string]string{}
	for _, v := range l.Environ {
		name, value, _ := strings.Cut(v, "=")
		if len(all[name]) == 0 && fromPlatform(name, value) {
			continue
		}
		if len(all[name]) > 0 || l.ours(name, fields) || strings.HasPrefix(name, envPrefix) && nearestVariable(name, all, 2) != "" {
			set = append(set, name)
			values[name] = value
		}
	}
	// The shorter path first: a whole source, then something in it.
	slices.SortFunc(set, func(a, b string) int {
		return cmp.Or(cmp.Compare(depth(all[a]), depth(all[b])), strings.Compare(a, b))
	})
	for _, name := range slices.Compact(set) {
		switch ts := all[name]; len(ts) {
		case 0:
			l.unknownVariable(name, all, !l.ours(name, fields))
		case 1:
			top = l.put(top, ts[0], name, values[name])
		default:
			l.report(spot{env: name}, Problem{Code: CodeBadValue, Text: "it may mean " + dotted(joinAll(ts[0].path...)) + " and " + dotted(joinAll(ts[1].path...)),
				Hint: "give one of the two another name, or set it in the file"})
		}
	}
	return top
}

// depth is how deep the deepest target of a variable lies.
func depth(ts []target) int {
	if len(ts) == 0 {
		return 0
	}
	return len(ts[0].path)
}

// ours reports whether a variable can only be meant for a configuration. LONGSHORE_ADMIN,
// LONGSHORE_CONFIG and LONGSHORE_TOKEN belong to the command.
func (l *loader) ours(name string, fields []field) bool {
	for _, f := range fields {
		if strings.HasPrefix(name, variable(f.key)+"_") && f.key != "version" {
			return true
		}
	}
	return false
}

// variable is the name of the variable for a path.
func variable(path ...string) string {
	name := strings.ToUpper(strings.Join(path, "_"))
	return envPrefix + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// targets lists every variable there could be. Names, of containers and brokers, are
// those of the file.
func (l *loader) targets(n *yaml.Node, fields []field, path []string, all map[string][]target) {
	for i := range fields {
		f := &fields[i]
		p := append(slices.Clone(path), f.key)
		below := entry(n, f.key)
		if t := f.named(); t != nil {
			l.named(below, t, p, all)
			continue
		}
		if sub := f.fields(); len(sub) > 0 && f.typ.Kind() != reflect.Slice {
			l.targets(below, sub, p, all)
		}
		if l.settable(f) {
			all[variable(p...)] = append(all[variable(p...)], target{p, f})
		}
		if f.typ.Kind() == reflect.Map && f.typ.Elem() == reflect.TypeFor[secret]() {
			l.secretNames(below, p, all)
		}
	}
}

// named adds the variables of entries that have names, such as containers. The names come from the file:
// a variable can change a container, but not make one.
func (l *loader) named(n *yaml.Node, t reflect.Type, path []string, all map[string][]target) {
	if n == nil || resolved(n).Kind != yaml.MappingNode {
		return
	}
	named := pairs(resolved(n), maxAliases)
	for _, e := range named {
		p := append(slices.Clone(path), e.key.Value)
		if len(named) > manyNames && !l.anyVariable(variable(p...)) {
			continue
		}
		if t == reflect.TypeFor[sourceSection]() { // as a whole
			all[variable(p...)] = append(all[variable(p...)], target{p, &field{key: e.key.Value, typ: reflect.TypeFor[*sourceSection]()}})
		}
		l.targets(e.value, fieldsOf(t), p, all)
	}
}

// manyNames is beyond how many containers only those are looked at that a variable names:
// each has hundreds. The price is that a variable with a misspelt name gets no suggestion.
const manyNames = 100

// anyVariable reports whether any variable begins so. In a file with many containers only those are
// looked at.
func (on *surroundings) anyVariable(prefix string) bool {
	return slices.ContainsFunc(on.Environ, func(v string) bool { return strings.HasPrefix(v, prefix) })
}

// secretNames adds the variables of secrets whose keys are names from the file, as a header's is.
func (l *loader) secretNames(n *yaml.Node, path []string, all map[string][]target) {
	if n == nil || resolved(n).Kind != yaml.MappingNode {
		return
	}
	for _, e := range pairs(resolved(n), maxAliases) {
		p := append(slices.Clone(path), e.key.Value)
		all[variable(p...)] = append(all[variable(p...)], target{p, &field{key: e.key.Value, typ: reflect.TypeFor[secret]()}})
	}
}

// settable: values, lists of values, and a source as a whole.
func (l *loader) settable(f *field) bool {
	switch {
	case f.typ == reflect.TypeFor[*sourceSection]():
		return true
	case f.typ.Kind() == reflect.Map, sectionOf(f.typ) != nil:
		return false
	case f.typ.Kind() == reflect.Slice:
		return f.typ.Elem().Kind() == reflect.String
	}
	return true
}

// put sets a value in a copy of the tree. The value is never read as YAML: what looks
// like a number or a mapping is decided by the field.
func (l *loader) put(top *yaml.Node, t target, name, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	l.env[n] = name
	path := t.path
	if value == "" {
		l.report(spot{env: name}, Problem{Code: CodeMissing, Path: joinAll(path...), Text: "it is empty", Hint: "unset it, or give it a value"})
		return top
	}
	var set func(m *yaml.Node, path []string) *yaml.Node
	set = func(m *yaml.Node, path []string) *yaml.Node {
		if len(path) == 0 {
			return n
		}
		if m == nil || isNull(resolved(m)) {
			m = &yaml.Node{Kind: yaml.MappingNode}
			l.env[m] = name
		}
		if m = resolved(m); m.Kind != yaml.MappingNode {
			if m.Kind == yaml.ScalarNode && strings.Contains(m.Value, "://") {
				l.report(spot{env: name}, Problem{Code: CodeBadValue, Path: joinAll(t.path...), Text: "the source is one URL, which has no " + path[0],
					Hint: "set " + variable(t.path[:len(t.path)-len(path)]...) + ", or write the source as a mapping"})
			}
			return m // else what is wrong with it is reported elsewhere
		}
		copied, env := flat(m), l.env[m]
		if l.env[copied] = env; env == "" {
			delete(l.env, copied)
		}
		for i := 0; i < len(copied.Content); i += 2 {
			if copied.Content[i].Value == path[0] {
				copied.Content[i+1] = set(copied.Content[i+1], path[1:])
				return copied
			}
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: path[0]}
		l.env[key] = name
		copied.Content = append(copied.Content, key, set(nil, path[1:]))
		return copied
	}
	return set(top, path)
}

// unknownVariable: one whose beginning is none of ours is only a warning; it may be
// another owner's.
func (l *loader) unknownVariable(name string, all map[string][]target, warning bool) {
	p := Problem{Code: CodeUnknownKey, Text: "this variable sets nothing", Hint: "longshore config reference lists all fields; containers and brokers are those of the file", Warning: warning}
	if best := nearestVariable(name, all, 3); best != "" {
		p.Hint = "did you mean " + best + "?"
	}
	l.report(spot{env: name}, p)
}

// nearestVariable is the known one with the fewest wrong letters, "" if none has so few.
func nearestVariable(name string, all map[string][]target, most int) string {
	best, least := "", most+1
	for known := range all {
		if d := edit.Distance(name, known); d < least || d == least && known < best {
			best, least = known, d
		}
	}
	return best
}
