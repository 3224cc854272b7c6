package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/cli"
)

// Painter colours a word; nil leaves it as it is.
type Painter func(cli.Color, string) string

func (p Painter) do(c cli.Color, s string) string {
	if p == nil {
		return s
	}
	return p(c, s)
}

// Plain writes event lines and one status line a second: for pipes and CI. A
// write error only means that the reader has gone.
type Plain struct {
	w     io.Writer
	paint Painter
	next  time.Duration
}

// NewPlain writes to w.
func NewPlain(w io.Writer, paint Painter) *Plain { return &Plain{w: w, paint: paint} }

// Begin implements Show.
func (p *Plain) Begin(h Header) { fmt.Fprint(p.w, pageLine(h), headLine(h), "\n") }

// Event implements Show.
func (p *Plain) Event(e Event) { fmt.Fprintln(p.w, eventLine(e, p.paint)) }

// Frame implements Show.
func (p *Plain) Frame(at time.Duration, rows []Row) {
	if at < p.next {
		return
	}
	p.next = at.Truncate(time.Second) + time.Second
	parts := make([]string, len(rows))
	for i, r := range rows {
		parts[i] = fmt.Sprintf("%s %s: %s/s, backlog %s, %d running on %d/%d workers, retried %d, dead %d",
			r.Broker, r.State, thousands(r.Rate), thousands(r.Backlog), r.Running, r.Workers, r.Max, r.Retried, r.Dead)
	}
	fmt.Fprintln(p.w, eventLine(Event{At: at, Kind: "status", Text: strings.Join(parts, " · ")}, p.paint))
}

// End implements Show.
func (p *Plain) End() {}

// pageLine is the first line: where to watch. It is never cut.
func pageLine(h Header) string {
	if h.Page == "" {
		return ""
	}
	return "watch it at " + h.Page + "   (logs one browser in)\n"
}

func headLine(h Header) string {
	lasts := h.For.String()
	if h.Stay {
		lasts = "until Ctrl-C"
	}
	return fmt.Sprintf("longshore demo   %s   %d keys, order by key   %s   seed %d   Ctrl-C drains",
		strings.Join(h.Brokers, " · "), h.Keys, lasts, h.Seed)
}

func eventLine(e Event, paint Painter) string {
	kind := fmt.Sprintf("%-9s", e.Kind)
	switch e.Kind {
	case "fault":
		kind = paint.do(cli.Red, kind)
	case "throttle", "poison":
		kind = paint.do(cli.Yellow, kind)
	case "recover":
		kind = paint.do(cli.Green, kind)
	case "status":
		return paint.do(cli.Faint, fmt.Sprintf("%5.1f %s %s", e.At.Seconds(), kind, e.Text))
	}
	return fmt.Sprintf("%5.1f %s %s", e.At.Seconds(), kind, e.Text)
}
