package codec

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// Wrapping is the envelope that another service puts around messages on their way to a
// queue.
type Wrapping uint8

const (
	// Bare bodies are taken as they are.
	Bare Wrapping = iota
	// SNS is what a topic delivers to a queue. Raw delivery is recognised message by
	// message, by its form.
	SNS
	// EventBridge is what a rule delivers to a queue. The body is the event's detail.
	EventBridge
)

// read takes the envelope off a message. A message without one is taken as it is.
func (w Wrapping) read(m *types.Message) *raw {
	in := &raw{body: []byte(aws.ToString(m.Body)), attrs: m.MessageAttributes, system: m.Attributes}
	switch w {
	case SNS:
		in.notification()
	case EventBridge:
		in.event()
	case Bare:
	}
	return in
}

type notification struct {
	Type, MessageID, TopicArn, Timestamp string                                  // in each notification
	Message, Subject                     *string                                 // nil: the text is something else
	MessageAttributes                    map[string]struct{ Type, Value string } // which SNS writes into the text
}

// notification: {"Type":"Notification","Message":…}. Other Types (of a topic's
// subscription) are left alone.
func (in *raw) notification() {
	var n notification
	if !isObject(in.body) || json.Unmarshal(in.body, &n) != nil || n.Type != "Notification" || n.Message == nil || n.TopicArn == "" {
		return
	}
	in.body = []byte(*n.Message)
	attrs := map[string]types.MessageAttributeValue{}
	for name, a := range n.MessageAttributes {
		v := types.MessageAttributeValue{DataType: aws.String(a.Type)}
		if strings.HasPrefix(a.Type, "Binary") {
			b, err := base64.StdEncoding.DecodeString(a.Value)
			if err != nil {
				b = []byte(a.Value)
			}
			v.BinaryValue = b
		} else {
			v.StringValue = aws.String(a.Value)
		}
		attrs[name] = v
	}
	in.attrs = attrs
	in.fields.ID = n.MessageID
	in.fields.Timestamp = stamp(n.Timestamp)
	in.extra = append(in.extra, longshore.Header{Name: "sns-topic", Value: n.TopicArn})
	if n.Subject != nil {
		in.extra = append(in.extra, longshore.Header{Name: "sns-subject", Value: *n.Subject})
	}
}

type event struct {
	ID         string          `json:"id"`
	DetailType *string         `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Detail     json.RawMessage `json:"detail"`
}

func (in *raw) event() {
	var e event
	if !isObject(in.body) || json.Unmarshal(in.body, &e) != nil || e.DetailType == nil || e.Detail == nil || e.ID == "" {
		return
	}
	in.body = e.Detail
	in.fields = longshore.Message{ID: e.ID, Type: *e.DetailType, AppID: e.Source, ContentType: "application/json", Timestamp: stamp(e.Time)}
	for _, h := range []longshore.Header{{Name: "eventbridge-account", Value: e.Account}, {Name: "eventbridge-region", Value: e.Region}, {Name: "eventbridge-source", Value: e.Source}} {
		if h.Value != "" {
			in.extra = append(in.extra, h)
		}
	}
}

func isObject(b []byte) bool {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		}
		return c == '{'
	}
	return false
}

func stamp(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t
}
