package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Options are the flags that every verb has.
type Options struct {
	JSON    bool
	Quiet   bool   // errors only on Err
	Verbose bool   // debug log on Err
	Color   string // "auto", "always", "never"
}

// Printer writes answers to Out and everything else to Err.
type Printer struct {
	Streams
	Options
	outColor, errColor bool
}

// NewPrinter decides about colours once.
func NewPrinter(s Streams, o Options) *Printer {
	return &Printer{Streams: s, Options: o, outColor: colored(o.Color, s, s.OutTerminal), errColor: colored(o.Color, s, s.ErrTerminal)}
}

// colored follows the flag, then NO_COLOR, then CLICOLOR_FORCE, then whether
// there is a terminal that understands colours.
func colored(flag string, s Streams, terminal bool) bool {
	env := func(name string) string {
		if s.Env == nil {
			return ""
		}
		v, _ := s.Env(name)
		return v
	}
	switch {
	case flag == "always":
		return true
	case flag == "never", env("NO_COLOR") != "":
		return false
	case env("CLICOLOR_FORCE") != "" && env("CLICOLOR_FORCE") != "0":
		return true
	case env("CLICOLOR") == "0", env("TERM") == "dumb":
		return false
	}
	return terminal
}

// Color is a foreground colour of the terminal's own palette.
type Color string

// The colours in use: red for errors, yellow for what needs a look, green for
// what is well, cyan for help, faint for the rest.
const (
	Red    Color = "31"
	Yellow Color = "33"
	Green  Color = "32"
	Cyan   Color = "36"
	Faint  Color = "2"
	Bold   Color = "1"
)

func paint(on bool, c Color, s string) string {
	if !on || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// Colored reports whether the answer is painted.
func (p *Printer) Colored() bool { return p.outColor }

// PaintOut paints text for the answer.
func (p *Printer) PaintOut(c Color, s string) string { return paint(p.outColor, c, s) }

// PaintErr paints text for everything else.
func (p *Printer) PaintErr(c Color, s string) string { return paint(p.errColor, c, s) }

// Printf writes a part of the answer.
func (p *Printer) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Out, format, args...)
	return err
}

// Notef writes a line that is not the answer; -q silences it: JSON where errors
// are JSON.
func (p *Printer) Notef(format string, args ...any) {
	switch {
	case p.Quiet:
	case p.JSON:
		_ = encodeLine(p.Streams.Err, map[string]string{"note": strings.TrimSpace(fmt.Sprintf(format, args...))}) // a broken stderr cannot be reported
	default:
		fmt.Fprintf(p.Streams.Err, format+"\n", args...)
	}
}

// Document writes v as one JSON document.
func (p *Printer) Document(v any) error {
	enc := json.NewEncoder(p.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Line writes v as one line of a JSON stream.
func (p *Printer) Line(v any) error { return encodeLine(p.Out, v) }

func encodeLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Printable makes text from a broker safe for a terminal: control characters,
// escape sequences among them, become visible.
func Printable(s string) string {
	clean := func(r rune) bool { return unicode.IsPrint(r) || r == ' ' }
	if !strings.ContainsFunc(s, func(r rune) bool { return !clean(r) || r == unicode.ReplacementChar }) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case clean(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
