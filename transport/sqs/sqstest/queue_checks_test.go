package sqstest_test

import (
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func queueChecks() []check {
	return []check{
		{"CreateQueue standard + GetQueueUrl", func(e *env) {
			q := e.queue("orders", nil)
			out, err := e.c.GetQueueUrl(e.ctx(), &awssqs.GetQueueUrlInput{QueueName: aws.String("orders")})
			e.ok(err)
			if *out.QueueUrl != q {
				e.Errorf("GetQueueUrl gives %s, CreateQueue gave %s", *out.QueueUrl, q)
			}
		}},
		{"CreateQueue .fifo (FifoQueue attribute, ARN)", func(e *env) {
			a := e.attributes(e.queue("orders.fifo", nil))
			if a["FifoQueue"] != "true" || a["QueueArn"] != "arn:aws:sqs:us-east-1:000000000000:orders.fifo" {
				e.Errorf("attributes %v", a)
			}
			_, err := e.c.CreateQueue(e.ctx(), &awssqs.CreateQueueInput{QueueName: aws.String("other.fifo")})
			e.code(err, "InvalidParameterValue")
		}},
		{"CreateQueue again: same attributes = same URL", func(e *env) {
			attrs := map[string]string{"VisibilityTimeout": "7"}
			if a, b := e.queue("orders", attrs), e.queue("orders", attrs); a != b {
				e.Errorf("%s and %s", a, b)
			}
		}},
		{"CreateQueue again: other attributes = QueueNameExists", func(e *env) {
			e.queue("orders", map[string]string{"VisibilityTimeout": "7"})
			_, err := e.c.CreateQueue(e.ctx(), &awssqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"VisibilityTimeout": "8"}})
			isA[*types.QueueNameExists](e, err)
		}},
		{"SetQueueAttributes round trip; unknown attribute = error", func(e *env) {
			q := e.queue("orders", nil)
			set := func(k, v string) error {
				_, err := e.c.SetQueueAttributes(e.ctx(), &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{k: v}})
				return err
			}
			e.ok(set("VisibilityTimeout", "77"))
			if got := e.attributes(q)["VisibilityTimeout"]; got != "77" {
				e.Errorf("VisibilityTimeout is %s", got)
			}
			isA[*types.InvalidAttributeName](e, set("Colour", "1"))
			_, err := e.c.GetQueueAttributes(e.ctx(), &awssqs.GetQueueAttributesInput{QueueUrl: &q, AttributeNames: []types.QueueAttributeName{"Colour"}})
			isA[*types.InvalidAttributeName](e, err)
		}},
		{"MessageRetentionPeriod attribute validated (59 = error)", func(e *env) {
			_, err := e.c.CreateQueue(e.ctx(), &awssqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"MessageRetentionPeriod": "59"}})
			isA[*types.InvalidAttributeValue](e, err)
			e.queue("orders", map[string]string{"MessageRetentionPeriod": "60"})
		}},
		{"PurgeQueue empties visible and in-flight", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "a")
			e.send(q, "b")
			e.send(q, "c", delayed(60))
			m := e.one(q, 0)
			_, err := e.c.PurgeQueue(e.ctx(), &awssqs.PurgeQueueInput{QueueUrl: &q})
			e.ok(err)
			e.counts(q, "0", "0", "0")
			e.ok(e.remove(q, m))
			e.none(q)
		}},
		{"Missing queue: GetQueueUrl = *types.QueueDoesNotExist", func(e *env) {
			_, err := e.c.GetQueueUrl(e.ctx(), &awssqs.GetQueueUrlInput{QueueName: aws.String("nowhere")})
			isA[*types.QueueDoesNotExist](e, err)
			e.code(err, "AWS.SimpleQueueService.NonExistentQueue")
		}},
		{"Missing queue: Send/Receive/Delete/Attributes/batch = *types.QueueDoesNotExist", missingQueue},
		{"DeleteQueue, ListQueues(prefix), then QueueDoesNotExist", func(e *env) {
			q := e.queue("orders-1", nil)
			e.queue("orders-2", nil)
			e.queue("other", nil)
			list := func() string {
				out, err := e.c.ListQueues(e.ctx(), &awssqs.ListQueuesInput{QueueNamePrefix: aws.String("orders")})
				e.ok(err)
				names := make([]string, len(out.QueueUrls))
				for i, u := range out.QueueUrls {
					names[i] = u[strings.LastIndex(u, "/")+1:]
				}
				return strings.Join(names, " ")
			}
			if got := list(); got != "orders-1 orders-2" {
				e.Errorf("queues %q", got)
			}
			_, err := e.c.DeleteQueue(e.ctx(), &awssqs.DeleteQueueInput{QueueUrl: &q})
			e.ok(err)
			if got := list(); got != "orders-2" {
				e.Errorf("queues after the delete: %q", got)
			}
			_, err = e.trySend(q, "x")
			isA[*types.QueueDoesNotExist](e, err)
		}},
		{"TagQueue / ListQueueTags / UntagQueue", func(e *env) {
			q := e.queue("orders", nil)
			_, err := e.c.TagQueue(e.ctx(), &awssqs.TagQueueInput{QueueUrl: &q, Tags: map[string]string{"a": "1", "b": "2"}})
			e.ok(err)
			_, err = e.c.UntagQueue(e.ctx(), &awssqs.UntagQueueInput{QueueUrl: &q, TagKeys: []string{"a"}})
			e.ok(err)
			out, err := e.c.ListQueueTags(e.ctx(), &awssqs.ListQueueTagsInput{QueueUrl: &q})
			e.ok(err)
			if !maps.Equal(out.Tags, map[string]string{"b": "2"}) {
				e.Errorf("tags %v", out.Tags)
			}
		}},
		{"GetQueueAttributes counts: visible / in flight / delayed", func(e *env) {
			q := e.queue("orders", nil)
			for range 3 {
				e.send(q, "a")
			}
			e.send(q, "b", delayed(60))
			e.receive(q, 2, 0)
			e.counts(q, "1", "2", "1")
		}},
		{"GetQueueAttributes counts after an unattended visibility expiry", func(e *env) {
			q := e.queue("orders", map[string]string{"VisibilityTimeout": "1"})
			e.send(q, "a")
			e.one(q, 0)
			e.counts(q, "0", "1", "0")
			e.wait(1100 * ms)
			e.counts(q, "1", "0", "0")
		}},
	}
}

func missingQueue(e *env) {
	q := e.s.URL + "/000000000000/nowhere"
	receipt := aws.String("x")
	_, send := e.trySend(q, "x")
	_, receive := e.c.ReceiveMessage(e.ctx(), &awssqs.ReceiveMessageInput{QueueUrl: &q})
	_, del := e.c.DeleteMessage(e.ctx(), &awssqs.DeleteMessageInput{QueueUrl: &q, ReceiptHandle: receipt})
	_, attrs := e.c.GetQueueAttributes(e.ctx(), &awssqs.GetQueueAttributesInput{QueueUrl: &q})
	_, sendBatch := e.c.SendMessageBatch(e.ctx(), &awssqs.SendMessageBatchInput{QueueUrl: &q,
		Entries: []types.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: aws.String("x")}}})
	_, delBatch := e.c.DeleteMessageBatch(e.ctx(), &awssqs.DeleteMessageBatchInput{QueueUrl: &q,
		Entries: []types.DeleteMessageBatchRequestEntry{{Id: aws.String("1"), ReceiptHandle: receipt}}})
	for _, err := range []error{send, receive, del, attrs, sendBatch, delBatch} {
		isA[*types.QueueDoesNotExist](e, err)
	}
}
