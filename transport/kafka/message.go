package kafka

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// Headers that carry what a Kafka record has no place for. They are written only
// where the message has the property.
const (
	ours        = "longshore-"
	headerProps = "longshore-p-"
	headerDue   = "longshore-expires" // when the message expires, for readers other than ours

	headerType     = "content-type"
	headerEncoding = "content-encoding"
)

// decode fills a message from a record. Bytes are shared, not copied.
func decode(m *longshore.Message, r *kgo.Record) {
	m.Key, m.Body = r.Key, r.Value
	if r.Timestamp.UnixMilli() != noTime {
		m.Timestamp = r.Timestamp
	}
	if len(r.Headers) == 0 {
		return
	}
	// The envelope may stand anywhere among the headers and is merged at the end, since it has the
	// order of all.
	m.Headers = make(longshore.Headers, 0, len(r.Headers))
	var env *envelope.Envelope
	for i := range r.Headers {
		h := &r.Headers[i]
		if !property(m, h, &env) {
			m.Headers = append(m.Headers, longshore.Header{Name: h.Key, Value: headerValue(h.Value)})
		}
	}
	if env != nil {
		m.Headers = env.Merge(m.Headers)
	}
	if env != nil || m.ID != "" || m.Headers.Has(longshore.HeaderID) { // one of ours escapes names
		for i := range m.Headers {
			m.Headers[i].Name = envelope.Unescape(m.Headers[i].Name)
		}
	}
	if len(m.Headers) == 0 {
		m.Headers = nil
	}
}

// headerValue is text where it can be, since nearly all headers are.
func headerValue(b []byte) any {
	switch {
	case b == nil:
		return nil
	case utf8.Valid(b):
		return string(b)
	}
	return b
}

// property takes a header that stands for a property; false if it is a header.
func property(m *longshore.Message, h *kgo.RecordHeader, env **envelope.Envelope) bool {
	// Other producers write headers of these names with bytes in them; such a one stays a header.
	if h.Value == nil || !utf8.Valid(h.Value) {
		return false
	}
	switch {
	// Of several the first is the property and the others stay headers, so that nothing is lost.
	case h.Key == headerType && m.ContentType == "":
		m.ContentType = string(h.Value)
		return true
	case h.Key == headerEncoding && m.ContentEncoding == "":
		m.ContentEncoding = string(h.Value)
		return true
	case !strings.HasPrefix(h.Key, ours):
		return false
	case h.Key == envelope.Header:
		e, ok := envelope.Decode(string(h.Value))
		if ok {
			*env = &e
		}
		return ok
	case h.Key == headerDue:
		return true // for others; ours is the duration
	}
	name, ok := strings.CutPrefix(h.Key, headerProps)
	return ok && setProperty(m, name, string(h.Value))
}

// setProperty is the way back; false for a value that cannot be the property's, which then
// stays an ordinary header.
func setProperty(m *longshore.Message, name, v string) bool {
	switch name {
	case "id":
		m.ID = v
	case "type":
		m.Type = v
	case "correlation-id":
		m.CorrelationID = v
	case "reply-to":
		m.ReplyTo = v
	case "app-id":
		m.AppID = v
	case "user-id":
		m.UserID = v
	case "expiration":
		d, err := time.ParseDuration(v)
		if err != nil {
			return false
		}
		m.Expiration = d
	case "timestamp":
		if v == "none" {
			m.Timestamp = time.Time{}
			return true
		}
		t, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return false
		}
		m.Timestamp = t
	case "priority", "delivery-mode":
		n, err := strconv.ParseUint(v, 10, 8)
		if err != nil {
			return false
		}
		if name == "priority" {
			m.Priority = uint8(n)
		} else {
			m.DeliveryMode = uint8(n)
		}
	default:
		return false
	}
	return true
}

// noTime is how Kafka writes that a record has none.
const noTime = -1

// A record's time must lie near the present: the broker refuses one in the future,
// and retention soon deletes one from the past.
const (
	oldest = 24 * time.Hour
	newest = 30 * time.Minute
)

// encode makes a record of a message.
func encode(m *longshore.Message, now time.Time) (*kgo.Record, error) {
	if err := m.Headers.Check(); err != nil {
		return nil, err
	}
	r := &kgo.Record{Key: m.Key, Value: m.Body, Timestamp: now}
	var e envelope.Envelope
	r.Headers = make([]kgo.RecordHeader, 0, len(m.Headers)+4)
	exact := "" // where the record's own time cannot say it
	switch ts := m.Timestamp; {
	case ts.IsZero():
		exact = "none"
	case ts.Before(now.Add(-oldest)), ts.After(now.Add(newest)):
		exact = ts.Format(time.RFC3339Nano)
	default:
		r.Timestamp = ts
		if ts.Nanosecond()%1e6 != 0 { // a record has milliseconds
			exact = ts.Format(time.RFC3339Nano)
		}
	}
	if exact != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headerProps + "timestamp", Value: []byte(exact)})
	}
	if !m.Headers.Has(longshore.HeaderID) { // copies are other records; this tells them
		id := m.ID
		if id == "" {
			id = newID(now)
		}
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: longshore.HeaderID, Value: []byte(id)})
	}
	encodeProperties(r, m, now)
	addHeaders(r, &e, m.Headers)
	if text := e.Encode(); text != "" {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: envelope.Header, Value: []byte(text)})
	}
	return r, nil
}

// encodeProperties writes what a record has no field for into headers. An expiration travels
// as the moment as well, since a record's age is not counted from its publication.
func encodeProperties(r *kgo.Record, m *longshore.Message, now time.Time) {
	put := func(name, v string) {
		if v != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
		}
	}
	put(headerType, m.ContentType)
	put(headerEncoding, m.ContentEncoding)
	put(headerProps+"id", m.ID)
	put(headerProps+"type", m.Type)
	put(headerProps+"correlation-id", m.CorrelationID)
	put(headerProps+"reply-to", m.ReplyTo)
	put(headerProps+"app-id", m.AppID)
	put(headerProps+"user-id", m.UserID)
	if m.Expiration > 0 {
		put(headerProps+"expiration", m.Expiration.String())
		put(headerDue, now.Add(m.Expiration).UTC().Format(time.RFC3339Nano))
	}
	if m.Priority != 0 {
		put(headerProps+"priority", strconv.Itoa(int(m.Priority)))
	}
	if m.DeliveryMode != 0 {
		put(headerProps+"delivery-mode", strconv.Itoa(int(m.DeliveryMode)))
	}
}

// reserved reports whether decode would take a user's header for something else.
func reserved(name string) bool {
	return name == envelope.Header || name == headerDue || name == headerType || name == headerEncoding || strings.HasPrefix(name, headerProps)
}
