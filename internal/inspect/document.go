package inspect

import (
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/keytext"
)

// Document is a delivery in JSON. Bytes that are not UTF-8 are in the fields that
// end in _base64.
type Document struct {
	N           int        `json:"n"`
	ID          string     `json:"id,omitempty"`
	Key         *string    `json:"key,omitempty"` // absent = none, "" = empty
	KeyBase64   string     `json:"key_base64,omitempty"`
	Queue       string     `json:"queue,omitempty"`
	Partition   int32      `json:"partition,omitempty"`
	Position    uint64     `json:"position,omitempty"`
	Attempt     int        `json:"attempt,omitempty"`
	Time        *time.Time `json:"time,omitempty"`
	ContentType string     `json:"content_type,omitempty"`
	Headers     []Header   `json:"headers,omitempty"`
	Size        int        `json:"size"`
	Body        *string    `json:"body,omitempty"` // absent = none
	BodyBase64  string     `json:"body_base64,omitempty"`
}

// Header is one header; the order and repetitions are kept.
type Header struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// NewDocument describes the n-th delivery.
func NewDocument(n int, d *longshore.Delivery) Document {
	doc := Document{N: n, ID: longshore.Identity(d), Queue: d.Origin.Topic, Partition: d.Origin.Partition,
		Position: d.Origin.Position, Attempt: d.Attempt, ContentType: d.ContentType, Size: len(d.Body)}
	doc.Key, doc.KeyBase64 = texts(d.Key)
	doc.Body, doc.BodyBase64 = texts(d.Body)
	if t := d.Timestamp; !t.IsZero() {
		doc.Time = &t
	}
	for _, h := range d.Headers {
		doc.Headers = append(doc.Headers, Header{Name: h.Name, Value: jsonValue(h.Value)})
	}
	return doc
}

func texts(b []byte) (text *string, encoded string) {
	switch {
	case b == nil:
		return nil, ""
	case utf8.Valid(b):
		s := string(b)
		return &s, ""
	}
	return nil, base64.StdEncoding.EncodeToString(b)
}

func jsonValue(v any) any {
	switch v := v.(type) {
	case []byte:
		return plain(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = jsonValue(v[i])
		}
		return out
	case longshore.Headers:
		out := make([]Header, len(v))
		for i := range v {
			out[i] = Header{Name: v[i].Name, Value: jsonValue(v[i].Value)}
		}
		return out
	case float32, float64, longshore.Decimal:
		return fmt.Sprint(v) // NaN and infinities have no JSON, decimals would lose digits
	}
	return v
}

// Row is a delivery as one line of a table: number, key, time, content type,
// size and the beginning of the body.
func Row(n int, d *longshore.Delivery, width int) []string {
	at := "-"
	if t := d.Timestamp; !t.IsZero() {
		at = t.Local().Format("15:04:05.000")
	}
	key, kind := "-", "-"
	if d.Key != nil {
		key = cut(keytext.Of(d.Key), 32)
	}
	if d.ContentType != "" {
		kind = cut(d.ContentType, 32)
	}
	body := cut(string(d.Body), width)
	if !utf8.Valid(d.Body) {
		body = fmt.Sprintf("%.*x", width/2, d.Body)
	}
	return []string{fmt.Sprint(n), key, at, kind, fmt.Sprintf("%d B", len(d.Body)), body}
}

// cut shortens text to n runes.
func cut(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return s[:i] + "…"
		}
		count++
	}
	return s
}
