package sqs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// What an entry of a batch, or all of them, was refused for says where the queue is, as the
// error of a call of its own does, and what to do.
func TestRefusedEntriesHaveFields(t *testing.T) {
	for name, fault := range map[string]sqstest.Fault{
		"an entry": {Action: "SendMessageBatch", Entry: func(e sqstest.Entry) string {
			if e.Body == "b" {
				return "KmsAccessDenied"
			}
			return ""
		}},
		"the call": {Action: "SendMessageBatch", Code: "AccessDenied"},
	} {
		s := sqstest.New(t)
		s.CreateQueue(t, "orders", nil)
		s.Inject(fault)
		p, err := sqs.New(s.Config()).Publisher(sqs.PublisherConfig{})
		must(t, err)
		err = p.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("a")}, &longshore.Message{Body: []byte("b")})
		must(t, p.Close(t.Context()))
		var partial *transport.PartialError
		if !errors.As(err, &partial) || partial.Failed[1] == nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, err := range partial.Failed {
			facts := map[string]string{}
			for _, f := range longshore.FieldsOf(err) {
				facts[f.Name] = f.Value
			}
			var e *longshore.Error
			if !errors.As(err, &e) || e.Code != longshore.CodeForbidden || facts["region"] == "" || !strings.HasPrefix(facts["endpoint"], "http://127.0.0.1:") ||
				e.Hint == "" || !strings.Contains(e.Error(), `publish to sqs queue "orders"`) {
				t.Errorf("%s, message %d: %v %v", name, i, err, facts)
			}
		}
	}
}
