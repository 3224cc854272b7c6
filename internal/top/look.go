package top

import (
	"fmt"
	"math"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/longshore-go/longshore/internal/cli"
)

// Look is what the terminal can show.
type Look struct {
	// Color allows colours and other attributes.
	Color bool
	// ASCII is for terminals whose locale is not UTF-8.
	ASCII bool
}

// tone is what a text means; never its meaning alone.
type tone uint8

const (
	ordinary tone = iota
	faint
	strong
	good
	warning
	bad
	chosen
)

func (l Look) paint(as tone, text string) string {
	if !l.Color || text == "" {
		return text
	}
	s := lipgloss.NewStyle()
	switch as {
	case ordinary:
		return text
	case faint:
		s = s.Faint(true)
	case strong:
		s = s.Bold(true)
	case good:
		s = s.Foreground(lipgloss.Green)
	case warning:
		s = s.Foreground(lipgloss.Yellow)
	case bad:
		s = s.Foreground(lipgloss.Red).Bold(true)
	case chosen:
		s = s.Reverse(true)
	}
	return s.Render(text)
}

// in writes text in the characters that the terminal has.
func (l Look) in(text string) string {
	if !l.ASCII {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch r {
		case '·', '•':
			return '|'
		case '–', '—':
			return '-'
		case '…':
			return '.'
		case '×':
			return 'x'
		case '→', '›', '▸':
			return '>'
		case '‖':
			return '='
		case '●':
			return '*'
		case '▲':
			return '!'
		case '■':
			return '#'
		case '○':
			return 'o'
		case '≠':
			return '~'
		case 'µ':
			return 'u'
		}
		if r > 0x7e {
			return '?'
		}
		return r
	}, text)
}

// longest bounds the examined part of a text from outside.
const longest = 512

// clean makes foreign text safe for a terminal: nothing in it moves the cursor, changes a
// colour or the direction of writing.
func clean(s string) string {
	if len(s) > longest {
		s = s[:longest]
	}
	return cli.Printable(strings.ToValidUTF8(s, `\ufffd`))
}

// fit cuts a text to a width and fills it up with blanks.
func (l Look) fit(text string, width int, right bool) string {
	if width <= 0 {
		return ""
	}
	text = l.in(ansi.Truncate(l.in(text), width, l.in("…")))
	pad := strings.Repeat(" ", max(width-ansi.StringWidth(text), 0))
	if right {
		return pad + text
	}
	return text + pad
}

// cut is fit without blanks.
func (l Look) cut(text string, width int) string {
	return l.in(ansi.Truncate(l.in(text), max(width, 0), l.in("…")))
}

// wrap breaks a text at blanks into at most n lines.
func (l Look) wrap(text string, width, n int) []string {
	lines := strings.Split(ansi.Wrap(l.in(text), max(width, 1), ""), "\n")
	if len(lines) > n {
		rest := strings.Join(lines[n-1:], " ")
		lines = append(lines[:n-1], l.cut(rest, width))
	}
	return lines
}

// spark draws values as a row of bars, the newest at the right. The scale begins at 0.
// Negative values are gaps.
func (l Look) spark(values []float64, width int) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	if l.ASCII {
		bars = []rune(`_.-:=+*#`)
	}
	if width <= 0 {
		return ""
	}
	values = squeeze(values, width)
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", width-len(values)))
	for _, v := range values {
		switch {
		case v < 0:
			b.WriteByte(' ')
		case top == 0:
			b.WriteRune(bars[0])
		default:
			b.WriteRune(bars[int(math.Round(v/top*float64(len(bars)-1)))])
		}
	}
	return b.String()
}

// squeeze makes at most width values, each the largest of those in its place.
func squeeze(values []float64, width int) []float64 {
	n := len(values)
	if n <= width {
		return values
	}
	out := make([]float64, width)
	for i := range out {
		out[i] = -1
		for _, v := range values[i*n/width : (i+1)*n/width] {
			out[i] = max(out[i], v)
		}
	}
	return out
}

// number writes a count in at most seven characters.
func number(n float64) string {
	switch {
	case n < 0:
		return "–"
	case n < 10 && n != math.Trunc(n):
		return fmt.Sprintf("%.1f", n)
	case n < 1e6:
		return thousands(int64(math.Round(n)))
	case n < 1e9:
		return fmt.Sprintf("%.1fM", n/1e6)
	case n < 1e12:
		return fmt.Sprintf("%.1fG", n/1e9)
	}
	return "many"
}

func thousands(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// span writes seconds in at most seven characters.
func span(seconds float64) string {
	switch {
	case seconds <= 0:
		return "–"
	case seconds < 0.001:
		return fmt.Sprintf("%.0f µs", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1e3)
	case seconds < 100:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 6000:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.1f h", seconds/3600)
	}
	return fmt.Sprintf("%.0f d", seconds/86400)
}

// ago is how long ago a time was.
func ago(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return span(max(now.Sub(at).Seconds(), 0.001)) + " ago"
}

// clock is a time of day where the viewer is, with the date if it is another day's.
func clock(now, at time.Time) string {
	at = at.In(now.Location())
	if now.YearDay() == at.YearDay() && now.Year() == at.Year() {
		return at.Format(time.TimeOnly)
	}
	return at.Format("2 Jan 15:04")
}
