package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// value decodes a node into what belongs at a path. kind narrows sections that
// depend on the broker, "" is all.
func (l *loader) value(path string, n *yaml.Node, v reflect.Value, f *field, kind string) {
	n = resolved(n)
	switch t := v.Type(); {
	case t == reflect.TypeFor[*sourceSection]():
		l.source(path, n, v)
	case t == reflect.TypeFor[table]():
		l.table(path, n, v, f)
	// Names are the exception: "orders:" alone is a container, whose source is missing and is reported.
	case isNull(n) && f != nil && f.named() == nil && f.holds():
		l.empty(path, n, t)
	case sectionOf(t) != nil:
		if t.Kind() == reflect.Pointer {
			v.Set(reflect.New(t.Elem()))
			v = v.Elem()
		}
		l.section(path, n, v, kind)
	case t.Kind() == reflect.Map:
		l.mapping(path, n, v, f, kind)
	case t.Kind() == reflect.Slice:
		l.list(path, n, v, f, kind)
	case t.Kind() == reflect.Pointer: // a number that may be 0
		v.Set(reflect.New(t.Elem()))
		l.scalar(path, n, v.Elem(), f)
	default:
		l.scalar(path, n, v, f)
	}
}

// holds reports whether a field has others below it.
func (f *field) holds() bool {
	return sectionOf(f.typ) != nil || f.typ.Kind() == reflect.Map || f.typ.Kind() == reflect.Slice
}

// empty is a key with nothing below it: whoever wrote it meant something, and it must not
// be as if it were not there.
func (rp *reporter) empty(path string, n *yaml.Node, t reflect.Type) {
	hint := "leave it out, or write " + last(path) + ": {} for the defaults"
	if t.Kind() == reflect.Map || t.Kind() == reflect.Slice {
		hint = "leave it out, or indent what belongs to it"
	}
	at := rp.spotOf(n)
	if e, ok := rp.at[path]; ok {
		at = rp.spotOf(e.key)
	}
	rp.report(at, Problem{Code: CodeMissing, Path: path, Text: relative(path) + " has nothing below it", Hint: hint})
}

// section decodes a mapping with known keys.
func (l *loader) section(path string, n *yaml.Node, v reflect.Value, kind string) {
	if isNull(n) {
		return
	}
	fs := l.fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		l.hideAll(n, maxAliases)
		// The usual mistakes here are ones of indentation, so the hint guesses what was meant.
		hint := "its keys are " + strings.Join(keys(fs, kind), ", ")
		if name := last(path); v.Type() == reflect.TypeFor[containerSection]() && path != "defaults" {
			hint = "write " + name + ": {source: …}"
			if find(fs, name) != nil {
				hint = "`" + name + "` belongs below a container: indent it by two more blanks"
			}
		}
		if last(path) == "workers" {
			hint = "write workers: {max: 10}; " + hint
		}
		l.notA(path, n, "a mapping", hint)
		return
	}
	// The kind narrows which keys are known, so it has to be read before the keys are.
	if kind == "" && v.Type() == reflect.TypeFor[brokerSection]() {
		kind = l.kindOfBroker(path, n)
	}
	if v.Type() == reflect.TypeFor[autoscaleSection]() {
		kind = "adaptive"
		if p := entry(n, "policy"); p != nil && p.Value != "" {
			kind = p.Value
		}
	}
	l.entries(path, n, func(p string, key, value *yaml.Node) {
		f := find(fs, key.Value)
		switch {
		case f == nil:
			l.unknownKey(path, key, value, fs, kind)
		// A key of another broker is told from a typing error: the text says where it belongs.
		case !f.has(kind) && knownKind(fs, kind):
			l.hideAll(value, maxAliases)
			l.report(l.spotOf(key), Problem{Code: CodeUnknownKey, Path: p, Text: fmt.Sprintf("`%s` is for %s, this is %s", key.Value, strings.Join(f.on, " and "), kind),
				Hint: "known here: " + strings.Join(keys(fs, kind), ", ")})
		default:
			l.value(p, value, v.Field(f.index), f, kind)
		}
	})
}

// knownKind reports whether any field is bound to this kind; of a policy that is not
// known, say, nothing follows.
func knownKind(fs []field, kind string) bool {
	for i := range fs {
		if slices.Contains(fs[i].on, kind) {
			return true
		}
		if slices.Contains(fs[i].oneof, kind) {
			return true
		}
	}
	return false
}

