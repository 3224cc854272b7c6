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

// Mark is a header that a copy in the dead-letter queue gets besides its own.
type Mark struct {
	Name  string // of the header
	Value any    // text, bytes or a number
}

// CopyAttributes are the attributes of a received message with marks: one that is there
// already is replaced, others are added as long as there is room, the first ones first.
func CopyAttributes(m *types.Message, marks ...Mark) map[string]types.MessageAttributeValue {
	out := make(map[string]types.MessageAttributeValue, len(m.MessageAttributes)+len(marks))
	for name := range m.MessageAttributes {
		out[name] = m.MessageAttributes[name]
	}
	for _, mark := range marks {
		if _, there := out[mark.Name]; !there && len(out) >= MaxAttributes {
			continue
		}
		if a, ok := toAttribute(mark.Value, ""); ok {
			out[mark.Name] = a
		}
	}
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
