package cli

import (
	"strings"

	"github.com/longshore-go/longshore/internal/table"
)

// defaultWidth is that of a terminal that does not report its own.
const defaultWidth = 80

// Table starts a table for the answer. On a terminal it fits the terminal's width and its
// states have glyphs; in a file or a pipe each row is one line in full.
func (p *Printer) Table(columns ...table.Column) *table.Table {
	return &table.Table{Columns: columns, Width: p.TableWidth(), Paint: p.paintTone}
}

// TableWidth is the width that a table of the answer has; 0 means no limit.
func (p *Printer) TableWidth() int {
	if !p.OutTerminal {
		return 0
	}
	if p.Width != nil {
		if w := p.Width(); w > 0 {
			return w
		}
	}
	return defaultWidth
}

// paintTone colours a cell of the answer.
func (p *Printer) paintTone(t table.Tone, s string) string {
	switch t {
	case table.Good:
		return p.PaintOut(Green, s)
	case table.Note:
		return p.PaintOut(Cyan, s)
	case table.Warn:
		return p.PaintOut(Yellow, s)
	case table.Bad:
		return p.PaintOut(Red, s)
	case table.Header:
		return p.PaintOut(Bold, s)
	case table.Plain:
	}
	return s
}

// Rows prints the rows of t that were not printed yet.
func (p *Printer) Rows(t *table.Table) error {
	if t.Len() == 0 {
		return nil
	}
	return p.Printf("%s\n", strings.Join(t.Lines(), "\n"))
}

// NoteHidden names the columns that the terminal was too narrow for.
func (p *Printer) NoteHidden(t *table.Table) {
	if names := t.Hidden(); len(names) > 0 {
		p.Notef("the terminal is too narrow for %s; --json has everything", strings.Join(names, ", "))
	}
}
