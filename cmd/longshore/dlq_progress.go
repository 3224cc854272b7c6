package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/internal/dlq"
)

// progress shows how far a replay or a purge has come, on stderr: a bar that is
// redrawn on a terminal, elsewhere a line every ten seconds.
type progress struct {
	print   *cli.Printer
	now     func() time.Time
	samples []sample // of the last ten seconds, the oldest first
	said    time.Time
	drawn   bool
}

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
	return &progress{print: p, now: time.Now, said: now, samples: []sample{{at: now}}}
}

func (p *progress) show(r dlq.Result) {
	if p.print.Quiet || p.print.JSON {
		return
	}
	now, n := p.now(), r.Done+r.Failed
	p.samples = append(p.samples, sample{now, n})
	for len(p.samples) > 2 && now.Sub(p.samples[0].at) > progressWindow {
		p.samples = p.samples[1:]
	}
	switch {
	case p.print.ErrTerminal:
		if p.drawn && now.Sub(p.said) < 100*time.Millisecond {
			return
		}
		fmt.Fprintf(p.print.Streams.Err, "\r\x1b[K%s", p.line(r))
		p.drawn, p.said = true, now
	case now.Sub(p.said) >= progressWindow:
		fmt.Fprintln(p.print.Streams.Err, p.line(r))
		p.said = now
	}
}

// end draws the last state and leaves the line.
func (p *progress) end(r dlq.Result) {
	if p.drawn {
		fmt.Fprintf(p.print.Streams.Err, "\r\x1b[K%s\n", p.line(r))
	}
}

// line is "▕████    ▏ 4/7  50/s  ETA 3 s".
func (p *progress) line(r dlq.Result) string {
	n := r.Done + r.Failed
	first, last := p.samples[0], p.samples[len(p.samples)-1]
	rate := 0.0
	if span := last.at.Sub(first.at).Seconds(); span > 0 {
		rate = float64(last.n-first.n) / span
	}
	if r.Total < int64(n) || r.Total == 0 {
		return fmt.Sprintf("%d  %s  ETA –", n, perSecond(rate))
	}
	eta := "–"
	if rate > 0 {
		left := time.Duration(float64(r.Total-int64(n)) / rate * float64(time.Second))
		eta = strings.ReplaceAll(left.Round(time.Second).String(), "m0s", "m")
	}
	full := int(int64(n) * barCells / r.Total)
	return fmt.Sprintf("▕%s%s▏ %d/%d  %s  ETA %s", strings.Repeat("█", full), strings.Repeat(" ", barCells-full), n, r.Total, perSecond(rate), eta)
}

func perSecond(rate float64) string {
	if rate >= 10 || rate == 0 {
		return fmt.Sprintf("%.0f/s", rate)
	}
	return fmt.Sprintf("%.1f/s", rate)
}
