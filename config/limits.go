package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// The bounds of a file. A service with a thousand containers stays well below them; a file
// beyond them costs seconds and gigabytes, which a mistake or a foreign file must not.
const (
	maxFileBytes = 1 << 20 // as it is on disk
	maxLineBytes = 1 << 14
	maxMarks     = 1 << 16 // of characters that begin something, which bounds what the parser makes
	maxNodes     = 1 << 16 // keys and values, with aliases and merge keys written out
	maxDepth     = 32      // of mappings and lists in each other, likewise
)

// maxProblems is how many mistakes of one file are reported: behind so many the first ones
// are those to look at.
const maxProblems = 500

// refusal is why a text is not parsed at all, and where.
type refusal struct {
	at         spot
	text, hint string
}

// scan looks for what the parser must not see, or would report without its place. It
// returns nil if the text may be parsed.
func scan(text []byte) *refusal {
	if len(text) > maxFileBytes {
		return &refusal{spot{}, fmt.Sprintf("the file is larger than %d KiB", maxFileBytes>>10), "split the service, or share what repeats by defaults"}
	}
	marks, number := 0, 0
	for line := range strings.SplitSeq(string(text), "\n") {
		number++
		if len(line) > maxLineBytes {
			return &refusal{spot{line: number, column: 1}, fmt.Sprintf("the line is longer than %d KiB", maxLineBytes>>10), "break it, or move what it holds into a file of its own"}
		}
		if bad := badCharacter(line); bad != nil {
			bad.at.line = number
			return bad
		}
		marks++
		for _, r := range line {
			if strings.ContainsRune(",[{:-?&*!", r) {
				marks++
			}
		}
		if marks > maxMarks {
			return &refusal{spot{line: number, column: 1}, "the file has too many keys and values up to here", "split the service, or share what repeats by defaults"}
		}
	}
	return nil
}

// badCharacter finds what YAML does not allow.
func badCharacter(line string) *refusal {
	column := 0
	for i, r := range line {
		column++
		switch {
		case r == utf8.RuneError && strings.HasPrefix(line[i:], "\ufffd"): // it is written there
		case r == utf8.RuneError:
			return &refusal{spot{column: column}, "this is not UTF-8", "save the file as UTF-8"}
		case r == '\t' || r == '\r' && i == len(line)-1 || r == '\u0085' || r == '\ufeff':
		case unicode.IsControl(r):
			return &refusal{spot{column: column}, fmt.Sprintf("the control character U+%04X is not allowed", r), "remove it, or write it as an escape between double quotes"}
		}
	}
	return nil
}

// anyVersion makes a directive of any YAML 1.x one that the parser takes: what 1.2 changed
// does not occur here.
func anyVersion(text []byte) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		word := strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		switch {
		case strings.HasPrefix(word, "%YAML 1."):
			if rest := strings.TrimLeft(word[len("%YAML 1."):], "0123456789"); rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				return text
			}
			lines[i] = "%YAML 1.1\n"
			return []byte(strings.Join(lines, ""))
		case word != "" && word[0] != '#' && word[0] != '%':
			return text
		}
	}
	return text
}

// measure is how much a document is with its aliases written out. Each node is measured
// once.
type measure struct {
	known map[*yaml.Node]extentOf
	first *refusal
}

// extentOf is how large and how deep a node is with its aliases expanded.
type extentOf struct{ nodes, depth int }

// expanded returns why a document is too much, at the alias or node that makes it so.
func expanded(doc *yaml.Node) *refusal {
	m := &measure{known: map[*yaml.Node]extentOf{}}
	m.of(doc)
	return m.first
}

// of adds up nodes, each alias as often as it is used: a file of one kilobyte can expand to gigabytes.
func (m *measure) of(n *yaml.Node) extentOf {
	if e, ok := m.known[n]; ok {
		return e
	}
	m.known[n] = extentOf{nodes: maxNodes + 1, depth: maxDepth + 1} // inside itself it has no end
	e := extentOf{nodes: 1}
	below := n.Content
	if n.Alias != nil {
		below = []*yaml.Node{n.Alias}
	}
	for _, c := range below {
		sub := m.of(c)
		e.nodes, e.depth = e.nodes+sub.nodes, max(e.depth, sub.depth)
		if e.nodes > maxNodes {
			m.refuse(c, "too many keys and values, with its aliases written out", "repeat less by aliases and <<, and let no alias lead into itself")
			e.nodes = maxNodes + 1
			break
		}
	}
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		e.depth++
	}
	if e.depth > maxDepth {
		m.refuse(n, fmt.Sprintf("more than %d mappings and lists in each other", maxDepth), "see that the indentation is right")
		e.depth = maxDepth + 1
	}
	m.known[n] = e
	return e
}

// refuse keeps the first reason: the others follow from it.
func (m *measure) refuse(n *yaml.Node, text, hint string) {
	if m.first == nil {
		m.first = &refusal{spot{line: n.Line, column: n.Column}, text, hint}
	}
}

// printable shows control and invisible characters as escapes, so that a name cannot
// write to the terminal or break a line.
func printable(text string) string {
	if !strings.ContainsFunc(text, hiddenRune) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hiddenRune(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// hiddenRune is a character that cannot be seen. Two names that look alike must not be different ones.
func hiddenRune(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
