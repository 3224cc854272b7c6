package table

import "slices"

// kind says where a column's cells stand.
type kind int

const (
	beside kind = iota // in the row
	below              // on lines of their own below the row
	hidden             // nowhere
)

// layout is the outcome of fit.
type layout struct {
	kind  []kind
	width []int
	first int // the first column that stands in the row
}

// fit decides where each column stands and how wide it is, so that the row takes at most width
// characters: first the columns that may stand below leave the row, then columns are dropped
// until the rest fits at its least widths, then the widest ones are narrowed. A table that does
// not fit even so is as narrow as it can be.
func fit(columns []Column, widest []int, width int) layout {
	l := layout{kind: make([]kind, len(columns)), width: slices.Clone(widest)}
	if width <= 0 || l.total(l.width) <= width {
		return l
	}
	for i, c := range columns {
		if c.Below {
			l.kind[i] = below
		}
	}
	least := slices.Clone(widest)
	for i, c := range columns {
		if c.Min > 0 {
			least[i] = min(widest[i], max(c.Min, Width(c.Name)))
		}
	}
	for l.total(least) > width {
		next := l.nextToDrop(columns)
		if next < 0 {
			break
		}
		l.kind[next] = hidden
	}
	for l.total(l.width) > width {
		i := l.widestAbove(least)
		if i < 0 {
			break
		}
		l.width[i]--
	}
	l.first = slices.Index(l.kind, beside)
	return l
}

// total is the width of a row whose columns have these widths.
func (l *layout) total(widths []int) (sum int) {
	shown := 0
	for i, w := range widths {
		if l.kind[i] == beside {
			sum += w
			shown++
		}
	}
	return sum + max(shown-1, 0)*len(gap)
}

// nextToDrop returns the column that goes first of those that may go, -1 if there is none.
func (l *layout) nextToDrop(columns []Column) int {
	next := -1
	for i, c := range columns {
		if c.Drop > 0 && l.kind[i] == beside && (next < 0 || c.Drop > columns[next].Drop) {
			next = i
		}
	}
	return next
}

// widestAbove returns the widest column that may still become narrower, -1 if there is none.
func (l *layout) widestAbove(least []int) int {
	widest := -1
	for i, w := range l.width {
		if l.kind[i] == beside && w > least[i] && (widest < 0 || w > l.width[widest]) {
			widest = i
		}
	}
	return widest
}
