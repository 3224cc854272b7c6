package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// masked is what an excerpt shows in place of a secret.
const masked = "***"

// span is a part of a line, in characters from 0.
type span struct{ from, to int }

// hide keeps a scalar out of all excerpts. What it looks like in the file is not
// always its value, so if the two differ the rest of the line goes with it.
func (doc *document) hide(n *yaml.Node) {
	if n = resolved(n); n.Line == 0 || n.Kind != yaml.ScalarNode {
		return
	}
	from, to := doc.extent(n)
	// An empty value is what an unquoted &name, !name or #name is read as, and what stands
	// behind a # is not a value either: a password may begin with it.
	line := doc.line(n.Line)
	if n.Value == "" || strings.Contains(string(line[to:]), " #") {
		to = len(line)
	}
	doc.hidden[n.Line] = append(doc.hidden[n.Line], span{from, to})
}

// hideAll hides every scalar below a node.
func (doc *document) hideAll(n *yaml.Node, depth int) {
	n = resolved(n)
	if n.Kind == yaml.ScalarNode {
		doc.hide(n)
		return
	}
	for i, c := range n.Content {
		if depth > 0 && (n.Kind != yaml.MappingNode || i%2 == 1) {
			doc.hideAll(c, depth-1)
		}
	}
}

// hideInURL hides what may be a password in a URL: from the first colon behind the
// scheme to the last @, or, where there is no @, a port that is not a number.
func (doc *document) hideInURL(n *yaml.Node) {
	if at, found := doc.passwordSpot(n); found {
		doc.hidden[n.Line] = append(doc.hidden[n.Line], span{at.column - 1, at.column - 1 + at.length})
	} else if from, to := passwordIn(n.Value); from < to {
		doc.hide(n) // it is there, and not as it is written
	}
}

// passwordSpot is where the password of a URL stands in the file.
func (doc *document) passwordSpot(n *yaml.Node) (at spot, found bool) {
	a, b := passwordIn(n.Value)
	if a == b || n.Line == 0 {
		return spot{}, false
	}
	from, to := doc.extent(n)
	line := string(doc.line(n.Line)[from:to])
	start := strings.Index(line, n.Value)
	if start < 0 {
		return spot{}, false
	}
	column := from + len([]rune(line[:start+a])) + 1
	return spot{line: n.Line, column: column, length: len([]rune(n.Value[a:b]))}, true
}

// passwordIn finds what may be a password in a URL: from and to are equal if there is
// none.
func passwordIn(raw string) (from, to int) {
	scheme := strings.Index(raw, "://")
	if scheme < 0 {
		return 0, 0
	}
	rest := scheme + len("://")
	if at := strings.LastIndexByte(raw, '@'); at >= rest && strings.HasPrefix(strings.ToLower(raw), "http") {
		return rest, at // an endpoint has no user: it may be a token
	}
	if at := strings.LastIndexByte(raw, '@'); at >= rest {
		if colon := strings.IndexByte(raw[rest:at], ':'); colon >= 0 {
			return rest + colon + 1, at
		}
		return 0, 0
	}
	hosts, _, _ := strings.Cut(raw[rest:], "/")
	for h := range strings.SplitSeq(hosts, ",") {
		if _, port, ok := strings.Cut(h, ":"); ok && !strings.HasPrefix(h, "[") && strings.Trim(port, "0123456789") != "" {
			return rest + len(h) - len(port), rest + len(h)
		}
		rest += len(h) + 1
	}
	return 0, 0
}

// maskURL is a URL for people.
func maskURL(raw string) string {
	from, to := passwordIn(raw)
	if from == to {
		return raw
	}
	return raw[:from] + masked + raw[to:]
}

// extent is where a scalar stands in its line.
func (doc *document) extent(n *yaml.Node) (from, to int) {
	line := doc.line(n.Line)
	from = min(max(n.Column-1, 0), len(line))
	rest := line[from:]
	value := []rune(n.Value)
	switch {
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 && len(rest) > 0 && (rest[0] == '"' || rest[0] == '\''):
		for i := 1; i < len(rest); i++ {
			switch {
			case rest[0] == '"' && rest[i] == '\\':
				i++
			case rest[i] == rest[0] && rest[0] == '\'' && i+1 < len(rest) && rest[i+1] == '\'':
				i++
			case rest[i] == rest[0]:
				return from, from + i + 1
			}
		}
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && len(rest) >= len(value) && slices.Equal(rest[:len(value)], value):
		return from, from + len(value)
	}
	return from, len(line)
}

// line is empty for a number outside of the text: the parser may point behind the last line.
func (doc *document) line(number int) []rune {
	if number < 1 || number > len(doc.lines) {
		return nil
	}
	return doc.lines[number-1]
}

// excerpt is the line of a place, masked, with the place in it.
func (doc *document) excerpt(at spot) (text string, mark [2]int) {
	line := doc.line(at.line)
	hide := make([]bool, len(line)+1)
	for _, s := range doc.hidden[at.line] {
		for i := s.from; i < min(s.to, len(line)); i++ {
			hide[i] = true
		}
	}
	from, to := at.column-1, min(at.column-1+at.length, len(line))
	var b []rune
	for i := 0; i <= len(line); i++ {
		if i == from {
			mark[0] = len(b)
		}
		if i == to {
			mark[1] = len(b) - mark[0]
		}
		switch {
		case i == len(line):
		case !hide[i] && (line[i] == '\t' || line[i] == '\r'):
			b = append(b, ' ')
		case !hide[i] && hiddenRune(line[i]):
			b = append(b, '\ufffd') // of one column, as the caret counts
		case !hide[i]:
			b = append(b, line[i])
		case i == 0 || !hide[i-1]:
			b = append(b, []rune(masked)...)
		}
	}
	mark[1] = max(mark[1], 1)
	return strings.TrimRight(string(b), " \r"), mark
}
