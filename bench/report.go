package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// bar is a promise with what was measured.
type bar struct {
	what     string
	measured string
	want     string
	held     bool
}

func (b bar) row() []string {
	state := "held"
	if !b.held {
		state = "MISSED"
	}
	return []string{b.what, b.measured, b.want, state}
}

// report collects tables and bars in the order in which the cases ran.
type report struct {
	w        io.Writer
	bars     []bar
	sections []*section // for the page, the last is that of the running case
}

// begin opens the section of a case.
func (r *report) begin(name string, rounds int) {
	r.sections = append(r.sections, &section{name: name, rounds: rounds})
}

// drop forgets the section of a case that failed.
func (r *report) drop() { r.sections = r.sections[:len(r.sections)-1] }

func (r *report) table(title string, header []string, rows [][]string) {
	s := r.sections[len(r.sections)-1]
	fmt.Fprintf(&s.body, "%s:\n\n%s\n", title, markdown(header, rows))
	r.print(title, header, rows)
}

func (r *report) print(title string, header []string, rows [][]string) {
	fmt.Fprintf(r.w, "\n%s\n\n", title)
	tw := tabwriter.NewWriter(r.w, 2, 4, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	for _, row := range rows {
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if err := tw.Flush(); err != nil {
		fmt.Fprintln(r.w, err)
	}
}

func (r *report) bar(what, measured, want string, held bool) {
	b := bar{what, measured, want, held}
	r.bars = append(r.bars, b)
	s := r.sections[len(r.sections)-1]
	s.bars = append(s.bars, b.row())
}

// finish prints the bars and reports whether all were held.
func (r *report) finish() bool {
	rows := make([][]string, 0, len(r.bars))
	ok := true
	for _, b := range r.bars {
		ok = ok && b.held
		rows = append(rows, b.row())
	}
	r.print("Bars", []string{"what", "measured", "bar", ""}, rows)
	return ok
}

// spread prints min / median / max.
func spread(vs []float64, format string) string {
	return fmt.Sprintf(format+" / "+format+" / "+format, slices.Min(vs), median(vs), slices.Max(vs))
}
