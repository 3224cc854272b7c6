package admin

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/internal/inspect"
)

const masked = "•••"

// mask hides fields by their names.
type mask struct {
	names  []string
	hidden map[string]bool
}

func (m *mask) hides(name string) bool {
	low := strings.ToLower(name)
	for _, n := range m.names {
		if strings.Contains(low, strings.ToLower(n)) {
			m.hidden[name] = true
			return true
		}
	}
	return false
}

// list are the names that were hidden, sorted.
func (m *mask) list() []string { return slices.Sorted(maps.Keys(m.hidden)) }

// body is a body for people: JSON indented and masked, text as it is, bytes as a dump.
func (m *mask) body(raw []byte) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out bytes.Buffer
	switch {
	case len(raw) > 0 && dec.Decode(&v) == nil && !dec.More():
		if !m.touches(v) { // as it was written, with the order of its fields
			if json.Indent(&out, raw, "", "  ") == nil {
				return out.String()
			}
		}
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false) // it is shown as text
		enc.SetIndent("", "  ")
		if enc.Encode(v) == nil {
			return out.String()
		}
		return ""
	case utf8.Valid(raw):
		return string(raw)
	}
	return hex.Dump(raw[:min(len(raw), mostBody/5)])
}

// touches hides fields in v and tells whether there were any.
func (m *mask) touches(v any) (found bool) {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if m.hides(k) {
				v[k], found = masked, true
			} else if m.touches(v[k]) {
				found = true
			}
		}
	case []any:
		for i := range v {
			if m.touches(v[i]) {
				found = true
			}
		}
	}
	return found
}

// exported is one line of an export.
func (m *mask) exported(l *dlq.Letter) any {
	doc := inspect.NewDocument(1, l.Delivery)
	if len(m.names) > 0 {
		text := m.body(l.Body)
		if len(m.hidden) > 0 {
			doc.Body, doc.BodyBase64 = &text, ""
		}
		for i := range doc.Headers {
			if m.hides(doc.Headers[i].Name) {
				doc.Headers[i].Value = masked
			}
		}
	}
	return struct {
		ID      string           `json:"id"`
		Reason  string           `json:"reason,omitempty"`
		Error   string           `json:"error,omitempty"`
		At      time.Time        `json:"at,omitzero"`
		Source  string           `json:"source,omitempty"`
		Message inspect.Document `json:"message"`
	}{cmp.Or(dlq.ID(l.Delivery), doc.ID), l.Facts.Reason, l.Facts.Error, l.Facts.At, l.Facts.Source, doc}
}
