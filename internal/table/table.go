package table

import (
	"slices"
	"strings"
)

// gap separates two columns. Two spaces let awk -F'  +' split a row whose cells hold single spaces.
const gap = "  "

// indent precedes the lines that stand below a row.
const indent = "    "

// Column describes one column.
type Column struct {
	Name string
	// Right aligns the cells right, as numbers are.
	Right bool
	// Min is the width to which the column may be narrowed when the table does not fit; 0 keeps
	// the column as wide as its widest cell.
	Min int
	// Wrap continues a narrowed cell on the next line; without it the cell ends in "…".
	Wrap bool
	// Below moves the cells onto lines of their own, below their row, when the table does not fit.
	Below bool
	// Drop leaves the column out when narrowing is not enough; the highest number goes first, 0
	// never.
	Drop int
	// Tone finds the tone of a cell; nil leaves the column plain.
	Tone func(cell string) Tone
}

// Table collects rows and lays them out. A table may be printed in parts: each call of Lines
// returns the rows added since the last one, and only the first part has the header.
type Table struct {
	Columns []Column
	// Width of the terminal in characters. 0 stands for a file or a pipe: every row is one line,
	// nothing is left out, and states have no glyph, so that programs can read the table.
	Width int
	// Paint colours text; nil leaves it plain.
	Paint func(t Tone, text string) string
	// NoHeader leaves the header out.
	NoHeader bool

	rows [][]string
	// widest are the widths of the columns' widest cells so far: they keep the parts aligned.
	widest []int
	began  bool // the header was returned
}

// Add appends a row. Its cells must be printable: see cli.Printable.
func (t *Table) Add(cells ...string) {
	row := slices.Clone(cells)
	for i := range row {
		if row[i] != "" && t.Width > 0 && t.tone(i, row[i]) != Plain {
			row[i] = t.tone(i, row[i]).Glyph() + " " + row[i]
		}
	}
	t.rows = append(t.rows, row)
}

// Len returns how many rows wait for Lines.
func (t *Table) Len() int { return len(t.rows) }

// tone is that of a cell without its glyph.
func (t *Table) tone(column int, cell string) Tone {
	if column >= len(t.Columns) || t.Columns[column].Tone == nil {
		return Plain
	}
	return t.Columns[column].Tone(cell)
}

// Lines returns the header and the rows added since the last call, without trailing spaces.
func (t *Table) Lines() []string {
	t.measure()
	l := fit(t.Columns, t.widest, t.Width)
	var lines []string
	if !t.began && !t.NoHeader && len(t.rows) > 0 {
		header := make([]string, len(t.Columns))
		for i, c := range t.Columns {
			if l.kind[i] != below {
				header[i] = c.Name
			}
		}
		lines = append(lines, t.row(header, l, true)...)
	}
	for _, row := range t.rows {
		lines = append(lines, t.row(row, l, false)...)
	}
	t.began = t.began || len(t.rows) > 0
	t.rows = nil
	return lines
}

// Hidden returns the names of the columns that Width leaves no room for.
func (t *Table) Hidden() []string {
	t.measure()
	l := fit(t.Columns, t.widest, t.Width)
	var names []string
	for i, c := range t.Columns {
		if l.kind[i] == hidden && c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// measure widens the columns to the rows that wait.
func (t *Table) measure() {
	if t.widest == nil {
		t.widest = make([]int, len(t.Columns))
		if !t.NoHeader {
			for i, c := range t.Columns {
				t.widest[i] = Width(c.Name)
			}
		}
	}
	for _, row := range t.rows {
		for i, cell := range row[:min(len(row), len(t.Columns))] {
			t.widest[i] = max(t.widest[i], Width(cell))
		}
	}
}

// parts returns the lines of the cells that stand in the row, and how many lines the
// longest has.
func (t *Table) parts(cells []string, l layout, header bool) (parts [][]string, height int) {
	parts, height = make([][]string, len(t.Columns)), 1
	for i, c := range t.Columns {
		if i >= len(cells) || l.kind[i] != beside {
			continue
		}
		if c.Wrap && !header {
			parts[i] = wrap(cells[i], l.width[i])
		} else {
			parts[i] = []string{cut(cells[i], l.width[i])}
		}
		height = max(height, len(parts[i]))
	}
	return parts, height
}

// row returns the lines of one row: its first line, the continuations of wrapped cells, and
// the cells that stand below.
func (t *Table) row(cells []string, l layout, header bool) []string {
	parts, height := t.parts(cells, l, header)
	lines := make([]string, 0, height)
	for n := range height {
		var b strings.Builder
		for i, c := range t.Columns {
			if l.kind[i] != beside {
				continue
			}
			if b.Len() > 0 || i > l.first {
				b.WriteString(gap)
			}
			cell := ""
			if n < len(parts[i]) {
				cell = parts[i][n]
			}
			b.WriteString(pad(cell, t.painted(i, cell, cells, header), l.width[i], c.Right))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for i := range t.Columns {
		if l.kind[i] != below || i >= len(cells) || strings.Trim(cells[i], "-–") == "" {
			continue // there is no value
		}
		for _, part := range wrap(cells[i], max(t.Width-len(indent), 1)) {
			lines = append(lines, indent+t.painted(i, part, cells, header))
		}
	}
	return lines
}

// painted is a part of a cell in the cell's tone.
func (t *Table) painted(column int, part string, cells []string, header bool) string {
	if t.Paint == nil || part == "" {
		return part
	}
	if header {
		return t.Paint(Header, part)
	}
	word := cells[column]
	if _, after, glyphed := strings.Cut(word, " "); t.Width > 0 && glyphed && t.tone(column, after) != Plain {
		word = after
	}
	if tone := t.tone(column, word); tone != Plain {
		return t.Paint(tone, part)
	}
	return part
}

// pad fills a cell up to width; shown is the cell with its colour, which takes no room.
func pad(cell, shown string, width int, right bool) string {
	fill := strings.Repeat(" ", max(width-Width(cell), 0))
	if right {
		return fill + shown
	}
	return shown + fill
}
