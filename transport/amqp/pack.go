package amqp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
)

// What an AMQP message has no place for travels in one header, as text: the
// order of headers and repeated names, a body that is nil, fractions of seconds.
// It is written only if there is something of that kind, so a plain message stays
// plain. A reader that does not know it loses nothing else.
const headerEnv = "longshore-env"

// envelope is the JSON behind "1.<check>.".
type envelope struct {
	Body  string `json:"b,omitempty"` // "n": nil
	Nanos int64  `json:"t,omitempty"` // of Timestamp, below the second
	// All headers in order: [name] for one whose value is the native header's, else
	// [name, type, value].
	Headers [][]any `json:"h,omitempty"`
}

func check(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))[:4]
}

// pack returns the header's text, "" if the native message holds everything.
func pack(m *longshore.Message, headers longshore.Headers) string {
	var e envelope
	if m.Body == nil {
		e.Body = "n"
	}
	if !m.Timestamp.IsZero() {
		e.Nanos = int64(m.Timestamp.Nanosecond())
	}
	if !plainHeaders(headers) {
		e.Headers = packHeaders(headers)
	}
	if e.Body == "" && e.Nanos == 0 && e.Headers == nil {
		return ""
	}
	text, err := json.Marshal(e)
	if err != nil {
		return "" // no value in it that JSON does not have
	}
	return "1." + check(string(text)) + "." + string(text)
}

// plainHeaders tells whether a table shows the same headers again: they come back
// in the order of their names, each once.
func plainHeaders(h longshore.Headers) bool {
	for i := range h {
		if i > 0 && h[i-1].Name >= h[i].Name || !plainValue(h[i].Value) {
			return false
		}
	}
	return true
}

func plainValue(v any) bool {
	switch v := v.(type) {
	case time.Time:
		return v.Nanosecond() == 0
	case float32:
		return finite(float64(v))
	case float64:
		return finite(v)
	case uint64:
		return v <= 1<<63-1
	case uint:
		return uint64(v) <= 1<<63-1
	case []any:
		for i := range v {
			if !plainValue(v[i]) {
				return false
			}
		}
	case longshore.Headers:
		return plainHeaders(v)
	}
	return true
}

func packHeaders(h longshore.Headers) [][]any {
	last := make(map[string]int, len(h))
	for i := range h {
		last[h[i].Name] = i
	}
	out := make([][]any, len(h))
	for i, x := range h {
		if last[x.Name] == i && plainValue(x.Value) && utf8.ValidString(x.Name) {
			out[i] = []any{x.Name}
			continue
		}
		kind, v := packValue(x.Value)
		out[i] = []any{packName(x.Name), kind, v}
	}
	return out
}

// packName marks a name that JSON cannot carry.
func packName(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string]string{"b64": base64.StdEncoding.EncodeToString([]byte(s))}
}

func packValue(v any) (kind string, packed any) {
	switch v := v.(type) {
	case nil:
		return "z", nil
	case bool:
		return "bool", v
	case string:
		if utf8.ValidString(v) {
			return "str", v
		}
		return "str64", base64.StdEncoding.EncodeToString([]byte(v))
	case []byte:
		return "bin", base64.StdEncoding.EncodeToString(v)
	case float32:
		return "f32", strconv.FormatFloat(float64(v), 'g', -1, 32)
	case float64:
		return "f64", strconv.FormatFloat(v, 'g', -1, 64)
	case longshore.Decimal:
		return "dec", fmt.Sprintf("%d/%d", v.Value, v.Scale)
	case time.Time:
		return "ts", fmt.Sprintf("%d.%09d", v.Unix(), v.Nanosecond())
	case []any:
		a := make([][]any, len(v))
		for i := range v {
			k, x := packValue(v[i])
			a[i] = []any{k, x}
		}
		return "arr", a
	case longshore.Headers:
		a := make([][]any, len(v))
		for i := range v {
			k, x := packValue(v[i].Value)
			a[i] = []any{packName(v[i].Name), k, x}
		}
		return "tbl", a
	}
	return intKind(v), fmt.Sprint(v)
}

func intKind(v any) string {
	switch v.(type) {
	case int8:
		return "i8"
	case int16:
		return "i16"
	case int32:
		return "i32"
	case uint8:
		return "u8"
	case uint16:
		return "u16"
	case uint32:
		return "u32"
	case uint64, uint:
		return "u64"
	}
	return "i64"
}

// unpack completes a message. Text that is not ours, or was changed on the way,
// changes nothing and stays a header.
func unpack(d *longshore.Delivery, native longshore.Headers, text string) (longshore.Headers, bool) {
	rest, ok := strings.CutPrefix(text, "1.")
	if !ok || len(rest) < 5 || rest[4] != '.' || check(rest[5:]) != rest[:4] {
		return native, false
	}
	var e envelope
	if json.Unmarshal([]byte(rest[5:]), &e) != nil || e.Nanos < 0 || e.Nanos >= int64(time.Second) {
		return native, false
	}
	if e.Headers != nil {
		h, ok := unpackHeaders(e.Headers, native)
		if !ok {
			return native, false
		}
		native = h
	}
	if e.Body == "n" && len(d.Body) == 0 {
		d.Body = nil
	}
	if e.Nanos > 0 && !d.Timestamp.IsZero() {
		d.Timestamp = d.Timestamp.Add(time.Duration(e.Nanos))
	}
	return native, true
}
