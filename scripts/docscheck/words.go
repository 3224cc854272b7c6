package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	// figures are tables that a command writes between two comments, as in autoscaling.md.
	figures = regexp.MustCompile(`(?s)<!-- (figures: |case )[^>]*-->.*?<!-- end[^>]*-->`)
)

// counted reports whether the words of a document count towards what a user has to read.
// Decisions are for contributors; the figures of faults.md and benchmarks.md are generated.
func counted(document string) bool {
	path := filepath.ToSlash(document)
	return path != "CONTRIBUTING.md" && !strings.HasPrefix(path, "docs/adr/") && !slices.Contains([]string{"docs/faults.md", "docs/benchmarks.md"}, path)
}

// words counts the words of a Markdown text. Code blocks, comments, generated figures and
// the bars of tables are not words.
func words(text string) (n int) {
	inCode := false
	for line := range strings.Lines(comment.ReplaceAllString(figures.ReplaceAllString(text, ""), "")) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
			continue
		}
		if inCode {
			continue
		}
		for _, field := range strings.Fields(line) {
			if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
				n++
			}
		}
	}
	return n
}
