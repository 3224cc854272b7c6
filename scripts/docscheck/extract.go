package main

import (
	"fmt"
	"strings"
)

// block is one piece of Go code in a document.
type block struct {
	file    string
	line    int // of the code's first line
	code    string
	snippet bool
	prelude string // declarations that the text before takes for granted
}

// extract returns the blocks of a Markdown text that are to be compiled.
func extract(file, text string) ([]block, error) {
	var (
		blocks  []block
		prelude strings.Builder
		lines   = strings.Split(text, "\n")
	)
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		switch {
		case line == "<!-- docscheck":
			code, end, err := until(file, lines, i, "-->")
			if err != nil {
				return nil, err
			}
			prelude.WriteString(code + "\n")
			i = end
		case strings.HasPrefix(line, "```"):
			code, end, err := until(file, lines, i, "```")
			if err != nil {
				return nil, err
			}
			b := block{file: file, line: i + 2, code: code, prelude: prelude.String()}
			compile, err := b.classify(strings.Fields(strings.TrimLeft(line, "`")))
			if err != nil {
				return nil, err
			}
			if compile {
				blocks = append(blocks, b)
			}
			i = end
		}
	}
	return blocks, nil
}

// until returns the lines between start and the line that is end.
func until(file string, lines []string, start int, end string) (code string, last int, err error) {
	for i := start + 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) == end {
			return strings.Join(lines[start+1:i], "\n"), i, nil
		}
	}
	return "", 0, fmt.Errorf("%s:%d: no %s ends this block", file, start+1, end)
}

// classify reads the words behind the fence and says whether to compile.
func (b *block) classify(info []string) (compile bool, err error) {
	if len(info) == 0 || info[0] != "go" {
		return false, nil
	}
	switch {
	case len(info) == 1 && strings.HasPrefix(strings.TrimSpace(b.code), "package "):
		return true, nil
	case len(info) == 2 && info[1] == "snippet":
		b.snippet = true
		return true, nil
	case len(info) > 2 && info[1] == "ignore":
		return false, nil
	}
	return false, fmt.Errorf("%s:%d: this ```go block is not a whole program; mark it `go snippet`, or `go ignore` and why", b.file, b.line)
}
