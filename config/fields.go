package config

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// field is one key of the file, as the tags of its Go field say.
type field struct {
	// See the tags in schema.go.
	key, doc, def, none, like string
	oneof, on                 []string // all words, all kinds of brokers, if empty
	whole, own                bool
	index                     int // of the Go field in its struct
	typ                       reflect.Type
}

// fieldsOf reads the tags of a struct.
func fieldsOf(t reflect.Type) []field {
	var fs []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		f := field{key: tag.Get("key"), doc: tag.Get("doc"), def: tag.Get("def"), none: tag.Get("none"), like: tag.Get("like"),
			on: strings.Fields(tag.Get("on")), whole: tag.Get("whole") != "", own: tag.Get("own") != "", index: i, typ: t.Field(i).Type}
		if words := tag.Get("oneof"); words != "" {
			f.oneof = strings.Split(words, "|")
		}
		fs = append(fs, f)
	}
	return fs
}

// fields are those of a section; none if this is a plain value.
func (f *field) fields() []field {
	if t := sectionOf(f.typ); t != nil {
		return fieldsOf(t)
	}
	return nil
}

// sectionOf is the struct behind a type, nil if it is a plain value.
func sectionOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && t != reflect.TypeFor[secret]() {
		return t
	}
	return nil
}

// named is the struct behind a map of sections, nil if it is none.
func (f *field) named() reflect.Type {
	if f.typ.Kind() != reflect.Map {
		return nil
	}
	return sectionOf(f.typ.Elem())
}

// words are all that a field takes, and the forms alongside them.
func (f *field) words() []string {
	switch f.typ {
	case reflect.TypeFor[order]():
		return append(slices.Clone(f.oneof), headerPrefix+"NAME")
	case reflect.TypeFor[start]():
		return append(slices.Clone(f.oneof), startForm)
	}
	return f.oneof
}

// spelled is a word as the file has it, where it was written as a URL or Kafka has it.
func (f *field) spelled(text string) string {
	word := strings.ReplaceAll(text, "-", "_")
	if f.key == "mechanism" {
		word = strings.ToLower(word)
	}
	if slices.Contains(f.oneof, word) {
		return word
	}
	return text
}

// has reports whether a broker of that kind has the field; "" is every kind.
func (f *field) has(kind string) bool {
	return kind == "" || len(f.on) == 0 || slices.Contains(f.on, kind)
}

// find is the field of a key; nil: there is none.
func find(fs []field, key string) *field {
	for i := range fs {
		if fs[i].key == key {
			return &fs[i]
		}
	}
	return nil
}

// keys are those that go with a kind of broker, for the hint of an unknown one.
func keys(fs []field, kind string) []string {
	var ks []string
	for i := range fs {
		if fs[i].has(kind) {
			ks = append(ks, fs[i].key)
		}
	}
	return ks
}

// kindName is the type of a field for people.
func (f *field) kindName() string {
	switch t := f.typ; {
	case t == reflect.TypeFor[time.Duration]():
		return "time"
	case t == reflect.TypeFor[size]():
		return "size"
	case t == reflect.TypeFor[secret]():
		return "secret"
	case t == reflect.TypeFor[table]():
		return "mapping"
	case len(f.oneof) > 0:
		return "word"
	case t.Kind() == reflect.Map && t.Elem() == reflect.TypeFor[secret]():
		return "mapping of names to secrets"
	case t.Kind() == reflect.Map || sectionOf(t) != nil:
		return "mapping"
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "text"
	}
	return "number"
}

// fieldOf is the field at a path; nil if the file has no such key.
func fieldOf(path string) *field {
	t := reflect.TypeFor[root]()
	var f *field
	for name := range strings.SplitSeq(path, sep) {
		if t == nil {
			return nil
		}
		if f != nil && f.named() == t { // the name of a container or a broker
			f = &field{key: name, typ: t}
			continue
		}
		if f = find(fieldsOf(t), name); f == nil {
			return nil
		}
		if t = f.named(); t == nil {
			t = sectionOf(f.typ)
		}
	}
	return f
}

// noneOf is the word for -1 of the field at a path; "" if it has none.
func noneOf(path string) string {
	if f := fieldOf(path); f != nil {
		return f.none
	}
	return ""
}
