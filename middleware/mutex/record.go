package mutex

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// record is a row of the outbox.
type record struct {
	seq      int64
	id       string
	dest     string
	key      string // as in the column; "" = none
	shard    int
	attempts int
	due      int64 // by the database's clock; below 0: minus the grace that is still to begin
	msg      *longshore.Message
}

// encode packs everything but the body.
func encode(m *longshore.Message) string {
	e := envelope.Envelope{HasHeaders: true, HasKey: m.Key != nil, NoKey: m.Key == nil, Key: m.Key}
	for _, h := range m.Headers {
		e.Headers = append(e.Headers, envelope.Entry{Header: h})
	}
	if !m.Timestamp.IsZero() {
		e.Time = m.Timestamp.UnixNano()
	}
	switch {
	case m.Body == nil:
		e.Body = envelope.Nil
	case len(m.Body) == 0:
		e.Body = envelope.Empty
	}
	for name, field := range texts(m) {
		e.Set(name, *field)
	}
	if m.Expiration != 0 {
		e.Set("expiration", m.Expiration.String())
	}
	if m.Priority != 0 {
		e.Set("priority", strconv.Itoa(int(m.Priority)))
	}
	if m.DeliveryMode != 0 {
		e.Set("mode", strconv.Itoa(int(m.DeliveryMode)))
	}
	return e.Encode()
}

func texts(m *longshore.Message) map[string]*string {
	return map[string]*string{"id": &m.ID, "content-type": &m.ContentType, "content-encoding": &m.ContentEncoding, "type": &m.Type,
		"correlation-id": &m.CorrelationID, "reply-to": &m.ReplyTo, "app-id": &m.AppID, "user-id": &m.UserID}
}

// decode is the way back.
func decode(meta string, body []byte) (*longshore.Message, error) {
	e, ok := envelope.Decode(meta)
	if !ok {
		return nil, &longshore.Error{Code: longshore.CodeUndecodable, Op: "read an outbox row", Hint: "its meta column was changed or written by something else"}
	}
	m := &longshore.Message{Headers: e.Merge(nil), Body: body}
	if e.HasKey {
		m.Key = e.Key
	}
	if e.Time != 0 {
		m.Timestamp = time.Unix(0, e.Time)
	}
	switch e.Body {
	case envelope.Nil:
		m.Body = nil
	case envelope.Empty:
		m.Body = []byte{}
	case envelope.Plain, envelope.Base64, envelope.Claim:
	}
	for name, field := range texts(m) {
		*field = e.Properties[name]
	}
	m.Expiration, _ = time.ParseDuration(e.Properties["expiration"])
	m.Priority = small(e.Properties["priority"])
	m.DeliveryMode = small(e.Properties["mode"])
	return m, nil
}

func small(text string) uint8 {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return 0
	}
	return uint8(n)
}

// keyText is the key in a column that all databases can compare and index.
func keyText(key []byte) any {
	if key == nil {
		return nil
	}
	if plain(key) && len(key) < 60 {
		return "=" + string(key)
	}
	sum := sha256.Sum256(key)
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// shardOf keeps a key together and spreads what has none.
func shardOf(key []byte, id string) int {
	h := fnv.New32a()
	if key != nil {
		_, _ = h.Write(key)
	} else {
		_, _ = h.Write([]byte(id))
	}
	return int(h.Sum32() % shardCount)
}

// storable refuses what could be stored but not published.
func storable(dest string, m *longshore.Message) error {
	bad := func(code longshore.Code, format string, args ...any) error {
		return &longshore.Error{Code: code, Op: "add to the outbox", Source: dest, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case m == nil:
		return bad(longshore.CodeConfig, "the message is nil")
	case dest == "" || len(dest) > 255:
		return bad(longshore.CodeConfig, "a destination has 1 to 255 bytes, this one %d", len(dest))
	}
	for _, h := range m.Headers {
		if !storableValue(h.Value) {
			return bad(longshore.CodeBadHeader, "header %q: %T cannot travel", h.Name, h.Value)
		}
	}
	return nil
}

func storableValue(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		for _, x := range v {
			if !storableValue(x) {
				return false
			}
		}
		return true
	case longshore.Headers:
		for _, h := range v {
			if !storableValue(h.Value) {
				return false
			}
		}
		return true
	}
	_, _, ok := envelope.Text(v)
	return ok
}
