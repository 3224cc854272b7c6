package sqs_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// calls is a middleware that counts calls at the broker.
type calls struct {
	mu sync.Mutex
	n  map[longshore.Operation]int // without their time
}

func (*calls) Wrap(next longshore.Handler) longshore.Handler { return next }

func (c *calls) Operation(o longshore.Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[longshore.Operation]int{}
	}
	if o.Kind == longshore.OperationReceive && o.Took > 0 {
		o.Kind = "waited" // for messages, or for none
	}
	o.Took = 0
	c.n[o]++
}

func (c *calls) of(kind longshore.OperationKind, code longshore.Code) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[longshore.Operation{Transport: "aws_sqs", Source: "orders", Kind: kind, Code: code}]
}

// Each kind of call is told with its outcome, and under the source's name.
func TestCallsAtTheBrokerAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30", "RedrivePolicy": redrive(s, "dead", 5)})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "ack", "nack", "reject", "long")
		s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Times: 1, Entry: func(sqstest.Entry) string { return "AccessDenied" }})
		heard := &calls{}
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(ctx context.Context, d *longshore.Delivery) error {
			switch string(d.Body) {
			case "nack":
				if d.Attempt == 1 {
					return d.Nack(ctx, time.Second)
				}
			case "reject":
				return longshore.Reject(errors.New("never"))
			case "long":
				wait(time.Minute)
			}
			return nil
		}, container.Config{Middleware: []longshore.Middleware{heard}, Workers: container.Workers{Min: 5, Max: 5}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterNative}})
		wait(2 * time.Minute)
		stop()
		for _, want := range []struct {
			kind longshore.OperationKind
			code longshore.Code
		}{{"waited", ""}, {longshore.OperationAck, ""}, {longshore.OperationAck, longshore.CodeSettle}, {longshore.OperationNack, ""}, {longshore.OperationReject, ""}, {longshore.OperationExtend, ""}} {
			if heard.of(want.kind, want.code) == 0 {
				t.Errorf("no %s with code %q: %v", want.kind, want.code, heard.n)
			}
		}
		maps.DeleteFunc(heard.n, func(o longshore.Operation, _ int) bool { return o.Transport == "aws_sqs" && o.Source == "orders" })
		if len(heard.n) > 0 {
			t.Errorf("under another name: %v", heard.n)
		}
	})
}
