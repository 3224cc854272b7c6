package codec

import (
	"crypto/rand"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

const (
	// MaxShort is how many bytes an AMQP short string takes.
	MaxShort = 255
	// HeaderOffset is the header in which a stream's deliveries carry their offset, and the
	// consumer argument that says where to begin.
	HeaderOffset = "x-stream-offset"
	// RoutingKey, in place of a header's name, takes the key from the routing key.
	RoutingKey = ":routing-key"
)

// Headers that Longshore writes on RabbitMQ.
const (
	headerKey     = "longshore-key"     // the key, as bytes
	headerAttempt = "longshore-attempt" // of a message that was given back as a copy
	// Properties which the broker would act upon, Refuse or lose on the way back.
	headerUser       = "longshore-p-user-id"
	headerReplyTo    = "longshore-p-reply-to"
	headerExpiration = "longshore-p-expiration"
	headerCC         = "longshore-p-cc"
	headerBCC        = "longshore-p-bcc"
	headerExchange   = "longshore-p-exchange"
	headerRoutingKey = "longshore-p-routing-key"
)

// DirectReply is a name that means the publishing channel itself; as the
// reply-to of another sender's message it would end the channel.
const DirectReply = "amq.rabbitmq.reply-to"

// brokerOwned are headers that the broker writes and counts by. A copy does not
// carry them: a repeated x-death is not counted by some versions and crashes
// others.
func brokerOwned(name string) bool {
	switch name {
	case "x-death", "x-delivery-count", "x-acquired-count", "x-received-from", HeaderOffset:
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// Decode fills a delivery from what the client received. Its attempt is the queue's to
// know: see Attempt.
func Decode(d *longshore.Delivery, raw *amqp091.Delivery, keyFrom string) {
	d.ID, d.Body = raw.MessageId, raw.Body
	d.ContentType, d.ContentEncoding = raw.ContentType, raw.ContentEncoding
	d.Type, d.CorrelationID, d.ReplyTo = raw.Type, raw.CorrelationId, raw.ReplyTo
	d.AppID, d.UserID = raw.AppId, raw.UserId
	d.Timestamp, d.Priority, d.DeliveryMode = raw.Timestamp, raw.Priority, raw.DeliveryMode
	d.Origin.Exchange, d.Origin.RoutingKey = raw.Exchange, raw.RoutingKey
	if ms, err := strconv.ParseInt(raw.Expiration, 10, 64); err == nil && ms > 0 && ms < math.MaxInt64/int64(time.Millisecond) {
		d.Expiration = time.Duration(ms) * time.Millisecond
	}
	d.Headers = fromTable(raw.Headers)
	if hasOurs(d.Headers) {
		d.Headers = restore(d, d.Headers)
	}
	if d.Key == nil && keyFrom != "" {
		d.Key = keyOf(d, keyFrom)
	}
}

func hasOurs(h longshore.Headers) bool {
	for i := range h {
		if strings.HasPrefix(h[i].Name, "longshore-") {
			return true
		}
	}
	return false
}

// taken reports whether Decode takes a header away.
func taken(name string) bool {
	return name == headerKey || name == headerAttempt || name == envelope.Header ||
		strings.HasPrefix(name, "longshore-p-") || strings.HasPrefix(name, envelope.UserPrefix)
}

// restore takes our own headers out of h and puts what they hold where it belongs.
func restore(d *longshore.Delivery, h longshore.Headers) longshore.Headers {
	out := make(longshore.Headers, 0, len(h))
	env, packed := "", false
	for _, x := range h {
		text, isText := x.Value.(string)
		switch {
		case x.Name == envelope.Header && isText:
			env, packed = text, true
			out = append(out, x)
		case x.Name == headerCC:
			out = append(out, longshore.Header{Name: "CC", Value: x.Value})
		case x.Name == headerBCC:
			out = append(out, longshore.Header{Name: "BCC", Value: x.Value})
		case !restoreField(d, x.Name, x.Value):
			out = append(out, x)
		}
	}
	if packed {
		out = unpack(d, out, env)
	}
	for i := range out {
		out[i].Name = envelope.Unescape(out[i].Name)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// restoreField takes a header that stands for something else; false if it does not.
func restoreField(d *longshore.Delivery, name string, v any) bool {
	text, isText := v.(string)
	switch {
	case name == headerKey:
		d.Key = keyBytes(v)
	case name == headerAttempt:
	case name == headerExpiration:
		if ms := Integer(v); ms > 0 && ms < math.MaxInt64/int64(time.Millisecond) {
			d.Expiration = time.Duration(ms) * time.Millisecond
		}
	case !isText:
		return false
	case name == headerUser:
		d.UserID = text
	case name == headerReplyTo:
		d.ReplyTo = text
	case name == headerExchange:
		d.Origin.Exchange = text
	case name == headerRoutingKey:
		d.Origin.RoutingKey = text
	default:
		return false
	}
	return true
}

func keyOf(d *longshore.Delivery, from string) []byte {
	if from == RoutingKey {
		return []byte(d.Origin.RoutingKey)
	}
	v, ok := d.Headers.Get(from)
	if !ok {
		return nil
	}
	return keyBytes(v)
}

// keyBytes is a key from a header of any simple kind, nil if it is none.
func keyBytes(v any) []byte {
	switch v := v.(type) {
	case nil, []any, longshore.Headers:
		return nil
	case []byte:
		return v
	}
	return []byte(longshore.Headers{{Value: v}}.String(""))
}

// Encode makes what the client sends of a message, or refuses it: everything the
// broker would end the channel or the connection for is found here.
func Encode(m *longshore.Message, login string) (amqp091.Publishing, error) {
	p := amqp091.Publishing{MessageId: m.ID, Body: m.Body, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding,
		Type: m.Type, CorrelationId: m.CorrelationID, ReplyTo: m.ReplyTo, AppId: m.AppID, UserId: m.UserID,
		Timestamp: m.Timestamp, Priority: m.Priority, DeliveryMode: m.DeliveryMode}
	if p.DeliveryMode == 0 {
		p.DeliveryMode = amqp091.Persistent
	}
	if p.DeliveryMode > amqp091.Persistent {
		return p, Refuse(longshore.CodeRefused, fmt.Errorf("the delivery mode is %d, must be 0, 1 or 2", p.DeliveryMode))
	}
	switch ms := m.Expiration.Milliseconds(); {
	case m.Expiration < 0:
		return p, Refuse(longshore.CodeRefused, fmt.Errorf("the expiration is %s, must be 0 or more", m.Expiration))
	case m.Expiration > 0:
		p.Expiration = strconv.FormatInt(min(max(ms, 1), math.MaxUint32), 10)
	}
	if err := m.Headers.Check(); err != nil {
		return p, err
	}
	headers := sendable(m.Headers)
	t := make(amqp091.Table, len(headers)+3)
	if err := fillTable(t, headers, 1); err != nil {
		return p, Refuse(longshore.CodeBadHeader, err)
	}
	p.Headers = t
	if env := pack(m, headers); env != "" {
		t[envelope.Header] = env
	}
	if m.Key != nil {
		t[headerKey] = m.Key
	}
	if m.ID == "" && t[longshore.HeaderID] == nil {
		t[longshore.HeaderID] = NewID()
	}
	moveAside(&p, login)
	return p, checkShort(&p)
}

// sendable leaves out headers that the broker owns and renames those of the user
// that would be taken for ours.
func sendable(h longshore.Headers) longshore.Headers {
	plain := true
	for i := range h {
		plain = plain && !brokerOwned(h[i].Name) && !taken(h[i].Name)
	}
	if plain {
		return h
	}
	out := make(longshore.Headers, 0, len(h))
	for _, x := range h {
		switch {
		case brokerOwned(x.Name):
			continue
		case taken(x.Name):
			x.Name = envelope.Escape(x.Name, taken)
		}
		out = append(out, x)
	}
	return out
}

// moveAside takes out of a message what the broker must not see, and keeps it in
// headers of ours where the handler would miss it.
func moveAside(p *amqp091.Publishing, login string) {
	for name := range p.Headers {
		if brokerOwned(name) {
			delete(p.Headers, name)
		}
	}
	// A CC would be routed once more with each retry and dead letter.
	for name, ours := range map[string]string{"CC": headerCC, "BCC": headerBCC} {
		if v, ok := p.Headers[name]; ok {
			delete(p.Headers, name)
			p.Headers[ours] = v
		}
	}
	if p.UserId != "" && p.UserId != login {
		p.Headers[headerUser] = p.UserId
		p.UserId = ""
	}
	if p.ReplyTo == DirectReply {
		p.Headers[headerReplyTo] = p.ReplyTo
		p.ReplyTo = ""
	}
}

func checkShort(p *amqp091.Publishing) error {
	for _, f := range [...]struct{ name, value string }{{"ID", p.MessageId}, {"ContentType", p.ContentType}, {"ContentEncoding", p.ContentEncoding},
		{"Type", p.Type}, {"CorrelationID", p.CorrelationId}, {"ReplyTo", p.ReplyTo}, {"AppID", p.AppId}, {"UserID", p.UserId}} {
		if len(f.value) > MaxShort {
			return Refuse(longshore.CodeRefused, fmt.Errorf("%s is %d bytes long; AMQP takes 255", f.name, len(f.value)))
		}
	}
	return nil
}

// FrameSize is the size of the frame that holds the properties; it cannot be
// split, and a broker ends the connection over one that is too large.
func FrameSize(p *amqp091.Publishing) int {
	n := 8 + 2 + 2 + 8 + 2 + 1 + 1 + 8 // frame, class, weight, body size, flags, mode, priority, timestamp
	for _, s := range [...]string{p.MessageId, p.ContentType, p.ContentEncoding, p.Type, p.CorrelationId, p.ReplyTo, p.AppId, p.UserId, p.Expiration} {
		n += 1 + len(s)
	}
	return n + tableSize(p.Headers)
}

// Refuse is the error for a message that cannot be published as it is.
func Refuse(code longshore.Code, err error) error {
	return &longshore.Error{Code: code, Op: "publish to rabbitmq", Err: err}
}

// NewID is an id for a message whose producer gave it none.
func NewID() string { return rand.Text() }

// Integer reads a number of a table, 0 if it is none.
func Integer(v any) int64 {
	n, _ := longshore.Headers{{Value: v}}.Int("")
	return n
}
