package sqstest_test

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func visibilityChecks() []check {
	return []check{
		{"Visibility timeout: hidden, then redelivered, ReceiveCount 1,2,3", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			for _, want := range []string{"1", "2", "3"} {
				m := e.one(q, 0, hiddenFor(1))
				if got := m.Attributes["ApproximateReceiveCount"]; got != want {
					e.Errorf("count %s, want %s", got, want)
				}
				e.none(q)
				e.wait(1100 * ms)
			}
		}},
		{"Queue VisibilityTimeout attribute=1 used as default", func(e *env) {
			q := e.queue("orders", map[string]string{"VisibilityTimeout": "1"})
			e.send(q, "x")
			e.one(q, 0)
			e.none(q)
			e.wait(1100 * ms)
			e.one(q, 0)
		}},
		{"ChangeMessageVisibility 0 = immediate redelivery", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			e.ok(e.hide(q, m, 0))
			if again := e.one(q, 0); *again.ReceiptHandle == *m.ReceiptHandle {
				e.Error("the receipt is the same as before")
			}
		}},
		{"ChangeMessageVisibility extends (2s -> 6s)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0, hiddenFor(2))
			e.ok(e.hide(q, m, 6))
			e.wait(3 * time.Second)
			e.none(q)
			e.took(2*time.Second, 4*time.Second, func() { e.one(q, 10) })
		}},
		{"ChangeMessageVisibilityBatch (0) + bad handle = Failed entry", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			out, err := e.c.ChangeMessageVisibilityBatch(e.ctx(), &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q,
				Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
					{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle},
					{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")},
				}})
			e.ok(err)
			if got := failedIDs(out.Failed); got != "bad*" || len(out.Successful) != 1 {
				e.Errorf("failed %q, successful %v", got, out.Successful)
			}
			e.one(q, 0)
		}},
		{"ChangeMessageVisibility on a visible message = MessageNotInflight (or handle error)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0, hiddenFor(1))
			e.wait(1100 * ms)
			isA[*types.MessageNotInflight](e, e.hide(q, m, 10))
		}},
	}
}

func deleteChecks() []check {
	return []check{
		{"DeleteMessage removes", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			e.ok(e.remove(q, e.one(q, 0, hiddenFor(1))))
			e.counts(q, "0", "0", "0")
			e.wait(1100 * ms)
			e.none(q)
		}},
		{"DeleteMessage twice with the same handle succeeds (idempotent)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			e.ok(e.remove(q, m))
			e.ok(e.remove(q, m))
		}},
		{"DeleteMessage after visibility expiry, before redelivery, deletes (standard)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0, hiddenFor(1))
			e.wait(1100 * ms)
			e.ok(e.remove(q, m))
			e.none(q)
			e.counts(q, "0", "0", "0")
		}},
		{"DeleteMessage with stale handle (redelivered since) must not delete", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			e.ok(e.hide(q, m, 0))
			e.one(q, 0)
			_ = e.remove(q, m)
			e.counts(q, "0", "1", "0")
		}},
		{"DeleteMessage with stale handle returns no error (documented)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			e.ok(e.hide(q, m, 0))
			e.one(q, 0)
			e.ok(e.remove(q, m))
		}},
		{"DeleteMessage with malformed handle = ReceiptHandleIsInvalid", func(e *env) {
			q := e.queue("orders", nil)
			other := e.queue("others", nil)
			e.send(other, "x")
			for _, receipt := range []string{"garbage", "AAAA", *e.one(other, 0).ReceiptHandle} {
				isA[*types.ReceiptHandleIsInvalid](e, e.remove(q, types.Message{ReceiptHandle: &receipt}))
			}
		}},
		{"DeleteMessageBatch + bad handle = Failed entry", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			m := e.one(q, 0)
			out, err := e.c.DeleteMessageBatch(e.ctx(), &awssqs.DeleteMessageBatchInput{QueueUrl: &q,
				Entries: []types.DeleteMessageBatchRequestEntry{
					{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")},
					{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle},
				}})
			e.ok(err)
			if got := failedIDs(out.Failed); got != "bad*" || *out.Failed[0].Code != "ReceiptHandleIsInvalid" || len(out.Successful) != 1 {
				e.Errorf("failed %q, successful %v", got, out.Successful)
			}
			e.counts(q, "0", "0", "0")
		}},
	}
}

