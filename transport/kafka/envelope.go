package kafka

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/twmb/franz-go/pkg/kgo"
)

// envelope is the JSON behind "1.<check>." in one header: the kinds of headers that
// are not text, and times that a record cannot hold. Others still read every
// header as text or bytes.
type envelope struct {
	Time    string  `json:"t,omitempty"` // "none", or seconds.nanoseconds
	Headers [][]any `json:"h,omitempty"` // [name, which of that name, kind] or, nested, with the value
}

func (e *envelope) text() string {
	if e.Time == "" && e.Headers == nil {
		return ""
	}
	b, err := json.Marshal(e)
	if err != nil {
		return "" // there is nothing in it that JSON has not
	}
	return "1." + checksum(string(b)) + "." + string(b)
}

func checksum(text string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), castagnoli))[:4]
}

// checked tells whether the text is one of ours.
func checked(text string) bool {
	return len(text) > 7 && strings.HasPrefix(text, "1.") && text[6] == '.' && text[2:6] == checksum(text[7:])
}

// addHeaders writes the user's headers behind ours.
func (e *envelope) addHeaders(r *kgo.Record, hs longshore.Headers) {
	for i, h := range hs {
		name := h.Name
		if reserved(name) {
			name = headerUsers + name
		}
		text, kind, nested := native(h.Value)
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: text})
		if kind == "" {
			continue
		}
		entry := []any{packName(name), nth(hs[:i], h.Name), kind}
		if nested != nil {
			entry = append(entry, nested)
		}
		e.Headers = append(e.Headers, entry)
	}
}

// nth counts the headers of that name.
func nth(hs longshore.Headers, name string) int {
	n := 0
	for i := range hs {
		if hs[i].Name == name {
			n++
		}
	}
	return n
}

// native is what goes into the record. kind is "" if it comes back by itself.
func native(v any) (text []byte, kind string, nested any) {
	switch v := v.(type) {
	case nil:
		return nil, "", nil
	case string:
		if !utf8.ValidString(v) {
			return []byte(v), "str", nil
		}
		return []byte(v), "", nil
	case []byte:
		if v == nil {
			v = []byte{}
		}
		if utf8.Valid(v) {
			return v, "bin", nil
		}
		return v, "", nil
	case []any, longshore.Headers:
		kind, packed := packValue(v)
		b, err := json.Marshal(packed)
		if err != nil {
			b = []byte("[]")
		}
		return b, kind, packed
	case longshore.Decimal:
		return []byte(v.String()), "dec", fmt.Sprintf("%d/%d", v.Value, v.Scale)
	case time.Time:
		return []byte(v.UTC().Format(time.RFC3339Nano)), "ts", formatTime(v)
	}
	kind, packed := packValue(v)
	return []byte(fmt.Sprint(packed)), kind, nil
}

// unpack gives the headers their kinds back. What does not fit stays text.
func unpack(m *longshore.Message, env string) {
	var e envelope
	if json.Unmarshal([]byte(env[7:]), &e) != nil {
		return
	}
	switch at, ok := parseTime(e.Time); {
	case e.Time == "none":
		m.Timestamp = time.Time{}
	case ok:
		m.Timestamp = at
	}
	for _, p := range e.Headers {
		if len(p) < 3 {
			continue
		}
		name, ok := unpackName(p[0])
		which, isNumber := p[1].(float64)
		kind, isText := p[2].(string)
		h := find(m.Headers, name, int(which))
		if !ok || !isNumber || !isText || h == nil {
			continue
		}
		if v, ok := restored(kind, h.Value, p[3:]); ok {
			h.Value = v
		}
	}
}

func find(hs longshore.Headers, name string, which int) *longshore.Header {
	for i := range hs {
		if hs[i].Name != name {
			continue
		}
		if which == 0 {
			return &hs[i]
		}
		which--
	}
	return nil
}

func restored(kind string, have any, packed []any) (any, bool) {
	if len(packed) == 1 {
		return unpackValue(kind, packed[0], 0)
	}
	var b []byte
	switch h := have.(type) {
	case string:
		b = []byte(h)
	case []byte:
		b = h
	}
	switch kind {
	case "bin":
		return b, true
	case "str":
		return string(b), true
	case "bool":
		v, err := strconv.ParseBool(string(b))
		return v, err == nil
	}
	return unpackValue(kind, string(b), 0)
}

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
		return "ts", formatTime(v)
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

func formatTime(t time.Time) string { return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()) }

func parseTime(text string) (time.Time, bool) {
	sec, nano, ok := strings.Cut(text, ".")
	s, err1 := strconv.ParseInt(sec, 10, 64)
	n, err2 := strconv.ParseInt(nano, 10, 64)
	return time.Unix(s, n), ok && err1 == nil && err2 == nil && n >= 0 && n < math.MaxInt32
}
