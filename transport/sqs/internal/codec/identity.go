package codec

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// Identified returns the message with the header by which its copies are recognised: a
// message that is sent again because no answer came is another message for SQS. The value
// is Message.ID, or new. The header is put in the order of the names, if they are in
// order, so that it needs no envelope.
func Identified(m *longshore.Message) *longshore.Message {
	if m.Headers.Has(longshore.HeaderID) {
		return m
	}
	at := len(m.Headers)
	if inOrder(m.Headers) {
		at, _ = slices.BinarySearchFunc(m.Headers, longshore.HeaderID, func(h longshore.Header, name string) int { return strings.Compare(h.Name, name) })
	}
	out := *m
	out.Headers = make(longshore.Headers, 0, len(m.Headers)+1)
	out.Headers = append(out.Headers, m.Headers[:at]...)
	out.Headers = append(out.Headers, longshore.Header{Name: longshore.HeaderID, Value: first(m.ID, NewID())})
	out.Headers = append(out.Headers, m.Headers[at:]...)
	return &out
}

// CopyAttributes are the attributes of a received message with an identity, if there is
// room and it carries none (known): its copy in the dead-letter queue may be sent twice.
func CopyAttributes(m *types.Message, identity string, known bool) map[string]types.MessageAttributeValue {
	attrs := m.MessageAttributes
	if len(attrs) >= MaxAttributes || known {
		return attrs
	}
	a, ok := stringAttribute("String", identity)
	if !ok {
		return attrs
	}
	out := make(map[string]types.MessageAttributeValue, len(attrs)+1)
	for name := range attrs {
		out[name] = attrs[name]
	}
	out[longshore.HeaderID] = a
	return out
}

// SizeOfCopy is the size of a copy as SQS counts it.
func SizeOfCopy(m *types.Message, attrs map[string]types.MessageAttributeValue) int {
	n := len(aws.ToString(m.Body))
	for name, a := range attrs {
		n += sizeOf(name, &a)
	}
	return n
}
