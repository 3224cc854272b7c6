package codec

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// HeaderTrace is the X-Ray header, a system attribute on SQS.
const HeaderTrace = "AWSTraceHeader"

// The attributes in which content type and encoding travel, readable for all.
const (
	attributeType     = "content-type"
	attributeEncoding = "content-encoding"
)

// raw is a received message after the envelope of another service was taken off.
type raw struct {
	body   []byte                                 // without the envelope
	attrs  map[string]types.MessageAttributeValue // message attributes, of the envelope where it has them
	system map[string]string                      // SQS's own attributes, such as the group
	extra  longshore.Headers                      // facts of the envelope that become headers
	fields longshore.Message                      // facts of the envelope that become properties
}

// Decode fills a message from what was received. Whatever arrives is a message: an
// attribute or a body that is not in our format stays as it is.
func Decode(m *longshore.Message, received *types.Message, w Wrapping) {
	decode(m, w.read(received))
}

func decode(m *longshore.Message, in *raw) {
	*m = in.fields
	env, ours := envelope.Envelope{}, false
	if a, ok := in.attrs[envelope.Header]; ok {
		env, ours = envelope.Decode(aws.ToString(a.StringValue))
	}
	m.Body = in.body
	if ours {
		m.Body, _ = envelope.UnpackBody(string(in.body), env.Body)
		restore(m, &env)
	}
	m.Key = keyOf(in.system["MessageGroupId"], &env)
	kinds := typesOf(longshore.Headers{{Name: headerTypes, Value: env.Properties[propertyTypes]}})
	m.Headers = env.Merge(in.headers(m, ours, kinds))
	if len(m.Headers) == 0 {
		m.Headers = nil
	}
}

// headers makes headers of the attributes, in the order of their names. Content
// type and encoding become properties.
func (in *raw) headers(m *longshore.Message, ours bool, kinds map[string]string) longshore.Headers {
	out := make(longshore.Headers, 0, len(in.attrs)+2)
	for name := range in.attrs {
		a := in.attrs[name]
		switch {
		case ours && name == envelope.Header:
			continue
		case name == attributeType && a.StringValue != nil && m.ContentType == "":
			m.ContentType = *a.StringValue
			continue
		case name == attributeEncoding && a.StringValue != nil && m.ContentEncoding == "":
			m.ContentEncoding = *a.StringValue
			continue
		}
		v, kind := fromAttribute(&a)
		if kind != "" {
			if kinds == nil {
				kinds = map[string]string{}
			}
			kinds[name] = kind
		}
		out = append(out, longshore.Header{Name: name, Value: v})
	}
	if t := in.system[HeaderTrace]; t != "" {
		out = append(out, longshore.Header{Name: HeaderTrace, Value: t})
	}
	slices.SortFunc(out, func(a, b longshore.Header) int { return strings.Compare(a.Name, b.Name) })
	out = append(out, in.extra...)
	if len(kinds) > 0 {
		if text, err := json.Marshal(kinds); err == nil {
			out = append(out, longshore.Header{Name: headerTypes, Value: string(text)})
		}
	}
	return out
}

// keyOf is the group id, or what the envelope says it stands for.
func keyOf(group string, env *envelope.Envelope) []byte {
	switch {
	case env.HasKey:
		return env.Key
	case env.NoKey || group == "":
		return nil
	}
	return []byte(group)
}

// restore takes the properties out of an envelope.
func restore(m *longshore.Message, env *envelope.Envelope) {
	p := env.Properties
	for name, field := range map[string]*string{"message-id": &m.ID, "type": &m.Type, "correlation-id": &m.CorrelationID,
		"reply-to": &m.ReplyTo, "app-id": &m.AppID, "user-id": &m.UserID, attributeType: &m.ContentType, attributeEncoding: &m.ContentEncoding} {
		if v := p[name]; v != "" {
			*field = v
		}
	}
	if env.Time != 0 {
		m.Timestamp = time.Unix(0, env.Time).UTC()
	}
	if t, err := time.Parse(time.RFC3339Nano, p["timestamp"]); err == nil {
		m.Timestamp = t
	}
	if d, err := time.ParseDuration(p["expiration"]); err == nil && d > 0 {
		m.Expiration = d
	}
	if n, err := strconv.ParseUint(p["priority"], 10, 8); err == nil {
		m.Priority = uint8(n)
	}
	if n, err := strconv.ParseUint(p["delivery-mode"], 10, 8); err == nil {
		m.DeliveryMode = uint8(n)
	}
}
