package config

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxAliases bounds how deep aliases may lead into each other.
const maxAliases = 16

// parse reads the file's text into nodes. What is not YAML is one problem: behind it
// nothing can be trusted, and as nothing is known to be secret, nothing is shown.
func (l *loader) parse(text []byte) *yaml.Node {
	if bad := scan(text); bad != nil {
		return l.refuse(bad)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		l.lines = append(l.lines, []rune(line))
	}
	dec, err := yaml.NewLoader(bytes.NewReader(anyVersion(text)))
	if err != nil {
		return l.notYAML(err)
	}
	var doc, more yaml.Node
	err = dec.Load(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.MappingNode}
	case err != nil:
		return l.notYAML(err)
	}
	if bad := expanded(&doc); bad != nil {
		return l.refuse(bad)
	}
	if err := dec.Load(&more); err == nil {
		l.report(spot{line: more.Line, column: 1}, Problem{Code: CodeSyntax, Text: "the file has a second document", Hint: "keep everything before the ---"})
	} else if !errors.Is(err, io.EOF) {
		l.notYAML(err)
	}
	return doc.Content[0]
}

// refuse reports a text that is not looked at any further.
func (rp *reporter) refuse(bad *refusal) *yaml.Node {
	rp.report(bad.at, Problem{Code: CodeSyntax, Text: bad.text, Hint: bad.hint})
	return nil
}

// notYAML reports where the parser stopped. What is not closed is reported where it was
// opened, and nothing that the parser quotes of the file is shown.
func (rp *reporter) notYAML(err error) *yaml.Node {
	at, text := spot{line: 1, column: 1}, "it cannot be read"
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		mark := e.Mark
		if mark.Line > len(rp.lines) && e.ContextMark.Line > 0 {
			mark = e.ContextMark
		}
		at, text = spot{line: max(1, mark.Line), column: max(1, mark.Column)}, e.Message
		if e.Stage == yaml.ComposerStage {
			text = "this alias has no anchor"
		}
	}
	rp.report(at, Problem{Code: CodeSyntax, Text: "this is not YAML: " + text,
		Hint: "look at the line and the one before: indent with spaces and never with a tab, put a space after each colon, quotes around text with : # { } [ ] , & * ! | > ' \" % @"})
	return nil
}

// resolved follows aliases.
func resolved(n *yaml.Node) *yaml.Node {
	for range maxAliases {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			break
		}
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// pair is a key with its value.
type pair struct{ key, value *yaml.Node }

// pairs are the entries of a mapping, those of <<: last and only where they add.
func pairs(n *yaml.Node, depth int) []pair {
	var own, merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag != "!!merge" {
			own = append(own, pair{k, v})
			continue
		}
		from := []*yaml.Node{v}
		if s := resolved(v); s.Kind == yaml.SequenceNode {
			from = s.Content
		}
		for _, m := range from {
			if m = resolved(m); m.Kind == yaml.MappingNode && depth > 0 {
				merged = append(merged, pairs(m, depth-1)...)
			}
		}
	}
	if len(merged) == 0 {
		return own
	}
	known := make(map[string]bool, len(own)+len(merged))
	for _, p := range own {
		known[p.key.Value] = true
	}
	for _, p := range merged {
		if !known[p.key.Value] {
			known[p.key.Value] = true
			own = append(own, p)
		}
	}
	return own
}

// child is the value of a key; nil: there is none.
func child(ps []pair, key string) *yaml.Node {
	for _, p := range ps {
		if p.key.Value == key {
			return p.value
		}
	}
	return nil
}

// entry is the value of a key of a node, nil if it has none.
func entry(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	if n = resolved(n); n.Kind != yaml.MappingNode {
		return nil
	}
	return child(pairs(n, maxAliases), key)
}

// flat makes a mapping without <<: of one with it, so that values can be set in it.
func flat(n *yaml.Node) *yaml.Node {
	n = resolved(n)
	m := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column, Style: n.Style}
	for _, p := range pairs(n, maxAliases) {
		m.Content = append(m.Content, p.key, p.value)
	}
	return m
}

// under puts defaults below what a container says itself.
func under(own, defaults *yaml.Node, fields []field) *yaml.Node {
	if own = resolved(own); own.Kind != yaml.MappingNode {
		return own
	}
	m := flat(own)
	for _, d := range pairs(resolved(defaults), maxAliases) {
		f := find(fields, d.key.Value)
		if f == nil || f.own {
			continue
		}
		at := -1
		for i := 0; i < len(m.Content); i += 2 {
			if m.Content[i].Value == d.key.Value {
				at = i + 1
			}
		}
		switch {
		case at < 0:
			m.Content = append(m.Content, d.key, d.value)
		case !f.whole && len(f.fields()) > 0 && resolved(d.value).Kind == yaml.MappingNode:
			m.Content[at] = under(m.Content[at], d.value, f.fields())
		}
	}
	return m
}
