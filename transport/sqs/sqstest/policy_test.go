package sqstest_test

import (
	"testing"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// set changes one attribute of a queue.
func (e *env) set(q, name, value string) error {
	_, err := e.c.SetQueueAttributes(e.ctx(), &awssqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{name: value}})
	return err
}

func TestDeadLetterQueueMustAllowItsSource(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		dead, q := e.queue("dead", nil), e.queue("orders", nil)
		policy := `{"deadLetterTargetArn":"` + e.s.ARN("dead") + `","maxReceiveCount":3}`
		for _, bad := range []string{"{", `{"redrivePermission":"some"}`, `{"redrivePermission":"byQueue"}`,
			`{"redrivePermission":"denyAll","sourceQueueArns":["` + e.s.ARN("orders") + `"]}`} {
			isA[*types.InvalidAttributeValue](e, e.set(dead, "RedriveAllowPolicy", bad))
		}
		e.ok(e.set(dead, "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`))
		e.code(e.set(q, "RedrivePolicy", policy), "InvalidParameterValue")
		e.ok(e.set(dead, "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["`+e.s.ARN("others")+`"]}`))
		e.code(e.set(q, "RedrivePolicy", policy), "InvalidParameterValue")
		e.ok(e.set(dead, "RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["`+e.s.ARN("orders")+`"]}`))
		e.ok(e.set(q, "RedrivePolicy", policy))
		e.ok(e.set(dead, "RedriveAllowPolicy", ""))
	})
}

func TestDeadLetterQueueMustExistAndBeOfTheSameKind(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		dead := e.queue("dead", nil)
		e.queue("dead.fifo", nil)
		for _, name := range []string{"nowhere", "dead.fifo"} {
			e.code(e.set(q, "RedrivePolicy", `{"deadLetterTargetArn":"`+e.s.ARN(name)+`","maxReceiveCount":3}`), "InvalidParameterValue")
		}
		for _, count := range []string{"0", "1001", `"x"`} {
			e.code(e.set(q, "RedrivePolicy", `{"deadLetterTargetArn":"`+e.s.ARN("dead")+`","maxReceiveCount":`+count+`}`), "InvalidParameterValue")
		}
		e.ok(e.set(q, "RedrivePolicy", `{"deadLetterTargetArn":"`+e.s.ARN("dead")+`","maxReceiveCount":1}`))
		_, err := e.c.DeleteQueue(e.ctx(), &awssqs.DeleteQueueInput{QueueUrl: &dead})
		e.ok(err)
		e.ok(e.set(q, "VisibilityTimeout", "5")) // the policy that is there already is not asked about

		// With the dead-letter queue gone, messages stay and come again.
		e.send(q, "x")
		for range 3 {
			e.ok(e.hide(q, e.one(q, 0), 0))
		}
	})
}

func TestHighThroughputNeedsDeduplicationByGroup(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders.fifo", nil)
		isA[*types.InvalidAttributeValue](e, e.set(q, "FifoThroughputLimit", "perMessageGroupId"))
		e.ok(e.set(q, "DeduplicationScope", "messageGroup"))
		e.ok(e.set(q, "FifoThroughputLimit", "perMessageGroupId"))
		e.send(q, "a", inGroup("g", "same"))
		e.send(q, "b", inGroup("h", "same")) // another group, so no duplicate
		e.send(q, "c", inGroup("g", "same"))
		e.got(e.receive(q, 10, 0), "a", "b")
	})
}

func TestFIFOQueueAnswersEmptyAtTheInFlightLimit(t *testing.T) {
	bubble(t, sqstest.Config{MaxInFlight: 2}, func(e *env) {
		q := e.queue("orders.fifo", map[string]string{"ContentBasedDeduplication": "true"})
		for _, group := range []string{"a", "b", "c"} {
			e.send(q, group, inGroup(group, ""))
		}
		ms := e.receive(q, 10, 0)
		e.got(ms, "a", "b")
		e.none(q)
		e.ok(e.remove(q, ms[0]))
		e.got(e.receive(q, 10, 0), "c")
	})
}
