package config

import (
	_ "embed" // the text around the tables
	"fmt"
	"reflect"
	"slices"
	"strings"
)

//go:embed reference.md
var referenceText string

// Reference is the page about every field, in Markdown: docs/reference/configuration.md.
func Reference() string {
	var b strings.Builder
	for _, part := range strings.SplitAfter(referenceText, "\n") {
		name, ok := strings.CutPrefix(strings.TrimSpace(part), "<!-- table: ")
		if !ok {
			b.WriteString(part)
			continue
		}
		name = strings.TrimSuffix(name, " -->")
		b.WriteString(tableOf(name))
	}
	return b.String()
}

// FieldDoc is what the page says about a field.
type FieldDoc struct {
	Part    string   `json:"part"` // of the file: "containers", "source", …
	Key     string   `json:"key"`  // with the keys above it inside the part: "workers.max"
	Value   string   `json:"value"`
	OneOf   []string `json:"one_of,omitempty"`
	Default string   `json:"default,omitempty"`
	On      []string `json:"on,omitempty"` // brokers; none: all
	Meaning string   `json:"meaning"`
	Example string   `json:"example,omitempty"`

	none      string // a word in place of 0
	described bool   // an earlier mapping of the page has the same keys, and this one's meaning says so
}

// FieldDocs are all fields, in the order of the page.
func FieldDocs() (all []FieldDoc) {
	for line := range strings.Lines(referenceText) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "<!-- table: "); ok {
			all = append(all, docsOf(strings.TrimSuffix(name, " -->"))...)
		}
	}
	return all
}

// tableOf is the table of one part of the file.
func tableOf(name string) string {
	all := docsOf(name)
	var b strings.Builder
	rowsOf(&b, slices.DeleteFunc(slices.Clone(all), func(f FieldDoc) bool { return f.onlyOn() != "" }))
	for _, kind := range []string{onRabbit, onKafka, onSQS, onMemory} {
		if only := slices.DeleteFunc(slices.Clone(all), func(f FieldDoc) bool { return f.onlyOn() != kind }); len(only) > 0 {
			fmt.Fprintf(&b, "\n### %s: %s\n\n", name, kind)
			rowsOf(&b, only)
		}
	}
	return b.String()
}

// onlyOn is the one kind of broker that has the field, and empty for a field that several have.
func (f *FieldDoc) onlyOn() string {
	if len(f.On) == 1 && slices.Contains([]string{onRabbit, onKafka, onSQS, onMemory}, f.On[0]) {
		return f.On[0]
	}
	return ""
}

// rowsOf writes a table of fields. The keys of a mapping that the page has described before are left out.
func rowsOf(b *strings.Builder, fields []FieldDoc) {
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		if f.described {
			continue
		}
		value, doc := f.Value, f.Meaning
		if f.Value == "true or false" {
			value = "bool"
		}
		if len(f.OneOf) > 0 {
			value = "`" + strings.Join(f.OneOf, "`, `") + "`"
		}
		if f.none != "" {
			value += " or `" + f.none + "`"
		}
		if f.Key == "source" {
			value = "URL or mapping"
		}
		if len(f.On) > 1 || len(f.On) == 1 && f.onlyOn() == "" {
			doc = "*" + strings.Join(f.On, ", ") + "* " + doc
		}
		if f.Example != "" {
			doc += " Example: `" + f.Example + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Key, value, strings.ReplaceAll(f.Default, "|", "\\|"), strings.ReplaceAll(doc, "|", "\\|"))
	}
}

// docsOf lists the keys of one part of the reference.
func docsOf(part string) []FieldDoc {
	t := map[string]reflect.Type{
		"file": reflect.TypeFor[root](), "brokers": reflect.TypeFor[brokerSection](), "lifecycle": reflect.TypeFor[lifecycleSection](),
		"admin": reflect.TypeFor[adminSection](), "telemetry": reflect.TypeFor[telemetrySection](), "containers": reflect.TypeFor[containerSection](), "source": reflect.TypeFor[sourceSection](), "bridge": reflect.TypeFor[routeSection](),
	}[part]
	return rows(nil, t, "", part)
}

// rows goes through the fields in the order of the structs, which is the order of the page.
func rows(all []FieldDoc, t reflect.Type, prefix, page string) []FieldDoc {
	// These two say in their own meaning which mapping has the same keys.
	described := prefix == "otlp.tls." || prefix == "reopen."
	fs := fieldsOf(t)
	for i := range fs {
		f := &fs[i]
		row := FieldDoc{Part: page, Key: prefix + f.key, Value: f.kindName(), Default: f.def, On: f.on, Meaning: f.doc, Example: f.like, none: f.none, described: described}
		if len(f.oneof) > 0 {
			row.OneOf = f.words()
		}
		all = append(all, row)
		if sub := sectionOf(f.typ); sub != nil && !f.own && page != "file" {
			all = rows(all, sub, prefix+f.key+".", page)
		} else if f.typ.Kind() == reflect.Slice && sectionOf(f.typ.Elem()) != nil {
			all = rows(all, f.typ.Elem(), prefix+f.key+"[].", page)
		}
	}
	return all
}
