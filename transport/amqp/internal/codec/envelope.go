package codec

import (
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// pack returns what an AMQP message has no place for as the text of one header:
// the order of headers and repeated names, a body that is nil, fractions of
// seconds. It is "" if there is nothing of that kind, so a plain message stays
// plain.
func pack(m *longshore.Message, headers longshore.Headers) string {
	var e envelope.Envelope
	if m.Body == nil {
		e.Body = envelope.Nil
	}
	if t := m.Timestamp; t.Nanosecond() != 0 && t.Year() > 1678 && t.Year() < 2262 {
		e.Time = t.UnixNano()
	}
	if !plainHeaders(headers) {
		e.HasHeaders, e.Headers = true, packHeaders(headers)
	}
	return e.Encode()
}

// plainHeaders reports whether a table shows the same headers again: they come back
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

// packHeaders leaves to the native headers what they hold.
func packHeaders(h longshore.Headers) []envelope.Entry {
	last := make(map[string]int, len(h))
	for i := range h {
		last[h[i].Name] = i
	}
	out := make([]envelope.Entry, len(h))
	for i, x := range h {
		out[i] = envelope.Entry{Header: x, Native: last[x.Name] == i && plainValue(x.Value)}
	}
	return out
}

// unpack completes a message. Text that is not ours, or was changed on the way,
// changes nothing and stays a header.
func unpack(d *longshore.Delivery, native longshore.Headers, text string) longshore.Headers {
	e, ok := envelope.Decode(text)
	if !ok {
		return native
	}
	native.Del(envelope.Header)
	if e.Body == envelope.Nil && len(d.Body) == 0 {
		d.Body = nil
	}
	if t := time.Unix(0, e.Time); e.Time != 0 && t.Unix() == d.Timestamp.Unix() {
		d.Timestamp = t
	}
	return e.Merge(native)
}
