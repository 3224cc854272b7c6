package main

import (
	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/inspect"
	"github.com/longshore-go/longshore/internal/table"
)

// messagePrinter prints messages as a table, by a pattern or as JSON lines, numbered as they come.
type messagePrinter struct {
	print   *cli.Printer
	pattern inspect.Format
	plain   bool                // by the pattern
	esc     func(string) string // makes texts safe for a terminal; nil: a pipe gets the bytes
	table   *table.Table
	n       int
}

// newMessagePrinter reads the pattern of --format.
func newMessagePrinter(p *cli.Printer, format string, terminal bool) (*messagePrinter, error) {
	if format != "" && p.JSON {
		return nil, &cli.UsageError{Text: "--format and --json exclude each other", Hint: "give one of them"}
	}
	pattern, err := inspect.ParseFormat(format)
	if err != nil {
		return nil, &cli.UsageError{Text: err.Error(), Hint: "see --help for the letters of a pattern"}
	}
	m := &messagePrinter{print: p, pattern: pattern, plain: format != ""}
	if terminal {
		m.esc = cli.Printable
	}
	m.table = p.Table(table.Column{Name: "#", Right: true}, table.Column{Name: "key", Min: 8}, table.Column{Name: "at"}, table.Column{Name: "type", Min: 8, Drop: 1},
		table.Column{Name: "size", Right: true}, table.Column{Name: "body", Min: 24})
	return m, nil
}

// add prints a message; a row of the table waits for flush.
func (m *messagePrinter) add(d *longshore.Delivery) error {
	m.n++
	switch {
	case m.print.JSON:
		return m.print.Line(inspect.NewDocument(m.n, d))
	case m.plain:
		return m.print.Printf("%s", m.pattern.Render(m.n, d, m.esc))
	}
	row := inspect.Row(m.n, d, max(m.table.Width, 60))
	for i := range row {
		row[i] = cli.Printable(row[i])
	}
	m.table.Add(row...)
	return nil
}

// flush prints the rows that wait.
func (m *messagePrinter) flush() error { return m.print.Rows(m.table) }
