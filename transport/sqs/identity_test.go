package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-N21: the answer to a publish is lost and the publisher sends again: both copies have
// one identity, with Message.ID and without, and with more headers than SQS has places.
func TestCopiesOfOneMessageHaveOneIdentity(t *testing.T) {
	many := longshore.Headers{}
	for i := range 15 {
		many.Add(fmt.Sprintf("h%02d", i), "v")
	}
	for name, m := range map[string]longshore.Message{
		"no ID": {}, "an ID": {ID: "order-1"}, "an ID that SQS would refuse": {ID: "b\x00e"}, "many headers": {Headers: many[:10]}, "too many": {Headers: many},
		"its own": {ID: "x", Headers: longshore.Headers{{Name: longshore.HeaderID, Value: "own"}}},
	} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", nil)
			broker := sqs.New(s.Config())
			p, err := broker.Publisher(sqs.PublisherConfig{})
			must(t, err)
			s.Inject(sqstest.Fault{Action: "SendMessageBatch", Times: 1, Lose: true})
			m.Body = []byte("a")
			must(t, p.Publish(t.Context(), "orders", &m))
			must(t, p.Close(t.Context()))
			c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
			ds := take(t, c, 2)
			first, second := longshore.Identity(ds[0]), longshore.Identity(ds[1])
			if first == "" || first != second {
				t.Errorf("%s: identities %q and %q", name, first, second)
			}
			if want := m.ID; want != "" && first != want && first != m.Headers.String(longshore.HeaderID) {
				t.Errorf("%s: identity %q, want %q", name, first, want)
			}
			for _, h := range m.Headers {
				if ds[0].Received().Headers.String(h.Name) != h.Value {
					t.Errorf("%s: header %s is lost", name, h.Name)
				}
			}
			must(t, ds[0].Ack(t.Context()))
			must(t, ds[1].Ack(t.Context()))
			must(t, c.Close(t.Context()))
		})
	}
}

// F-N21: what may have been sent is called so, whichever way the answer was lost, and what
// certainly was not is not.
func TestUnknownOutcomeOfAPublish(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  sqstest.Fault
		limit  time.Duration
		unsure bool
	}{
		"all answers are lost":    {sqstest.Fault{Lose: true}, time.Hour, true},
		"the server fails":        {sqstest.Fault{Code: "InternalFailure"}, time.Hour, true},
		"no answer within ctx":    {sqstest.Fault{Latency: time.Minute}, time.Second, true},
		"throttled":               {sqstest.Fault{Code: "RequestThrottled"}, time.Hour, false},
		"refused, each by itself": {sqstest.Fault{Entry: func(sqstest.Entry) string { return "AccessDenied" }}, time.Hour, false},
	} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "orders", nil)
			p, err := sqs.New(s.Config()).Publisher(sqs.PublisherConfig{})
			must(t, err)
			must(t, p.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("known")}))
			tc.fault.Action = "SendMessageBatch"
			s.Inject(tc.fault)
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			err = p.Publish(ctx, "orders", &longshore.Message{Body: []byte("a")}, &longshore.Message{Body: []byte("b")})
			if err == nil || errors.Is(err, longshore.CodeMaybeSent) != tc.unsure || strings.Contains(err.Error(), "may have been sent") != tc.unsure {
				t.Errorf("%s: %v", name, err)
			}
			if tc.unsure && strings.Contains(err.Error(), "not published") {
				t.Errorf("%s: %v", name, err)
			}
			must(t, p.Close(t.Context()))
		})
	}
	unreachable := sqs.New(sqs.Config{Region: "x", Endpoint: "http://127.0.0.1:1", Credentials: sqs.Keys("x", transport.Static("x"), transport.Secret{})})
	p, err := unreachable.Publisher(sqs.PublisherConfig{})
	must(t, err)
	if err := p.Publish(t.Context(), "http://127.0.0.1:1/0/q", &longshore.Message{Body: []byte("a")}); !errors.Is(err, longshore.CodeUnreachable) || errors.Is(err, longshore.CodeMaybeSent) {
		t.Errorf("nobody listens: %v", err)
	}
	must(t, p.Close(t.Context()))
}

// F-N21: the copy of a rejected message is sent twice: both have the identity of the
// message, also where another program had sent it.
func TestCopiesInTheDeadLetterQueueHaveOneIdentity(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + s.ARN("dead") + `","maxReceiveCount":100}`})
		sendRaw(t, s, "orders", "a")
		broker := sqs.New(s.Config())
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		d := take(t, c, 1)[0]
		want := longshore.Identity(d)
		s.Inject(sqstest.Fault{Action: "SendMessageBatch", Times: 1, Lose: true})
		must(t, d.Reject(t.Context(), errBad))
		must(t, c.Flush(t.Context()))
		dead := open(t, broker.Queue("dead", sqs.QueueConfig{}), nil)
		for _, d := range take(t, dead, 2) {
			if got := longshore.Identity(d); got != want || want == "" {
				t.Errorf("identity %q, want %q", got, want)
			}
		}
		must(t, c.Close(t.Context()))
		must(t, dead.Close(t.Context()))
	})
}

// sendRaw sends a message as another program does.
func sendRaw(t *testing.T, s *sqstest.Server, queue, body string) {
	t.Helper()
	c := awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL), Credentials: remoteConfig("").Credentials, HTTPClient: s.HTTPClient()})
	_, err := c.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/0/" + queue), MessageBody: aws.String(body)})
	must(t, err)
}
