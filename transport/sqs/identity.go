package sqs

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// identified is the message with the header that tells its copies: one that is sent again,
// because no answer came, is another message for SQS. The header is Message.ID, or new. It
// stands where the order of the names has it, if they are in order, so that it needs no
// envelope.
func identified(m *longshore.Message) *longshore.Message {
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
	out.Headers = append(out.Headers, longshore.Header{Name: longshore.HeaderID, Value: first(m.ID, newID())})
	out.Headers = append(out.Headers, m.Headers[at:]...)
	return &out
}

// identifiedCopy is the attributes of a received message with its identity, if there is
// room: its copy in the dead-letter queue may be sent twice.
func (c *consumer) identifiedCopy(h *held) map[string]types.MessageAttributeValue {
	attrs := h.native.MessageAttributes
	if len(attrs) >= maxAttributes || h.d.Received().Headers.Has(longshore.HeaderID) {
		return attrs
	}
	a, ok := stringAttribute("String", longshore.Identity(h.d))
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

// sizeOfCopy is what a copy counts for SQS.
func sizeOfCopy(m *types.Message, attrs map[string]types.MessageAttributeValue) int {
	n := len(aws.ToString(m.Body))
	for name, a := range attrs {
		n += sizeOf(name, &a)
	}
	return n
}
