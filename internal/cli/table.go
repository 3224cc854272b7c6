package cli

import (
	"strings"
	"unicode/utf8"
)

// Table aligns columns with two spaces between them and no borders, so that awk
// can read it. Columns whose header is in Right are aligned right.
type Table struct {
	Header []string
	Right  map[int]bool
	Rows   [][]string
	// Widths are the least of the columns, in characters, for a table that is printed in
	// parts; Spread gives those of the part before.
	Widths []int
}

// Spread returns the widths of the columns.
func (t Table) Spread() []int {
	widths := append([]int(nil), t.Widths...)
	for _, row := range append([][]string{t.Header}, t.Rows...) {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// Lines returns the header, if there is one, and the rows, without trailing spaces.
func (t Table) Lines() []string {
	rows := t.Rows
	if t.Header != nil {
		rows = append([][]string{t.Header}, rows...)
	}
	widths := t.Spread()
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.Right[i] {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}
