package sqs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func TestDeclareCreatesQueueAndDeadLetterQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		broker := sqs.New(s.Config())
		src := broker.Queue("orders.fifo", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{"VisibilityTimeout": "77"}}})
		_, stop := run(t, src, func(context.Context, *longshore.Delivery) error { return nil }, container.Config{DeadLetter: container.DeadLetter{To: "dead.fifo"}})
		for _, name := range []string{"orders.fifo", "dead.fifo"} {
			if _, ok := s.Queue(name); !ok {
				t.Errorf("%s was not created", name)
			}
		}
		stop()
	})
}

// A place that cannot be is found at the start, and not when the first message
// should go there.
func TestDeadLetterQueueThatCannotBeFailsTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		_, err := sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{DeadLetter: "orders.dlq"})
		if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), `DeadLetter.To "orders.dlq"`) || !strings.Contains(err.Error(), `"orders-dlq"`) {
			t.Errorf("%v", err)
		}
	})
}

// F-K05: the error names the attribute, what is there and what was wanted.
func TestQueueThatDiffersIsNamed(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		src := sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{Declare: sqs.Declare{Attributes: map[string]string{"VisibilityTimeout": "60"}}})
		_, err := src.Open(t.Context(), transport.OpenOptions{})
		if !errors.Is(err, longshore.CodeMismatch) || !strings.Contains(err.Error(), `VisibilityTimeout is "30" there, "60" here`) {
			t.Errorf("%v", err)
		}
	})
}

func TestMissingQueueSaysWhereItLooked(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		_, err := sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{})
		want := `longshore: open sqs queue "orders" in us-east-1 (from Config.Region): it does not exist for this account (`
		if !errors.Is(err, longshore.CodeNotFound) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v", err)
		}
	})
}

// Browsing counts, so it has to be asked for where that does harm.
func TestBrowseIsRefusedWhereItDoesHarm(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": redrive(s, "dead", 3)})
		s.CreateQueue(t, "orders.fifo", nil)
		broker := sqs.New(s.Config())
		for _, name := range []string{"orders", "orders.fifo"} {
			_, _, err := broker.Queue(name, sqs.QueueConfig{}).(transport.Browser).Browse(t.Context(), "", 1) //nolint:errcheck // it is one
			if !errors.Is(err, longshore.CodeUnsupported) || !strings.Contains(err.Error(), "BrowseCounts") {
				t.Errorf("%s: %v", name, err)
			}
		}
		publish(t, broker, "dead", "", "a")
		ds, _, err := broker.Queue("dead", sqs.QueueConfig{}).(transport.Browser).Browse(t.Context(), "", 10) //nolint:errcheck // it is one
		if err != nil || len(ds) != 1 || state(t, s, "dead") != (sqstest.QueueState{Visible: 1}) {
			t.Errorf("%v, %v, %+v", ds, err, state(t, s, "dead"))
		}
	})
}

// Native rejection: a copy in the queue of the redrive policy, byte for byte, then
// the delete; without that queue the message stays.
func TestRejectMovesToTheRedriveQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": redrive(s, "dead", 10)})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "k", "bad", "good")
		before := s.Messages("orders")
		remove := s.Inject(sqstest.Fault{Action: "SendMessageBatch", Code: "ServiceUnavailable"})
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
			if string(d.Body) == "bad" {
				return longshore.Reject(errBad)
			}
			return nil
		}, container.Config{})
		wait(1e9)
		if st := state(t, s, "orders"); st.Hidden != 1 {
			t.Errorf("%+v while the copy cannot be sent", st)
		}
		remove()
		wait(10e9)
		stop()
		dead := s.Messages("dead")
		if len(dead) != 1 || dead[0].Body != "bad" || dead[0].Group != before[0].Group || len(dead[0].Types) != len(before[0].Types)+1 { // and how often it was moved
			t.Errorf("%+v", dead)
		}
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

// A copy that the dead-letter queue refuses says nothing of the message's own receipt: the
// message goes back at once, and is not left hidden until its lease ends.
func TestRefusedCopyGivesTheMessageBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": redrive(s, "dead", 10)})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "k", "bad")
		s.Inject(sqstest.Fault{Action: "SendMessageBatch", Times: 1, Entry: func(sqstest.Entry) string { return "InvalidParameterValue" }})
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
			return longshore.Reject(errBad)
		}, container.Config{})
		until(t, 5e9, "the copy is there", func() bool { return len(s.Messages("dead")) == 1 })
		stop()
		if st := state(t, s, "orders"); st != (sqstest.QueueState{}) {
			t.Errorf("left %+v", st)
		}
	})
}

func TestDepth(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(3)...)
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		take(t, c, 1)
		d, err := broker.Depth(t.Context(), "orders")
		if err != nil || d != (sqs.Depth{Visible: 2, Hidden: 1}) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// F-M03: visible, in flight and delayed count, and that these are estimates is said.
func TestRemaining(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", numbered(4)...)
		src := broker.Queue("orders", sqs.QueueConfig{})
		c := open(t, src, nil)
		ds := take(t, c, 2)
		if err := ds[0].Nack(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		r, err := src.(transport.Remainder).Remaining(t.Context()) //nolint:errcheck // it is one
		if err != nil || r.Ready != 2 || r.Unsettled+r.Delayed != 2 || r.Consumers != -1 || r.Exact || r.Lag < time.Minute || len(r.Of) != 1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
