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

// report collects tables and bars in the order in which the cases ran.
type report struct {
	w    io.Writer
	bars []bar
}

func (r *report) table(title string, header []string, rows [][]string) {
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
	r.bars = append(r.bars, bar{what, measured, want, held})
}

// finish prints the bars and reports whether all were held.
func (r *report) finish() bool {
	rows := make([][]string, 0, len(r.bars))
	ok := true
	for _, b := range r.bars {
		state := "held"
		if !b.held {
			state, ok = "MISSED", false
		}
		rows = append(rows, []string{b.what, b.measured, b.want, state})
	}
	r.table("Bars", []string{"what", "measured", "bar", ""}, rows)
	return ok
}

// spread prints min / median / max.
func spread(vs []float64, format string) string {
	return fmt.Sprintf(format+" / "+format+" / "+format, slices.Min(vs), median(vs), slices.Max(vs))
}
