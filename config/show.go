package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Value is one value that is in force.
type Value struct {
	// Path is where it is: "containers", "orders", "workers", "max".
	Path []string `json:"path"`
	// Value as it is written in the file; secrets are "***".
	Value string `json:"value"`
	// Origin is "longshore.yaml:7", "env LONGSHORE_…", "defaults, longshore.yaml:4", or
	// "default" for unset values.
	Origin string `json:"origin"`
	// Secret is where a secret comes from: "env:RABBIT_PW".
	Secret string `json:"secret,omitempty"`
}

// Show lists everything that is in force and where it came from, in the order of the
// reference. Secrets are masked, those in URLs too. With defaults it lists also what
// the file does not set.
func (c *Config) Show(defaults bool) []Value {
	s := &show{l: c.loader, defaults: defaults}
	s.section("", reflect.ValueOf(c.loader.file), "")
	return s.values
}

// show walks the decoded sections by the same tags as the decoder, so that no field can be missing.
type show struct {
	l        *loader
	defaults bool
	values   []Value
}

// section goes through the keys that the kind of broker has.
func (s *show) section(path string, v reflect.Value, kind string) {
	fs := fieldsOf(v.Type())
	for i := range fs {
		f := &fs[i]
		if !f.has(kind) || path == "" && f.key == "defaults" { // they are shown where they apply
			continue
		}
		s.field(join(path, f.key), v.Field(f.index), f)
	}
}

// field shows a value, or what is below it. Secrets are shown by where they come from.
func (s *show) field(path string, v reflect.Value, f *field) {
	switch t := v.Type(); {
	case f.named() != nil:
		names := slices.Sorted(maps.Keys(keysOf(v)))
		if f.key == "containers" {
			// In the order of the file, in which people look for them.
			names = s.l.order
		}
		for _, name := range names {
			e := v.MapIndex(reflect.ValueOf(name)).Elem()
			s.below(join(path, name), e)
		}
	case sectionOf(t) != nil:
		if t.Kind() == reflect.Pointer {
			if v.IsNil() {
				return
			}
			v = v.Elem()
		}
		before := len(s.values)
		s.below(path, v)
		if _, said := s.l.at[path]; said && len(s.values) == before {
			s.add(path, "{}", "")
		}
	case t.Kind() == reflect.Map && t.Elem() == reflect.TypeFor[secret]():
		for _, name := range slices.Sorted(maps.Keys(keysOf(v))) {
			e, _ := v.MapIndex(reflect.ValueOf(name)).Interface().(secret)
			s.add(join(path, name), text(masked), e.From())
		}
	default:
		s.scalar(path, v, f)
	}
}

// below shows a section, a source that is a URL in one line.
func (s *show) below(path string, v reflect.Value) {
	// A source given by a URL alone is shown as it was written: as text, with the password masked.
	if src, ok := v.Interface().(sourceSection); ok && src.URL != "" && src.Password.IsZero() {
		s.add(path, text(maskURL(src.URL)), "")
		return
	}
	s.section(path, v, s.kind(v))
}

// scalar leaves out long defaults: they are sentences, not values.
func (s *show) scalar(path string, v reflect.Value, f *field) {
	if _, said := s.l.at[path]; !said {
		if s.defaults && f.def != "" && len(f.def) < 20 && !strings.Contains(f.def, " ") {
			s.values = append(s.values, Value{Path: strings.Split(path, sep), Value: f.def, Origin: "default"})
		}
		return
	}
	if secret, ok := v.Interface().(secret); ok {
		s.add(path, text(masked), secret.From())
		return
	}
	s.add(path, written(v, f), "")
}

// kind narrows a section to what its broker or policy has.
func (s *show) kind(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case brokerSection:
		return kindOf(x.URL)
	case sourceSection:
		if b := s.l.file.Brokers[x.Broker]; b != nil {
			return kindOf(b.URL)
		}
	case autoscaleSection:
		if x.Policy == "" {
			return "adaptive"
		}
		return x.Policy
	}
	return ""
}

// keysOf are the keys of a map whose values are sections.
func keysOf(v reflect.Value) map[string]bool {
	m := map[string]bool{}
	for _, k := range v.MapKeys() {
		m[k.String()] = true
	}
	return m
}

// add takes a value in with its origin: the file, a variable, or a default.
func (s *show) add(path, value, secret string) {
	s.values = append(s.values, Value{Path: strings.Split(path, sep), Value: value, Origin: s.l.origin(path), Secret: secret})
}

// origin says where the value of a path came from.
func (doc *document) origin(path string) string {
	e, ok := doc.at[path]
	if !ok {
		return "default"
	}
	n := resolved(e.value)
	at := doc.spotOf(n)
	// A value that was not written, as that of "orders:", has no place; its key has.
	if at.env == "" && at.line == 0 {
		at = doc.spotOf(e.key)
	}
	if at.env != "" {
		return "env " + at.env
	}
	where := fmt.Sprintf("%s:%d", doc.name, at.line)
	// Merged from the section defaults: the line alone would puzzle who looks into the container's own.
	if doc.defaults[n] {
		return "defaults, " + where
	}
	return where
}

// written is a value as the file has it.
func written(v reflect.Value, f *field) string {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		if x == -1 && f.none != "" {
			return f.none
		}
		return shortly(x)
	case size:
		return x.String()
	case string:
		if f.key == "url" || f.key == "endpoint" {
			x = maskURL(x)
		}
		return text(x)
	case int:
		if x == -1 && f.none != "" {
			return f.none
		}
	case float64:
		if x == -1 && f.none != "" {
			return f.none
		}
	}
	switch v.Kind() { //nolint:exhaustive // the others print as they are
	case reflect.Slice, reflect.Map:
		return flow(v.Interface())
	case reflect.String:
		return text(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// shortly is a time without the zeros behind: 5m, not 5m0s.
func shortly(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// text is a string in quotes where YAML needs them.
func text(s string) string { return flow(s) }

// flow is a value in one line: each value has its origin behind it.
func flow(v any) string {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	inLine(&n)
	out, err := yaml.Marshal(&n)
	if err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// inLine writes a list or a mapping on one line, for a table with a line a key.
func inLine(n *yaml.Node) {
	n.Style |= yaml.FlowStyle
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		inLine(c)
	}
}

// Format writes values as YAML, each with its origin behind it.
func Format(values []Value) string {
	type line struct{ left, right string }
	var lines []line
	var open []string
	width := 0
	for _, v := range values {
		same := 0
		// Only the part of the path that differs from the last value is opened, as in a file.
		for same < len(open) && same < len(v.Path)-1 && open[same] == v.Path[same] {
			same++
		}
		for i := same; i < len(v.Path)-1; i++ {
			lines = append(lines, line{left: strings.Repeat("  ", i) + text(v.Path[i]) + ":"})
		}
		open = v.Path[:len(v.Path)-1]
		origin := v.Origin
		if v.Secret != "" {
			origin = v.Secret + ", " + origin
		}
		l := line{left: strings.Repeat("  ", len(open)) + text(v.Path[len(open)]) + ": " + v.Value, right: origin}
		// One very long value must not push the origins of all others off the screen.
		if n := len([]rune(l.left)); n > width && n <= 60 {
			width = n
		}
		lines = append(lines, l)
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.left)
		if l.right != "" {
			b.WriteString(strings.Repeat(" ", max(0, width-len([]rune(l.left)))) + "  # " + l.right)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