func redriveChecks() []check {
	policy := func(e *env, dead string) map[string]string {
		return map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + e.s.ARN(dead) + `","maxReceiveCount":"2"}`}
	}
	return []check{
		{"RedrivePolicy: to DLQ after maxReceiveCount=2 (visibility 0)", func(e *env) {
			dead := e.queue("dead", nil)
			q := e.queue("orders", policy(e, "dead"))
			id := *e.send(q, "x", with(threeKinds())).MessageId
			for range 2 {
				e.ok(e.hide(q, e.one(q, 0), 0))
			}
			e.none(q)
			m := e.one(dead, 0)
			if *m.MessageId != id || len(m.MessageAttributes) != 3 || m.Attributes["ApproximateReceiveCount"] != "1" ||
				m.Attributes["DeadLetterQueueSourceArn"] != e.s.ARN("orders") {
				e.Errorf("dead letter %+v", m)
			}
			e.counts(q, "0", "0", "0")
		}},
		{"RedrivePolicy: to DLQ by visibility expiry only", func(e *env) {
			dead := e.queue("dead", nil)
			q := e.queue("orders", policy(e, "dead"))
			e.send(q, "x")
			for range 2 {
				e.one(q, 0, hiddenFor(1))
				e.wait(1100 * ms)
			}
			e.none(q)
			e.one(dead, 0)
		}},
		{"RedrivePolicy FIFO: DLQ keeps MessageGroupId, group unblocks", func(e *env) {
			dead := e.queue("dead.fifo", nil)
			q := e.queue("orders.fifo", policy(e, "dead.fifo"))
			e.send(q, "bad", inGroup("g", "1"))
			e.send(q, "next", inGroup("g", "2"))
			for range 2 {
				e.ok(e.hide(q, e.one(q, 0), 0))
			}
			e.got(e.receive(q, 1, 0), "next")
			m := e.one(dead, 0)
			if *m.Body != "bad" || m.Attributes["MessageGroupId"] != "g" {
				e.Errorf("dead letter %+v", m)
			}
		}},
		{"ListDeadLetterSourceQueues", func(e *env) {
			dead := e.queue("dead", nil)
			q := e.queue("orders", policy(e, "dead"))
			e.queue("others", nil)
			out, err := e.c.ListDeadLetterSourceQueues(e.ctx(), &awssqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
			e.ok(err)
			if len(out.QueueUrls) != 1 || out.QueueUrls[0] != q {
				e.Errorf("sources %v", out.QueueUrls)
			}
		}},
		{"StartMessageMoveTask (DLQ redrive)", func(e *env) {
			e.queue("dead", nil)
			q := e.queue("orders", policy(e, "dead"))
			e.send(q, "x")
			for range 2 {
				e.ok(e.hide(q, e.one(q, 0), 0))
			}
			e.none(q)
			task, err := e.c.StartMessageMoveTask(e.ctx(), &awssqs.StartMessageMoveTaskInput{SourceArn: aws.String(e.s.ARN("dead"))})
			e.ok(err)
			m := e.one(q, 2)
			if m.Attributes["ApproximateReceiveCount"] != "1" {
				e.Errorf("moved message %+v", m)
			}
			list, err := e.c.ListMessageMoveTasks(e.ctx(), &awssqs.ListMessageMoveTasksInput{SourceArn: aws.String(e.s.ARN("dead"))})
			e.ok(err)
			if len(list.Results) != 1 || list.Results[0].ApproximateNumberOfMessagesMoved != 1 || *list.Results[0].Status != "COMPLETED" {
				e.Errorf("tasks %+v", list.Results)
			}
			_, err = e.c.CancelMessageMoveTask(e.ctx(), &awssqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle})
			if err == nil {
				e.Error("a completed task was cancelled")
			}
			_, err = e.c.CancelMessageMoveTask(e.ctx(), &awssqs.CancelMessageMoveTaskInput{TaskHandle: aws.String("nothing")})
			if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
				e.Errorf("an unknown task: %v", err)
			}
		}},
	}
}
