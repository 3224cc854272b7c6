package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// nothingIsHandedOut receives for a while, so that polls bring what there is, and fails if
// a delivery comes.
func nothingIsHandedOut(t *testing.T, c transport.Consumer, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if ds, err := c.Receive(ctx, 10); err == nil {
		t.Errorf("a copy of %s was handed out, attempt %d", ds[0].Body, ds[0].Attempt)
	}
}

// F-N09: messages come again, with a higher receive count, while their handlers run
// under kept leases. The handlers go on to their end, the copies start nothing, and what
// the handlers return is carried out with the newest receipt.
func TestCopyOfARunningMessageChangesNothing(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			const n = 50
			s.CreateQueue(t, queue, map[string]string{"VisibilityTimeout": "30"})
			broker := sqs.New(s.Config())
			for i := range n {
				publish(t, broker, queue, fmt.Sprint("g", i), fmt.Sprintf("m%05d", i))
			}
			var seen journal
			var cancelled, running atomic.Int32
			c, stop := run(t, broker.Queue(queue, sqs.QueueConfig{}), func(ctx context.Context, d *longshore.Delivery) error {
				seen.add(string(d.Body))
				running.Add(1)
				select {
				case <-time.After(2 * time.Minute):
				case <-ctx.Done():
					cancelled.Add(1)
				}
				return nil
			}, container.Config{Workers: container.Workers{Min: n + 10, Max: n + 10}})
			until(t, time.Minute, "all handlers run", func() bool { return running.Load() == n })
			for range 3 { // four receipts of each in the end
				wait(7 * time.Second)
				s.Expire(queue)
			}
			wait(3 * time.Minute)
			if seen.len() != n || cancelled.Load() != 0 || c.Stats().Lost != 0 {
				t.Errorf("%s: %d runs of %d messages, %d cancelled, %d lost", queue, seen.len(), n, cancelled.Load(), c.Stats().Lost)
			}
			stop()
			if st := state(t, s, queue); st != (sqstest.QueueState{}) {
				t.Errorf("%s: left %+v", queue, st)
			}
			if got := newestReceives(s); got < 4 {
				t.Errorf("%s: received %d times at most: the test does not provoke what it is for", queue, got)
			}
		})
	}
}

// newestReceives is the highest receive count that was handed out.
func newestReceives(s *sqstest.Server) (most int) {
	for _, call := range s.Calls("ReceiveMessage") {
		for _, e := range call.Entries {
			most = max(most, e.Receives)
		}
	}
	return most
}

// F-N09: the newest receipt is extended and settles, whatever the verb, and an extension
// by hand is answered for it.
func TestNewestReceiptSettles(t *testing.T) {
	verbs := map[string]struct {
		do   func(*longshore.Delivery) error
		left sqstest.QueueState
		dead int
	}{
		"ack":    {func(d *longshore.Delivery) error { return d.Ack(t.Context()) }, sqstest.QueueState{}, 0},
		"nack":   {func(d *longshore.Delivery) error { return d.Nack(t.Context(), 0) }, sqstest.QueueState{Visible: 1}, 0},
		"reject": {func(d *longshore.Delivery) error { return d.Reject(t.Context(), errBad) }, sqstest.QueueState{}, 1},
	}
	for name, verb := range verbs {
		for _, queue := range []string{"orders", "orders.fifo"} {
			t.Run(name+"/"+queue, func(t *testing.T) {
				bubble(t, func(t *testing.T, s *sqstest.Server) {
					dead := deadOf(queue, map[bool]string{true: ".fifo"}[queue == "orders.fifo"])
					s.CreateQueue(t, dead, nil)
					s.CreateQueue(t, queue, map[string]string{"VisibilityTimeout": "30", "RedrivePolicy": `{"deadLetterTargetArn":"` + s.ARN(dead) + `","maxReceiveCount":100}`})
					broker := sqs.New(s.Config())
					publish(t, broker, queue, "g", "a")
					var w watcher
					c := open(t, broker.Queue(queue, sqs.QueueConfig{}), &w)
					d := take(t, c, 1)[0]
					s.Expire(queue)
					nothingIsHandedOut(t, c, 30*time.Second)
					must(t, d.Extend(t.Context(), time.Hour))
					if left := s.Messages(queue)[0].Due.Sub(s.Now()); left != time.Hour {
						t.Errorf("hidden for %s after an extension by hand", left)
					}
					wait(2 * time.Hour)
					must(t, verb.do(d))
					must(t, c.Flush(t.Context()))
					if st := state(t, s, queue); st != verb.left {
						t.Errorf("left %+v, want %+v", st, verb.left)
					}
					if st := state(t, s, dead); st.Visible != verb.dead {
						t.Errorf("%d dead letters", st.Visible)
					}
					if lost, failed, downs := w.counts(); lost+failed+downs != 0 {
						t.Errorf("%d lost, %d failed, %d downs: %v", lost, failed, downs, w.failed)
					}
					must(t, c.Close(t.Context()))
				})
			})
		}
	}
}

