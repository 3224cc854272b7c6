package kafka

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// Kafka's headers are ordered bytes. What is text, nil, or bytes that are not text
// comes back by itself; other kinds travel as readable text, and in
// the envelope as what they are.

// addHeaders writes the user's headers behind ours.
func addHeaders(r *kgo.Record, e *envelope.Envelope, hs longshore.Headers) {
	typed := false
	for _, h := range hs {
		text, plain := native(h.Value)
		typed = typed || !plain
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: nameOf(h), Value: text})
	}
	if !typed {
		return
	}
	e.HasHeaders = true
	for _, h := range hs {
		_, plain := native(h.Value)
		name := nameOf(h)
		e.Headers = append(e.Headers, envelope.Entry{
			Header: longshore.Header{Name: name, Value: h.Value},
			Native: plain && len(hs.Values(h.Name)) == 1, // the envelope finds native values by name
		})
	}
}

// nameOf is the name of a header in a record. A content type without a value is not a property
// for decode, so it keeps its name, also for readers of other makes.
func nameOf(h longshore.Header) string {
	if h.Value == nil && (h.Name == headerType || h.Name == headerEncoding) {
		return h.Name
	}
	return envelope.Escape(h.Name, reserved)
}

// native is what goes into the record; plain if it comes back by itself.
func native(v any) (text []byte, plain bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []byte(v), utf8.ValidString(v)
	case []byte:
		if v == nil {
			v = []byte{}
		}
		return v, !utf8.Valid(v)
	case []any, longshore.Headers:
		b, err := json.Marshal(readable(v))
		if err != nil {
			b = []byte("null")
		}
		return b, false
	case time.Time:
		return []byte(v.UTC().Format(time.RFC3339Nano)), false
	case longshore.Decimal:
		return []byte(v.String()), false
	}
	return fmt.Append(nil, v), false
}

// readable is a nested value as others would write it in JSON.
func readable(v any) any {
	switch v := v.(type) {
	case []any:
		a := make([]any, len(v))
		for i := range v {
			a[i] = readable(v[i])
		}
		return a
	case longshore.Headers:
		m := make(map[string]any, len(v))
		for _, h := range v {
			m[h.Name] = readable(h.Value)
		}
		return m
	case nil, bool:
		return v
	}
	text, _ := native(v)
	return string(text)
}
