package inspect

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
)

// Format prints a delivery by a pattern of literal text, escapes and verbs, as
// kcat and rpk do.
type Format struct{ parts []part }

type part struct {
	text string
	verb byte // 0 = text
}

// Verbs lists what a format understands, for help texts.
const Verbs = `%k key, %v body, %h headers, %i id, %t queue or topic, %p partition, %o position, ` +
	`%T time, %c content type, %s size, %a attempt, %n number, %% percent, \n \t \\`

// ParseFormat reads a pattern. A newline is added if it does not end in one.
func ParseFormat(pattern string) (Format, error) {
	var f Format
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			f.parts = append(f.parts, part{text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '%' && c != '\\' {
			lit.WriteByte(c)
			continue
		}
		i++
		if i == len(pattern) {
			return f, fmt.Errorf("the format ends in %q", string(c))
		}
		next := pattern[i]
		switch {
		case c == '\\' && next == 'n':
			lit.WriteByte('\n')
		case c == '\\' && next == 't':
			lit.WriteByte('\t')
		case c == next:
			lit.WriteByte(c)
		case c == '%' && strings.IndexByte("kvhitpoTcsan", next) >= 0:
			flush()
			f.parts = append(f.parts, part{verb: next})
		default:
			return f, fmt.Errorf("the format has %q, which is none of: %s", string([]byte{c, next}), Verbs)
		}
	}
	if !strings.HasSuffix(lit.String(), "\n") {
		lit.WriteByte('\n')
	}
	flush()
	return f, nil
}

// Render returns the text of the n-th delivery. Key and body are as they are;
// whoever prints to a terminal makes them safe first by esc (nil = as they are).
func (f Format) Render(n int, d *longshore.Delivery, esc func(string) string) string {
	if esc == nil {
		esc = func(s string) string { return s }
	}
	var b strings.Builder
	for _, p := range f.parts {
		if p.verb == 0 {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(esc(value(p.verb, n, d)))
	}
	return b.String()
}

func value(verb byte, n int, d *longshore.Delivery) string {
	switch verb {
	case 'k':
		return string(d.Key)
	case 'v':
		return string(d.Body)
	case 'h':
		return headerText(d.Headers)
	case 'i':
		return longshore.Identity(d)
	case 't':
		return d.Origin.Topic
	case 'p':
		return strconv.Itoa(int(d.Origin.Partition))
	case 'o':
		return strconv.FormatUint(d.Origin.Position, 10)
	case 'T':
		if t := d.Timestamp; !t.IsZero() {
			return t.UTC().Format(time.RFC3339Nano)
		}
		return ""
	case 'c':
		return d.ContentType
	case 's':
		return strconv.Itoa(len(d.Body))
	case 'a':
		return strconv.Itoa(d.Attempt)
	default:
		return strconv.Itoa(n)
	}
}

func headerText(hs longshore.Headers) string {
	parts := make([]string, len(hs))
	for i, h := range hs {
		parts[i] = fmt.Sprintf("%s=%v", h.Name, plain(h.Value))
	}
	return strings.Join(parts, ",")
}

// plain makes bytes that are text readable.
func plain(v any) any {
	if b, ok := v.([]byte); ok {
		if utf8.Valid(b) {
			return string(b)
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	return v
}
