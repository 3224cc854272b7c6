package router

import (
	"errors"
	"strings"
)

// pattern is RabbitMQ's for topics: words between dots, "*" is one word, "#" any
// number of them, none too.
type pattern []string

func parsePattern(s string) (pattern, error) {
	if s == "" {
		return nil, errors.New("the pattern is empty")
	}
	words := strings.Split(s, ".")
	for _, w := range words {
		if len(w) > 1 && strings.ContainsAny(w, "*#") {
			return nil, errors.New("\"*\" and \"#\" stand for whole words between dots")
		}
	}
	return words, nil
}

// match takes time in proportion to words times words, whatever the pattern is:
// routing keys come from outside.
func (p pattern) match(s string) bool {
	words := strings.Split(s, ".")
	if s == "" {
		words = nil
	}
	// reach[i]: the first i words of the pattern match what was read so far.
	reach := make([]bool, len(p)+1)
	reach[0] = true
	p.skip(reach)
	for _, w := range words {
		next := make([]bool, len(reach))
		for i, on := range reach[:len(p)] {
			switch {
			case !on:
			case p[i] == "#":
				next[i] = true
			case p[i] == "*" || p[i] == w:
				next[i+1] = true
			}
		}
		p.skip(next)
		reach = next
	}
	return reach[len(p)]
}

// skip lets each "#" stand for nothing.
func (p pattern) skip(reach []bool) {
	for i, w := range p {
		if reach[i] && w == "#" {
			reach[i+1] = true
		}
	}
}
