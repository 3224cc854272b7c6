package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/longshore-go/longshore/internal/edit"
)

// spotOf is where a node stands.
func (doc *document) spotOf(n *yaml.Node) spot {
	n = resolved(n)
	if env, ok := doc.env[n]; ok && env != "" {
		return spot{env: env}
	}
	if n.Line == 0 {
		return spot{}
	}
	at := spot{line: n.Line, column: n.Column, length: 1}
	if n.Kind == yaml.ScalarNode {
		from, to := doc.extent(n)
		at.length = max(to-from, 1)
	}
	return at
}

// spotOfEntry is a key with its value, where both are in one line.
func (doc *document) spotOfEntry(e pair) spot {
	at, v := doc.spotOf(e.key), doc.spotOf(e.value)
	switch {
	case v.env != "":
		return v
	case at.env == "" && v.line == at.line && resolved(e.value).Kind == yaml.ScalarNode:
		at.length = v.column + v.length - at.column
	}
	return at
}

// place is where to point for a path: at its value, or at the key of the nearest
// thing around it that is there.
func (doc *document) place(path string) spot {
	if e, ok := doc.at[path]; ok {
		return doc.spotOf(e.value)
	}
	for path != "" {
		path = parent(path)
		if e, ok := doc.at[path]; ok {
			if at := doc.spotOf(e.key); at.line > 0 || at.env != "" {
				return at
			}
		}
	}
	return spot{line: min(1, len(doc.lines)), column: 1}
}

// example is how a field looks.
func example(f *field, other string) string {
	if f != nil && f.like != "" {
		return f.key + ": " + f.like
	}
	return other
}

// notA reports a value of the wrong shape, with the shape that it has.
func (rp *reporter) notA(path string, n *yaml.Node, want, hint string) {
	have := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list", yaml.ScalarNode: "one value"}[n.Kind]
	if isNull(n) {
		have = "empty"
	}
	what := relative(path)
	if what == "" {
		what = "the file"
	}
	rp.report(rp.spotOf(n), Problem{Code: CodeBadValue, Path: path, Text: what + " is " + have + ", not " + want, Hint: hint})
}

// unknownKey must not show the value: a misspelt password is still one.
func (rp *reporter) unknownKey(path string, key, value *yaml.Node, fs []field, kind string) {
	rp.hideAll(value, maxAliases)
	p := Problem{Code: CodeUnknownKey, Path: join(path, key.Value), Text: "unknown key `" + key.Value + "`"}
	known := keys(fs, kind)
	switch near := nearest(key.Value, known); {
	case slices.Contains(known, elsewhere(key.Value)):
		p.Hint = "here it is `" + elsewhere(key.Value) + "`"
	case near != "":
		p.Hint = "did you mean `" + near + "`?"
		rp.broken[join(path, near)] = true
	case key.Value == "handler" && top(path) == "containers":
		p.Hint = fmt.Sprintf("handlers are code: config.Handlers{%q: …}", last(path))
	case (key.Value == "middleware" || key.Value == "middlewares") && top(path) == "containers":
		p.Hint = "each has a key of its own: log_messages, breaker, decode, dedupe, throttle, timeout; others are code"
	default:
		p.Hint = "known here: " + strings.Join(known, ", ")
	}
	rp.report(rp.spotOf(key), p)
}

// elsewhere is what a key of others is called here, "" if unknown.
func elsewhere(key string) string {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(key)) {
	case "concurrency", "maxconcurrency", "parallelism":
		return "workers"
	case "retry", "retries", "maxretries", "maxattempts":
		return "redelivery"
	case "dlq", "dlt", "deadletterqueue", "deadlettertopic":
		return "dead_letter"
	case "circuitbreaker":
		return "breaker"
	}
	return ""
}

// unknownWord lists the known words, the nearest one first.
func (rp *reporter) unknownWord(path string, n *yaml.Node, f *field) {
	p := Problem{Code: CodeUnknownValue, Path: path, Text: fmt.Sprintf("%s `%s` is not known", relative(path), n.Value)}
	words := f.words()
	if near := nearest(n.Value, f.oneof); near != "" {
		var others []string
		for _, w := range words {
			if w != near {
				others = append(others, w)
			}
		}
		p.Hint = "did you mean `" + near + "`? also: " + strings.Join(others, ", ")
	} else {
		p.Hint = "known: " + strings.Join(words, ", ")
	}
	rp.report(rp.spotOf(n), p)
}

// nearest is the word that a misspelt one most likely stands for, "" if none is near.
func nearest(typed string, words []string) string {
	plain := strings.NewReplacer("-", "_", " ", "_").Replace(snake(typed))
	best, least := "", len(plain)/3+2
	for _, w := range words {
		d := edit.Distance(plain, w)
		if len(plain) > 2 && strings.HasPrefix(w, plain) {
			d = 1
		}
		if d < min(least, len(w)) {
			best, least = w, d
		}
	}
	return best
}

// closest is nearest for names that people chose.
func closest(typed string, names []string) string {
	best, least := "", len(typed)/3+2
	for _, n := range names {
		if d := edit.Distance(strings.ToLower(typed), strings.ToLower(n)); d < min(least, len(n)) {
			best, least = n, d
		}
	}
	return best
}

// snake is a name of Go's, or of Java's, as it is written here.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 && (name[i-1] < 'A' || name[i-1] > 'Z') && name[i-1] != '_' && name[i-1] != '.' {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
