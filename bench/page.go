package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// section is what one case says on the page.
type section struct {
	name   string
	rounds int
	body   strings.Builder
	bars   [][]string
}

// markdown renders a table; a | inside a cell would end it.
func markdown(header []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + cmp.Or(strings.ReplaceAll(c, "|", `\|`), " ") + " ")
		}
		b.WriteString("|\n")
	}
	line(header)
	b.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// text is the section with what tells how far it can be trusted: its own date and
// machine, because sections of other runs stand beside it.
func (s *section) text(o options, about string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\nRounds: %d. Messages: %g × the full number. Rerun: `make bench BENCHFLAGS='-case %s'`.\n\n", s.name, about, s.rounds, o.scale, s.name)
	if s.rounds < fullRounds || o.scale < 1 {
		b.WriteString("**Reduced run: fewer rounds or messages than the bars need. It shows that the case works, not how fast it is.**\n\n")
	}
	b.WriteString(s.body.String())
	if len(s.bars) > 0 {
		b.WriteString(markdown([]string{"bar", "measured", "wanted", ""}, s.bars))
	}
	return b.String()
}

var sections = regexp.MustCompile(`(?s)<!-- case (\S+) -->\n(.*?)<!-- end -->\n`)

// mergePage puts the sections of this run over those of the page as it was.
func mergePage(old string, fresh map[string]string) string {
	texts := map[string]string{}
	for _, m := range sections.FindAllStringSubmatch(old, -1) {
		texts[m[1]] = m[2]
	}
	for name, text := range fresh {
		texts[name] = text
	}
	var b strings.Builder
	b.WriteString("# Benchmarks\n" + strings.TrimRight(pageSummary, "\n") + "\n" + pageHead)
	for _, c := range cases() {
		if text, ok := texts[c.name]; ok {
			fmt.Fprintf(&b, "\n<!-- case %s -->\n%s<!-- end -->\n", c.name, text)
		}
	}
	return b.String()
}

// pageSummary is what a visitor reads first. It is written by hand from the tables.
//
//go:embed summary.md
var pageSummary string

const pageHead = `
Written by ` + "`make bench`" + `; do not edit. Each section has the date, machine and versions of
the run that it is from: a case that was not run again keeps its former text. Variants run
one after the other in each round; a ratio is taken within a round. Where a column names
no spread, it is the median (of an even number of rounds the upper of the middle two), or
for a case without rounds the one measurement. Of Kafka and ElasticMQ no version is asked.
`

// writePage writes the page with what r collected.
func writePage(path string, o options, r *report) error {
	old, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	about := machine()
	fresh := map[string]string{}
	for _, s := range r.sections {
		fresh[s.name] = s.text(o, about)
	}
	return os.WriteFile(path, []byte(mergePage(string(old), fresh)), 0o644) //nolint:gosec // a page of the documentation
}

// writeInto puts the sections where the page, written by hand, has their marks.
func writeInto(path string, o options, r *report) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(page)
	for _, s := range r.sections {
		begin, end := fmt.Sprintf("<!-- case %s -->\n", s.name), "<!-- end -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return fmt.Errorf("%s has no place for case %s", path, s.name)
		}
		reduced := ""
		if o.scale < 1 {
			reduced = fmt.Sprintf(" **A reduced run: %g × the full numbers.**", o.scale)
		}
		text = before + begin + machine() + reduced + "\n\n" + s.body.String() + end + after
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}