// F-N09: two receipts of which one is refused: the handler goes on with the other, and
// is cancelled when none is left. A return after that counts the newest receive.
func TestMessageGoesOnWithTheReceiptThatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", map[string]string{"VisibilityTimeout": "30"})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		s.Inject(sqstest.Fault{Action: "ReceiveMessage", SecondReceipt: true, Times: 1})
		var w watcher
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), &w)
		d := take(t, c, 1)[0]
		nothingIsHandedOut(t, c, time.Second)
		var receipts []string
		for _, call := range s.Calls("ReceiveMessage") {
			for _, e := range call.Entries {
				receipts = append(receipts, e.Receipt)
			}
		}
		if len(receipts) != 2 {
			t.Fatalf("%d receipts", len(receipts))
		}
		refuse := func(which ...string) (remove func()) {
			return s.Inject(sqstest.Fault{Action: "ChangeMessageVisibilityBatch", Entry: func(e sqstest.Entry) string {
				if slices.Contains(which, e.Receipt) {
					return "MessageNotInflight"
				}
				return ""
			}})
		}
		remove := refuse(receipts[1])
		wait(3 * time.Minute)
		if !d.Owned() || d.Context().Err() != nil {
			t.Fatal("the message was lost although one of its receipts is good")
		}
		remove()
		defer refuse(receipts...)()
		wait(time.Minute)
		if d.Owned() || !errors.Is(context.Cause(d.Context()), longshore.ErrLost) {
			t.Error("the message is owned although none of its receipts is good")
		}
		if lost, _, _ := w.counts(); lost != 1 {
			t.Errorf("reported lost %d times", lost)
		}
		must(t, c.Close(t.Context()))
	})
}

// F-N09: a copy that comes while its message is being moved to the dead-letter queue
// starts nothing; one that comes after its message was given back is the next attempt.
func TestCopyOfASettledMessage(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "dead", nil)
		s.CreateQueue(t, "orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + s.ARN("dead") + `","maxReceiveCount":100}`})
		broker := sqs.New(s.Config())
		publish(t, broker, "orders", "", "a")
		c := open(t, broker.Queue("orders", sqs.QueueConfig{}), nil)
		d := take(t, c, 1)[0]
		remove := s.Inject(sqstest.Fault{Action: "SendMessageBatch", Code: "ServiceUnavailable"})
		must(t, d.Reject(t.Context(), errBad))
		wait(100 * time.Millisecond)
		s.Expire("orders")
		nothingIsHandedOut(t, c, time.Second)
		remove()
		must(t, c.Flush(t.Context()))
		if st, dead := state(t, s, "orders"), state(t, s, "dead"); st != (sqstest.QueueState{}) || dead.Visible != 1 {
			t.Errorf("left %+v, dead %+v", st, dead)
		}
		publish(t, broker, "orders", "", "b")
		d = take(t, c, 1)[0]
		must(t, d.Nack(t.Context(), 0))
		if d = take(t, c, 1)[0]; d.Attempt != 2 {
			t.Errorf("attempt %d after a return", d.Attempt)
		}
		must(t, d.Ack(t.Context()))
		must(t, c.Close(t.Context()))
	})
}

// F-N09, on ElasticMQ, where an old receipt is refused.
func TestCopyOfARunningMessageOnElasticMQ(t *testing.T) {
	api := remoteClient(t)
	name := transporttest.Name(t)
	queueURL, _ := createRemote(t, api, name, map[string]string{"VisibilityTimeout": "5"})
	broker := sqs.New(remoteConfig(brokertest.SQS(t)))
	publish(t, broker, name, "", "a", "b", "c")
	var w watcher
	c := open(t, broker.Queue(name, sqs.QueueConfig{}), &w)
	ds := take(t, c, 3)
	for _, d := range ds {
		m, ok := d.Native().(*types.Message)
		if !ok {
			t.Fatalf("native %T", d.Native())
		}
		_, err := api.ChangeMessageVisibility(t.Context(), &awssqs.ChangeMessageVisibilityInput{QueueUrl: aws.String(queueURL), ReceiptHandle: m.ReceiptHandle})
		must(t, err)
	}
	nothingIsHandedOut(t, c, 12*time.Second) // two leases
	for _, d := range ds {
		if !d.Owned() {
			t.Errorf("%s was lost", d.Body)
		}
		must(t, d.Ack(t.Context()))
	}
	must(t, c.Flush(t.Context()))
	if lost, failed, downs := w.counts(); lost+failed+downs != 0 {
		t.Errorf("%d lost, %d failed, %d downs: %v", lost, failed, downs, w.failed)
	}
	must(t, c.Close(t.Context()))
	if visible, hidden := counts(t, api, name); visible+hidden != 0 {
		t.Errorf("left %d visible, %d hidden", visible, hidden)
	}
}
