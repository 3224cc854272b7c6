package sqs_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// goRound consumes two queues that send each other their dead letters, and returns the
// count of runs.
func goRound(t *testing.T, b *sqs.Broker, w, d string, native bool) *atomic.Int64 {
	t.Helper()
	publish(t, b, w, "", "a")
	runs := &atomic.Int64{}
	for from, to := range map[string]string{w: d, d: w} {
		cfg := container.Config{Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{To: to}}
		if native {
			cfg.DeadLetter = container.DeadLetter{Policy: container.DeadLetterNative}
		}
		run(t, b.Queue(from, sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error {
			runs.Add(1)
			return errBad
		}, cfg)
	}
	return runs
}

// F-N07: two containers that send each other their dead letters come to rest with the
// message kept, by the container's copies and by the redrive policies alike.
func TestDeadLettersThatGoRoundComeToRest(t *testing.T) {
	for name, native := range map[string]bool{"ours": false, "the redrive policies": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *sqstest.Server) {
				s.CreateQueue(t, "w", nil)
				s.CreateQueue(t, "d", map[string]string{"RedrivePolicy": redrive(s, "w", 100)})
				setPolicy(t, s, "w", redrive(s, "d", 100))
				runs := goRound(t, sqs.New(s.Config()), "w", "d", native)
				until(t, time.Minute, "it has gone round", func() bool { return runs.Load() >= 9 })
				wait(10 * time.Minute)
				// The message is kept, and its retry is due now and then.
				if a, b := state(t, s, "w"), state(t, s, "d"); a.Visible+a.Hidden+a.Delayed+b.Visible+b.Hidden+b.Delayed != 1 {
					t.Errorf("%+v and %+v, want one message", a, b)
				}
				if moves := s.Count("SendMessageBatch") - 1; moves != 8 {
					t.Errorf("moved %d times, want 8", moves)
				}
			})
		})
	}
}

// F-N07: a move that SQS makes itself counts too, where SQS shows it.
func TestRedriveBySQSCountsAsAMove(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "d", nil)
		s.CreateQueue(t, "w", map[string]string{"RedrivePolicy": redrive(s, "d", 1)})
		b := sqs.New(s.Config())
		publish(t, b, "w", "", "a")
		// On w the handler fails for the last time after SQS's own limit; on d it is sent back.
		run(t, b.Queue("w", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error { return longshore.Retry(errBad, time.Second) },
			container.Config{Redelivery: container.Redelivery{MaxAttempts: 50}, DeadLetter: container.DeadLetter{To: "d"}})
		run(t, b.Queue("d", sqs.QueueConfig{}), func(context.Context, *longshore.Delivery) error { return errBad },
			container.Config{Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{To: "w"}})
		wait(10 * time.Minute)
		if moves := s.Count("SendMessageBatch") - 1; moves != 4 {
			t.Errorf("the container moved it %d times, want 4: SQS has moved it as often", moves)
		}
	})
}

// F-N07 on ElasticMQ.
func TestElasticMQDeadLettersThatGoRoundComeToRest(t *testing.T) {
	endpoint := brokertest.SQS(t)
	api, stamp := remoteClient(t), time.Now().UnixNano()
	w, d := fmt.Sprintf("round-w-%d", stamp), fmt.Sprintf("round-d-%d", stamp)
	createRemote(t, api, w, nil)
	createRemote(t, api, d, nil)
	runs := goRound(t, sqs.New(remoteConfig(endpoint)), w, d, false)
	until(t, 30*time.Second, "it has gone round", func() bool { return runs.Load() >= 9 })
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		if n := runs.Load(); n > 9 {
			t.Fatalf("it has gone on: %d runs", n)
		}
	}
}

// setPolicy gives an existing queue a redrive policy.
func setPolicy(t *testing.T, s *sqstest.Server, queue, policy string) {
	t.Helper()
	api := rawClient(s)
	out, err := api.GetQueueUrl(t.Context(), &awssqs.GetQueueUrlInput{QueueName: &queue})
	must(t, err)
	_, err = api.SetQueueAttributes(t.Context(), &awssqs.SetQueueAttributesInput{QueueUrl: out.QueueUrl, Attributes: map[string]string{"RedrivePolicy": policy}})
	must(t, err)
}
