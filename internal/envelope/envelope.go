package envelope

import (
	"encoding/json"
	"hash/crc32"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
)

// Header is the name of the header that holds an envelope, and UserPrefix what
// is put before a user's header of a name that would be taken for ours.
const (
	Header     = "longshore-env"
	UserPrefix = "longshore-u-"
)

// Envelope is what did not fit. The zero value is empty.
type Envelope struct {
	ID   string
	Via  string
	Time int64 // nanoseconds since 1970; 0 = none

	Key    []byte
	HasKey bool // Key is the key, also if it is empty
	NoKey  bool // the key is nil

	Body Form

	// Headers are all headers in order if HasHeaders is set. In an entry with Native
	// the value is in the broker's own header of that name.
	Headers    []Entry
	HasHeaders bool

	Properties map[string]string
	Broker     map[string]string
}

// Entry is one header.
type Entry struct {
	longshore.Header
	Native bool
}

// wire is the JSON form.
type wire struct {
	ID      string            `json:"id,omitempty"`
	Via     string            `json:"via,omitempty"`
	Time    int64             `json:"t,omitempty"`
	Key     *[]byte           `json:"k,omitempty"`
	NoKey   bool              `json:"kn,omitempty"`
	Body    string            `json:"b,omitempty"`
	Headers *[][]any          `json:"h,omitempty"`
	Props   map[string]string `json:"p,omitempty"`
	Broker  map[string]string `json:"br,omitempty"`
}

const version = "1."

// IsEmpty reports whether there is nothing to pack.
func (e *Envelope) IsEmpty() bool {
	return e.ID == "" && e.Via == "" && e.Time == 0 && !e.HasKey && !e.NoKey && e.Body == Plain &&
		!e.HasHeaders && len(e.Properties) == 0 && len(e.Broker) == 0
}

// Encode returns the text; "" if there is nothing to pack.
func (e *Envelope) Encode() string {
	if e.IsEmpty() {
		return ""
	}
	w := wire{ID: e.ID, Via: e.Via, Time: e.Time, NoKey: e.NoKey, Body: string(e.Body), Props: e.Properties, Broker: e.Broker}
	if e.HasKey {
		k := append([]byte{}, e.Key...)
		w.Key = &k
	}
	if e.HasHeaders {
		h := make([][]any, len(e.Headers))
		for i, x := range e.Headers {
			h[i] = packEntry(x)
		}
		w.Headers = &h
	}
	text, err := json.Marshal(w)
	if err != nil {
		return "" // it holds nothing that JSON has not
	}
	ascii := toASCII(text)
	return version + check(ascii) + "." + ascii
}

// Decode reads a text. false: it is not ours or was changed on the way.
func Decode(text string) (Envelope, bool) {
	var e Envelope
	rest, ok := strings.CutPrefix(text, version)
	if !ok || len(rest) < 6 || rest[4] != '.' || check(rest[5:]) != rest[:4] {
		return e, false
	}
	var w wire
	d := json.NewDecoder(strings.NewReader(rest[5:]))
	d.UseNumber()
	if d.Decode(&w) != nil || d.More() || !Form(w.Body).known() {
		return e, false
	}
	e = Envelope{ID: w.ID, Via: w.Via, Time: w.Time, NoKey: w.NoKey, Body: Form(w.Body), Properties: w.Props, Broker: w.Broker}
	if w.Key != nil {
		e.HasKey, e.Key = true, append([]byte{}, *w.Key...)
	}
	if w.Headers != nil {
		e.HasHeaders = true
		for _, p := range *w.Headers {
			x, ok := unpackEntry(p)
			if !ok {
				return Envelope{}, false
			}
			e.Headers = append(e.Headers, x)
		}
	}
	return e, true
}

// Set adds a property unless its value is empty.
func (e *Envelope) Set(name, value string) {
	if value == "" {
		return
	}
	if e.Properties == nil {
		e.Properties = map[string]string{}
	}
	e.Properties[name] = value
}

// Merge puts the headers back into their order, with the values that the broker
// held. What others added on the way comes last, and what somebody took out stays
// out. Without headers in the envelope native is returned.
func (e *Envelope) Merge(native longshore.Headers) longshore.Headers {
	if !e.HasHeaders {
		return native
	}
	out := make(longshore.Headers, 0, len(e.Headers)+len(native))
	known := make(map[string]bool, len(e.Headers))
	for _, x := range e.Headers {
		known[x.Name] = true
		h := x.Header
		if x.Native {
			v, ok := native.Get(x.Name)
			if !ok {
				continue
			}
			h.Value = v
		}
		out = append(out, h)
	}
	for _, h := range native {
		if !known[h.Name] {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Escape returns the name under which a user's header travels: a name that
// reserved says is ours gets a prefix, and so does one that has that prefix.
func Escape(name string, reserved func(string) bool) string {
	if reserved(name) || strings.HasPrefix(name, UserPrefix) {
		return UserPrefix + name
	}
	return name
}

// Unescape is the way back.
func Unescape(name string) string { return strings.TrimPrefix(name, UserPrefix) }

func check(text string) string {
	sum := crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli))
	hex := strconv.FormatUint(uint64(sum), 16)
	return ("00000000" + hex)[len(hex):][:4]
}

// toASCII escapes characters beyond ASCII, as JSON allows everywhere: a header is
// not UTF-8 on every way.
func toASCII(text []byte) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf && text[i] != 0x7f {
			b.WriteByte(text[i])
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		i += size
		if r > 0xffff {
			r -= 0x10000
			escape(&b, 0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		escape(&b, r)
	}
	return b.String()
}

func escape(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&15])
	}
}
