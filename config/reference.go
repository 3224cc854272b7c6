package config

import (
	_ "embed" // the text around the tables
	"fmt"
	"reflect"
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

// tableOf is the table of one part of the file.
func tableOf(name string) string {
	t, prefix := map[string]reflect.Type{
		"file": reflect.TypeFor[root](), "brokers": reflect.TypeFor[brokerSection](), "lifecycle": reflect.TypeFor[lifecycleSection](),
		"admin": reflect.TypeFor[adminSection](), "telemetry": reflect.TypeFor[telemetrySection](), "containers": reflect.TypeFor[containerSection](), "source": reflect.TypeFor[sourceSection](),
	}[name], ""
	var b strings.Builder
	b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	rows(&b, t, prefix, name)
	return b.String()
}

func rows(b *strings.Builder, t reflect.Type, prefix, page string) {
	fs := fieldsOf(t)
	for i := range fs {
		f := &fs[i]
		doc, def := f.doc, f.def
		if len(f.on) > 0 {
			doc = "*" + strings.Join(f.on, ", ") + "* " + doc
		}
		if f.like != "" {
			doc += " Example: `" + f.like + "`"
		}
		value := f.kindName()
		if len(f.oneof) > 0 {
			value = "`" + strings.Join(f.words(), "`, `") + "`"
		}
		if f.none != "" {
			value += " or `" + f.none + "`"
		}
		if f.key == "source" {
			value = "URL or mapping"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, f.key, value, strings.ReplaceAll(def, "|", "\\|"), strings.ReplaceAll(doc, "|", "\\|"))
		if sub := sectionOf(f.typ); sub != nil && !f.own && page != "file" {
			rows(b, sub, prefix+f.key+".", page)
		} else if f.typ.Kind() == reflect.Slice && sectionOf(f.typ.Elem()) != nil {
			rows(b, f.typ.Elem(), prefix+f.key+"[].", page)
		}
	}
}
