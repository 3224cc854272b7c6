package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// masked is what an excerpt shows in place of a secret.
const masked = "***"

// span is a part of a line, in characters from 0.
type span struct{ from, to int }

// hide keeps a scalar out of all excerpts. What it looks like in the file is not
// always its value, so if the two differ the rest of the line goes with it.
func (l *loader) hide(n *yaml.Node) {
	if n = resolved(n); n.Line == 0 || n.Kind != yaml.ScalarNode || n.Value == "" {
		return
	}
	from, to := l.extent(n)
	l.hidden[n.Line] = append(l.hidden[n.Line], span{from, to})
}

// hideAll hides every scalar below a node.
func (l *loader) hideAll(n *yaml.Node, depth int) {
	n = resolved(n)
	if n.Kind == yaml.ScalarNode {
		l.hide(n)
		return
	}
	for i, c := range n.Content {
		if depth > 0 && (n.Kind != yaml.MappingNode || i%2 == 1) {
			l.hideAll(c, depth-1)
		}
	}
}

// hideInURL hides what may be a password in a URL: from the first colon behind the
// scheme to the last @, or, where there is no @, a port that is not a number.
func (l *loader) hideInURL(n *yaml.Node) {
	secret, found := passwordIn(n.Value)
	if !found || n.Line == 0 {
		return
	}
	from, to := l.extent(n)
	line := string(l.line(n.Line)[from:to])
	at := strings.Index(line, secret)
	if at < 0 {
		l.hide(n)
		return
	}
	start := from + len([]rune(line[:at]))
	l.hidden[n.Line] = append(l.hidden[n.Line], span{start, start + len([]rune(secret))})
}

// passwordIn finds what may be a password in a URL.
func passwordIn(raw string) (secret string, found bool) {
	_, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return "", false
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		host, _, _ := strings.Cut(rest, "/")
		for h := range strings.SplitSeq(host, ",") {
			if _, port, ok := strings.Cut(h, ":"); ok && !strings.HasPrefix(h, "[") && strings.Trim(port, "0123456789") != "" {
				return port, true
			}
		}
		return "", false
	}
	_, secret, ok = strings.Cut(rest[:at], ":")
	return secret, ok && secret != ""
}

// maskURL is a URL for people.
func maskURL(raw string) string {
	if secret, found := passwordIn(raw); found {
		head, tail, _ := strings.Cut(raw, "://")
		return head + "://" + strings.Replace(tail, secret, masked, 1)
	}
	return raw
}

// extent is where a scalar stands in its line.
func (l *loader) extent(n *yaml.Node) (from, to int) {
	line := l.line(n.Line)
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

func (l *loader) line(number int) []rune {
	if number < 1 || number > len(l.lines) {
		return nil
	}
	return l.lines[number-1]
}

// excerpt is the line of a place, masked, with the place in it.
func (l *loader) excerpt(at spot) (text string, mark [2]int) {
	line := l.line(at.line)
	hide := make([]bool, len(line)+1)
	for _, s := range l.hidden[at.line] {
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
		case !hide[i] && line[i] == '\t':
			b = append(b, ' ')
		case !hide[i]:
			b = append(b, line[i])
		case i == 0 || !hide[i-1]:
			b = append(b, []rune(masked)...)
		}
	}
	mark[1] = max(mark[1], 1)
	return strings.TrimRight(string(b), " \r"), mark
}
