package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/table"
)

// Frame redraws the state at the bottom of a terminal while events scroll above.
type Frame struct {
	w     io.Writer
	paint Painter
	width func() int
	lines int // of the frame on the screen
	rows  []Row
}

// NewFrame writes to a terminal; width asks for its columns.
func NewFrame(w io.Writer, paint Painter, width func() int) *Frame {
	return &Frame{w: w, paint: paint, width: width}
}

// Begin implements Show.
func (f *Frame) Begin(h Header) { fmt.Fprint(f.w, pageLine(h), f.fit(headLine(h)), "\n") }

// Event implements Show.
func (f *Frame) Event(e Event) { f.draw(eventLine(e, f.paint)) }

// Frame implements Show.
func (f *Frame) Frame(_ time.Duration, rows []Row) {
	f.rows = rows
	f.draw("")
}

// End leaves the last frame on the screen.
func (f *Frame) End() {}

// draw replaces the frame by an event, if there is one, and a new frame, in one
// write so that nothing flickers.
func (f *Frame) draw(event string) {
	var b strings.Builder
	if f.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", f.lines) // up to where it began, and clear what follows
	}
	f.lines = 0
	if event != "" {
		b.WriteString(f.fit(event) + "\n")
	}
	for _, line := range f.table() {
		b.WriteString(line + "\n")
		f.lines++
	}
	_, _ = io.WriteString(f.w, b.String()) // a terminal that is gone needs no frame
}

func (f *Frame) table() []string {
	if len(f.rows) == 0 {
		return nil
	}
	t := table.Table{Columns: []table.Column{{}, {Name: "rate/s", Right: true}, {Name: "backlog", Right: true}, {Name: "running", Right: true},
		{Name: "workers", Right: true}, {}, {Name: "retried", Right: true}, {Name: "dead", Right: true}, {Name: "state"}}}
	for _, r := range f.rows {
		t.Add(r.Broker, thousands(r.Rate), thousands(r.Backlog), fmt.Sprint(r.Running),
			fmt.Sprintf("%d of %d", r.Workers, r.Max), fmt.Sprintf("%-*s", historySize, spark(r.History, r.Max)),
			thousands(r.Retried), thousands(r.Dead), r.State)
	}
	lines := t.Lines()
	for i := range lines {
		lines[i] = f.fit(lines[i])
		if i == 0 {
			lines[i] = f.paint.do(cli.Faint, lines[i])
			continue
		}
		row := f.rows[i-1]
		c := cli.Green
		if row.Trouble {
			c = cli.Yellow
		}
		if plain, ok := strings.CutSuffix(lines[i], row.State); ok {
			lines[i] = plain + f.paint.do(c, row.State)
		}
	}
	return lines
}

// fit cuts a line to the terminal: one that wrapped would spoil the redrawing.
// Lines with colours in them are counted without.
func (f *Frame) fit(line string) string {
	width := 0
	if f.width != nil {
		width = f.width()
	}
	if width <= 0 {
		width = 80
	}
	if utf8.RuneCountInString(line)-invisible(line) <= width {
		return line
	}
	var b strings.Builder
	shown, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case shown == width-1:
			continue
		default:
			shown++
		}
		b.WriteRune(r)
	}
	return b.String()
}

// invisible counts the runes of colour sequences.
func invisible(line string) int {
	n, escape := 0, false
	for _, r := range line {
		escape = escape || r == '\x1b'
		if escape {
			n++
			escape = r != 'm'
		}
	}
	return n
}
