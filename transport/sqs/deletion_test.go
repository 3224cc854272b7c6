package sqs_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/transporttest"
)

// depth is how many messages ElasticMQ holds, hidden ones included.
func depth(t *testing.T, c *awssqs.Client, url string) int {
	t.Helper()
	out, err := c.GetQueueAttributes(t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: &url,
		AttributeNames: []types.QueueAttributeName{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"}})
	must(t, err)
	n := 0
	for _, count := range out.Attributes {
		one, err := strconv.Atoi(count)
		must(t, err)
		n += one
	}
	return n
}

// The deletion policies of Spring Cloud AWS by their names, on ElasticMQ: one message whose
// handler succeeds and one whose handler fails on every attempt.
func TestDeletionPoliciesByName(t *testing.T) {
	endpoint := brokertest.SQS(t)
	for name, tc := range map[string]struct {
		policy  container.Deletion
		redrive bool
		queue   int // messages left in the queue after the stop, hidden ones included
		dead    int // and in the dead-letter queue
		bad     int // least runs of the message that fails
		most    int // most runs of it
	}{
		"on_success":                {container.DeleteOnSuccess, false, 1, 0, 4, 1000},
		"on_success with redrive":   {container.DeleteOnSuccess, true, 0, 1, 3, 3},
		"always":                    {container.DeleteAlways, false, 0, 0, 1, 1},
		"always with redrive":       {container.DeleteAlways, true, 0, 0, 1, 1},
		"never":                     {container.DeleteNever, false, 1, 0, 4, 1000},
		"no_redrive":                {container.DeleteNoRedrive, false, 0, 0, 1, 1},
		"no_redrive with a redrive": {container.DeleteNoRedrive, true, 0, 1, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, queue := remoteClient(t), transporttest.Name(t)
			attrs := map[string]string{"VisibilityTimeout": "30"}
			deadURL, arn := createRemote(t, api, queue+"-dead", nil)
			if tc.redrive {
				attrs["RedrivePolicy"] = `{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":"3"}`
			}
			url, _ := createRemote(t, api, queue, attrs)
			broker := sqs.New(remoteConfig(endpoint))
			publish(t, broker, queue, "", "good", "bad")
			var good, bad atomic.Int64
			kept := make(chan *longshore.Delivery, 10)
			_, stop := run(t, broker.Queue(queue, sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
				if string(d.Body) == "good" {
					good.Add(1)
					kept <- d
					return nil
				}
				bad.Add(1)
				return errBad
			}, container.Config{Deletion: tc.policy, DrainTimeout: -1,
				Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Second, Max: time.Second, Jitter: -1}}})
			until(t, 30*time.Second, "the runs", func() bool { return good.Load() >= 1 && bad.Load() >= int64(tc.bad) })
			if tc.bad <= 3 { // it comes to an end by itself
				until(t, 30*time.Second, "the end", func() bool { return depth(t, api, url) == tc.queue && depth(t, api, deadURL) == tc.dead })
			}
			if tc.policy == container.DeleteNever { // the handler's success did not delete it
				if n := depth(t, api, url); n != 2 {
					t.Errorf("%d messages before the handler's Ack, want 2", n)
				}
				must(t, (<-kept).Ack(t.Context()))
			}
			stop()
			if n := bad.Load(); n > int64(tc.most) {
				t.Errorf("%d runs of the message that fails, want at most %d", n, tc.most)
			}
			if good.Load() != 1 {
				t.Errorf("%d runs of the message that succeeds", good.Load())
			}
			if q, d := depth(t, api, url), depth(t, api, deadURL); q != tc.queue || d != tc.dead {
				t.Errorf("left %d in the queue and %d in the dead-letter queue, want %d and %d", q, d, tc.queue, tc.dead)
			}
		})
	}
}

// With BatchByBatch the next messages are received after the last of the batch is deleted,
// also where one of its handlers takes much longer than the others.
func TestNextBatchAfterTheWholeBatch(t *testing.T) {
	endpoint := brokertest.SQS(t)
	api, queue := remoteClient(t), transporttest.Name(t)
	createRemote(t, api, queue, nil)
	broker := sqs.New(remoteConfig(endpoint))
	publish(t, broker, queue, "", numbered(40)...)
	var running, most, done atomic.Int64
	release := make(chan struct{})
	c, _ := run(t, broker.Queue(queue, sqs.QueueConfig{BatchByBatch: true}), func(context.Context, *longshore.Delivery) error {
		if done.Add(1) == 1 {
			<-release
		}
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		running.Add(-1)
		return nil
	}, container.Config{Workers: container.Workers{Min: 20, Max: 20}})
	until(t, 10*time.Second, "the first batch", func() bool { return done.Load() > 1 })
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		if n := c.Stats().Received; n > 10 {
			t.Fatalf("%d messages were received while one of the first ten runs", n)
		}
	}
	close(release)
	until(t, 20*time.Second, "all", func() bool { return done.Load() == 40 })
}