// entries visits the keys of a mapping, each once.
func (rp *reporter) entries(path string, n *yaml.Node, visit func(path string, key, value *yaml.Node)) {
	seen := map[string]*yaml.Node{}
	for _, e := range pairs(n, maxAliases) {
		p := join(path, e.key.Value)
		if first, twice := seen[e.key.Value]; twice {
			rp.hideAll(e.value, maxAliases)
			rp.report(rp.spotOf(e.key), Problem{Code: CodeDuplicateKey, Path: p, Text: "key `" + e.key.Value + "` is there twice",
				Hint: fmt.Sprintf("the first one is in line %d; keep one of them", first.Line)})
			continue
		}
		seen[e.key.Value] = e.key
		// Later checks find the line of a value here, so it is kept also where the value is wrong.
		rp.at[p] = e
		visit(p, e.key, e.value)
	}
}

// mapping decodes names with values or sections.
func (l *loader) mapping(path string, n *yaml.Node, v reflect.Value, f *field, kind string) {
	if isNull(n) {
		return
	}
	elem := v.Type().Elem()
	if n.Kind != yaml.MappingNode {
		l.hideAll(n, maxAliases)
		l.notA(path, n, "a mapping of names", "write "+example(f, "{name: …}"))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	l.entries(path, n, func(p string, key, value *yaml.Node) {
		if key.Value == "" || key.Kind != yaml.ScalarNode {
			l.report(l.spotOf(key), Problem{Code: CodeBadValue, Path: path, Text: "a name in " + last(path) + " is not a text", Hint: "give it a name"})
			return
		}
		if strings.ContainsFunc(key.Value, hiddenRune) {
			l.hideAll(value, maxAliases)
			l.report(l.spotOf(key), Problem{Code: CodeBadValue, Path: path, Text: "the name `" + key.Value + "` in " + last(path) + " has invisible characters", Hint: "use letters, digits, dots and dashes"})
			return
		}
		e := reflect.New(elem).Elem()
		if sectionOf(elem) != nil && elem.Kind() == reflect.Pointer {
			// Not nil, so that what goes through all containers needs no check for it.
			e.Set(reflect.New(elem.Elem())) // also where nothing is in it
		}
		l.value(p, value, e, f, kind)
		v.SetMapIndex(reflect.ValueOf(key.Value), e)
	})
}

// list decodes a sequence. One value alone is a list of one, so `topics: orders` works.
func (l *loader) list(path string, n *yaml.Node, v reflect.Value, f *field, kind string) {
	items := n.Content
	switch {
	case isNull(n):
		return
	case n.Kind == yaml.ScalarNode && v.Type().Elem().Kind() == reflect.String:
		items = l.itemsOf(n)
	case n.Kind != yaml.SequenceNode:
		l.hideAll(n, maxAliases)
		l.notA(path, n, "a list", "write "+example(f, "[…]"))
		return
	}
	for i, item := range items {
		e := reflect.New(v.Type().Elem()).Elem()
		l.value(fmt.Sprintf("%s[%d]", path, i), item, e, f, kind)
		v.Set(reflect.Append(v, e))
	}
}

// itemsOf makes a list of one value. In the file it is one item, whatever is in it: for
// several there are lists. A variable has no lists, so there commas separate, and a JSON
// array takes items as they are.
func (l *loader) itemsOf(n *yaml.Node) []*yaml.Node {
	name := l.env[n]
	// A comma in a file may belong to a name; a variable has no other way to separate.
	if name == "" {
		return []*yaml.Node{n}
	}
	var parts []string
	if !strings.HasPrefix(n.Value, "[") || json.Unmarshal([]byte(n.Value), &parts) != nil { // null is a name too
		parts = strings.Split(n.Value, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
	}
	items := make([]*yaml.Node, 0, len(parts))
	for _, part := range parts {
		// Each item gets a node of its own, so that a mistake in one is reported with its text.
		one := *n
		one.Value = part
		l.env[&one] = name
		items = append(items, &one)
	}
	return items
}

// table decodes names with values of any simple kind, such as RabbitMQ's arguments, whose types matter
// to the broker.
func (l *loader) table(path string, n *yaml.Node, v reflect.Value, f *field) {
	if n.Kind != yaml.MappingNode {
		l.notA(path, n, "a mapping", "write "+example(f, "{name: value}"))
		return
	}
	t := table{}
	l.entries(path, n, func(p string, key, value *yaml.Node) {
		value = resolved(value)
		if value.Kind != yaml.ScalarNode {
			l.notA(p, value, "a text, a number, true or false", "")
			return
		}
		a, err := argument(value)
		if err != nil {
			l.report(l.spotOf(value), Problem{Code: CodeBadValue, Path: p, Text: relative(p) + " is not a number that fits"})
			return
		}
		t[key.Value] = a
	})
	v.Set(reflect.ValueOf(t))
}

// scalar decodes one value.
func (l *loader) scalar(path string, n *yaml.Node, v reflect.Value, f *field) {
	if _, isSecret := v.Interface().(secret); isSecret {
		l.secret(path, n, v)
		return
	}
	if n.Kind != yaml.ScalarNode {
		l.hideAll(n, maxAliases)
		l.notA(path, n, "one value", "write "+example(f, "for example "+f.def))
		return
	}
	if isNull(n) {
		l.report(l.spotOf(n), Problem{Code: CodeMissing, Path: path, Text: relative(path) + " has no value", Hint: "give it one, or leave the key out"})
		return
	}
	if err := l.set(path, n, v, f); err != nil {
		p := Problem{Code: CodeBadValue, Path: path, Text: relative(path) + " " + err.Error()}
		if w, ok := err.(*wrong); ok { //nolint:errorlint // made here
			p.Hint = w.hint
		}
		l.report(l.spotOf(n), p)
	}
}

// set puts a text into a field. Types with words of their own come first: their underlying kinds would
// accept any text.
func (l *loader) set(path string, n *yaml.Node, v reflect.Value, f *field) error {
	text := n.Value
	switch v.Interface().(type) {
	case time.Duration:
		d, err := parseDuration(text, f.none)
		if err == nil && d < 0 && text != f.none {
			l.report(l.spotOf(n), Problem{Code: CodeOutOfRange, Path: path, Text: relative(path) + " is negative", Hint: zeroHint("0s", f)})
			return nil
		}
		v.SetInt(int64(d))
		return err
	case size:
		s, err := parseSize(text)
		v.SetInt(int64(s))
		return err
	// The header's name is free, so it cannot be in the list of words.
	case order:
		if name, ok := strings.CutPrefix(text, headerPrefix); ok && name != "" {
			v.SetString(text)
			return nil
		}
	// A time is the other form of start that is no word.
	case start:
		if _, err := time.Parse(time.RFC3339, text); err == nil {
			v.SetString(text)
			return nil
		}
	}
	switch v.Kind() { //nolint:exhaustive // those that are in the schema
	case reflect.Int:
		i, err := parseInt(text, f.none)
		// RabbitMQ takes negative consumer priorities; everything else that is negative is a slip.
		if err == nil && i < 0 && text != f.none && f.key != "priority" {
			l.report(l.spotOf(n), Problem{Code: CodeOutOfRange, Path: path, Text: relative(path) + " is negative", Hint: zeroHint("0", f)})
			return nil
		}
		v.SetInt(i)
		return err
	case reflect.Float64:
		x, err := parseFloat(text, f.none)
		v.SetFloat(x)
		return err
	case reflect.Bool:
		b, err := parseBool(text)
		v.SetBool(b)
		return err
	}
	// Other spellings of a word ("scram-sha-256") are taken, and the file's own is what is stored.
	if text = f.spelled(text); len(f.oneof) > 0 && !slices.Contains(f.oneof, text) {
		l.unknownWord(path, n, f)
		return nil
	}
	switch f.key {
	case "url":
		l.checkURL(path, n)
	case "endpoint": // it takes no password, and may have one
		if l.hideInURL(n); strings.ContainsAny(text, "?#") || !strings.Contains(text, "://") {
			l.hide(n)
		}
	}
	v.SetString(text)
	return nil
}

// zeroHint says what a person may have meant by a value below zero: none, or the default.
func zeroHint(zero string, f *field) string {
	switch {
	case f.typ.Kind() == reflect.Pointer: // 0 means something
		return "0 or more"
	case f.none != "":
		return zero + " means the default, " + f.def + "; or " + f.none
	case f.def == "":
		return "0 or more"
	}
	return zero + " means the default, " + f.def
}
