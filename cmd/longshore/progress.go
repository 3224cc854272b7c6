package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
)

// progress shows on stderr how far long work has come: a bar that is redrawn on a terminal, elsewhere
// a line every ten seconds.
type progress struct {
	now     func() time.Time
	samples []sample // of the last ten seconds, the oldest first
	shown   liveLine
}

// liveLine says on stderr how work goes on: it is redrawn on a terminal, elsewhere a line follows
// every ten seconds.
type liveLine struct {
	print *cli.Printer
	said  time.Time // when it was shown last
	drawn bool      // it stands on the terminal
}

// show shows the text, if it is time to.
func (l *liveLine) show(now time.Time, text func() string) {
	switch {
	case l.print.Quiet || l.print.JSON:
	case l.print.ErrTerminal:
		if l.drawn && now.Sub(l.said) < 100*time.Millisecond {
			return
		}
		fmt.Fprintf(l.print.Streams.Err, "\r\x1b[K%s", text())
		l.drawn, l.said = true, now
	case now.Sub(l.said) >= progressWindow:
		fmt.Fprintln(l.print.Streams.Err, text())
		l.said = now
	}
}

// clear makes room on the terminal for another line.
func (l *liveLine) clear() {
	if l.drawn {
		fmt.Fprint(l.print.Streams.Err, "\r\x1b[K")
		l.drawn = false
	}
}

// sample is a point of the recent past, from which the rate is taken. The average since the start would
// hide that a broker has become slow.
type sample struct {
	at time.Time
	n  int
}

const (
	progressWindow = 10 * time.Second
	barCells       = 8
)

func newProgress(p *cli.Printer) *progress {
	now := time.Now()
	return &progress{now: time.Now, samples: []sample{{at: now}}, shown: liveLine{print: p, said: now}}
}

// show notes that n of total are done; a total below n is not known.
func (p *progress) show(n int, total int64) {
	now := p.now()
	p.samples = append(p.samples, sample{now, n})
	for len(p.samples) > 2 && now.Sub(p.samples[0].at) > progressWindow {
		p.samples = p.samples[1:]
	}
	p.shown.show(now, func() string { return p.line(n, total) })
}

// end draws the last state and leaves the line.
func (p *progress) end(n int, total int64) {
	if p.shown.drawn {
		fmt.Fprintf(p.shown.print.Streams.Err, "\r\x1b[K%s\n", p.line(n, total))
	}
}

// line is "▕████    ▏ 4/7  50/s  ETA 3 s".
func (p *progress) line(n int, total int64) string {
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	rate := 0.0
	if span := last.at.Sub(first.at).Seconds(); span > 0 {
		rate = float64(last.n-first.n) / span
	}
	if total < int64(n) || total == 0 {
		return fmt.Sprintf("%d  %s  ETA –", n, perSecond(rate))
	}
	eta := "–"
	if rate > 0 {
		left := time.Duration(float64(total-int64(n)) / rate * float64(time.Second))
		eta = strings.ReplaceAll(left.Round(time.Second).String(), "m0s", "m")
	}
	full := int(int64(n) * barCells / total)
	return fmt.Sprintf("▕%s%s▏ %d/%d  %s  ETA %s", strings.Repeat("█", full), strings.Repeat(" ", barCells-full), n, total, perSecond(rate), eta)
}

func perSecond(rate float64) string {
	if rate >= 10 || rate == 0 {
		return fmt.Sprintf("%.0f/s", rate)
	}
	return fmt.Sprintf("%.1f/s", rate)
}

// ofJob shows a replay or a purge.
func (p *progress) ofJob(r dlq.Result) { p.show(r.Done+r.Failed, r.Total) }

// endJob is end for a replay or a purge.
func (p *progress) endJob(r dlq.Result) { p.end(r.Done+r.Failed, r.Total) }
