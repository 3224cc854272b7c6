package sqs_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// receiveElsewhere receives a message n times and returns it at once, as the stops of other
// processes do.
func receiveElsewhere(t *testing.T, api *awssqs.Client, url string, n int) {
	t.Helper()
	for range n {
		out, err := api.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
		must(t, err)
		if len(out.Messages) != 1 {
			t.Fatalf("%d messages", len(out.Messages))
		}
		_, err = api.ChangeMessageVisibility(t.Context(), &awssqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: out.Messages[0].ReceiptHandle})
		must(t, err)
	}
}

// F-N15: five orderly stops of other processes use up no attempt: the message has all of
// its runs. A sixth counts as one, since it may have been a crash.
func TestStopsElsewhereUseUpNoAttempts(t *testing.T) {
	for stops, want := range map[int]int64{0: 3, 5: 3, 6: 2, 7: 1, 50: 1} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, "dead", nil)
			url := s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
			broker := sqs.New(s.Config())
			publish(t, broker, "orders", "", "a")
			receiveElsewhere(t, rawClient(s), url, stops)
			var runs atomic.Int64
			_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
				runs.Add(1)
				return errBad
			}, container.Config{Redelivery: container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: time.Second, Max: time.Second}}, DeadLetter: container.DeadLetter{To: "dead"}})
			wait(time.Minute)
			stop()
			if n := runs.Load(); n != want {
				t.Errorf("after %d stops elsewhere it was handled %d times, want %d", stops, n, want)
			}
			if st := state(t, s, "dead"); st.Visible != 1 {
				t.Errorf("after %d stops elsewhere: %+v in the dead-letter queue", stops, st)
			}
		})
	}
}

// F-N15: a message that crashes every process that handles it comes to an end on a queue
// without a redrive policy too: no handler sees it after a thousand receives.
func TestAMessageThatCrashesProcessesEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		url := s.CreateQueue(t, "orders", nil)
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		receiveElsewhere(t, rawClient(s), url, 1000)
		_, stop := run(t, broker.Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
			t.Error("a handler saw it")
			return nil
		}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}})
		wait(time.Minute)
		stop()
		if st := state(t, s, "dead"); st.Visible != 1 {
			t.Errorf("%+v in the dead-letter queue", st)
		}
	})
}

// What one container of a process returned is known to another container of the same
// broker: it uses up no attempt, however often.
func TestContainersOfOneProcessShareWhatTheyKnow(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		for range 20 {
			c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
			if d := take(t, c, 1)[0]; d.Attempt != 1 {
				t.Fatalf("attempt %d at receive %s", d.Attempt, native(t, d).Attributes["ApproximateReceiveCount"])
			}
			must(t, c.Close(t.Context()))
		}
	})
}

func native(t *testing.T, d *longshore.Delivery) *types.Message {
	t.Helper()
	m, ok := d.Native().(*types.Message)
	if !ok {
		t.Fatalf("%T", d.Native())
	}
	return m
}

// The redrive policy, which counts every receive, is reported when the container starts.
func TestRedrivePolicyIsReportedAtStart(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": redrive(s, "dead", 4)})
		core, logs := observer.New(zap.InfoLevel)
		_, stop := run(t, sqs.New(s.Config()).Queue("orders", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error { return nil },
			container.Config{Logger: zap.New(core)})
		wait(time.Second)
		stop()
		n := 0
		for _, line := range logs.All() {
			for _, f := range line.Context {
				if strings.Contains(f.String, "after 4 receives") {
					n++
				}
			}
			if strings.Contains(line.Message, "after 4 receives") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("maxReceiveCount is reported %d times: %v", n, logs.All())
		}
	})
}

// F-N15 on ElasticMQ: stops of other processes use up no attempt.
func TestElasticMQStopsElsewhereUseUpNoAttempts(t *testing.T) {
	api, queue := remoteClient(t), fmt.Sprintf("stops-%d", time.Now().UnixNano())
	url, _ := createRemote(t, api, queue, nil)
	broker := sqs.New(remoteConfig(brokertest.SQS(t)))
	publish(t, broker, queue, "", "a")
	receiveElsewhere(t, api, url, 5)
	c := open(t, broker.Queue(queue, sqs.QueueConfig{}), nil)
	d := take(t, c, 1)[0]
	if n := native(t, d).Attributes["ApproximateReceiveCount"]; d.Attempt != 1 || n != "6" {
		t.Errorf("attempt %d at receive %s, want 1 at 6", d.Attempt, n)
	}
	must(t, d.Ack(t.Context()))
	must(t, c.Close(t.Context()))
}
