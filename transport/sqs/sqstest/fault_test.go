package sqstest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

func TestFaultRefusesAsOftenAsToldAndWhereTold(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q, other := e.queue("orders", nil), e.queue("others", nil)
		e.s.Inject(sqstest.Fault{Action: "SendMessage", Queue: "orders", Code: "RequestThrottled", Times: 2})
		for range 2 {
			_, err := e.trySend(q, "x")
			isA[*types.RequestThrottled](e, err)
		}
		e.send(other, "x")
		e.send(q, "x")
		remove := e.s.Inject(sqstest.Fault{Code: "ServiceUnavailable"})
		_, err := e.trySend(q, "x")
		if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorFault() == smithy.FaultClient {
			e.Errorf("error %v, want one of the server", err)
		}
		remove()
		e.send(q, "x")
		e.counts(q, "2", "0", "0")
	})
}

func TestFaultOnOneEntryLeavesTheOthers(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.s.Inject(sqstest.Fault{Action: "SendMessageBatch", Entry: func(x sqstest.Entry) string {
			switch x.Body {
			case "server":
				return "InternalFailure"
			case "sender":
				return "InvalidParameterValue"
			}
			return ""
		}})
		out, err := e.sendBatch(q, entry("a", "good"), entry("b", "server"), entry("c", "sender"))
		e.ok(err)
		if got := failedIDs(out.Failed); got != "b c*" {
			e.Errorf("failed %q", got)
		}
		e.got(e.receive(q, 10, 0), "good")
	})
}

// F-D04
func TestFaultOnEntriesOfDeletesAndVisibilityByIndex(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.send(q, "a")
		e.send(q, "b")
		ms := e.receive(q, 10, 0)
		second := func(x sqstest.Entry) string {
			if x.Index == 1 {
				return "RequestThrottled"
			}
			return ""
		}
		e.s.Inject(sqstest.Fault{Action: "ChangeMessageVisibilityBatch", Times: 1, Entry: second})
		e.s.Inject(sqstest.Fault{Action: "DeleteMessageBatch", Times: 1, Entry: second, ServerFault: true})
		hide := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &q}
		remove := &awssqs.DeleteMessageBatchInput{QueueUrl: &q}
		for i, m := range ms {
			id := aws.String([]string{"first", "second"}[i])
			hide.Entries = append(hide.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 60})
			remove.Entries = append(remove.Entries, types.DeleteMessageBatchRequestEntry{Id: id, ReceiptHandle: m.ReceiptHandle})
		}
		hidden, err := e.c.ChangeMessageVisibilityBatch(e.ctx(), hide)
		e.ok(err)
		if got := failedIDs(hidden.Failed); got != "second*" || *hidden.Failed[0].Code != "RequestThrottled" {
			e.Errorf("visibility failed %q", got)
		}
		removed, err := e.c.DeleteMessageBatch(e.ctx(), remove)
		e.ok(err)
		if got := failedIDs(removed.Failed); got != "second" || *removed.Failed[0].Code != "RequestThrottled" {
			e.Errorf("delete failed %q", got)
		}
		left := e.s.Messages("orders")
		if len(left) != 1 || left[0].Body != "b" || left[0].Due.Sub(e.s.Now()) != 30*time.Second {
			e.Errorf("left %+v", left)
		}
		removed, err = e.c.DeleteMessageBatch(e.ctx(), remove) // the fault was for one call
		e.ok(err)
		if len(removed.Failed) != 0 {
			e.Errorf("failed again: %v", failedIDs(removed.Failed))
		}
	})
}

func TestFaultLatencyBeforeTheCall(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.s.Inject(sqstest.Fault{Action: "SendMessage", Latency: time.Second})
		e.took(time.Second, time.Second, func() { e.send(q, "x") })
		ctx, cancel := context.WithTimeout(e.ctx(), 500*ms)
		defer cancel()
		_, err := e.c.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &q, MessageBody: aws.String("y")})
		if !canceled(err) {
			e.Errorf("error %v", err)
		}
		e.counts(q, "1", "0", "0") // who went away before has not called
	})
}

func TestFaultHoldsOrLosesAnswersOfCallsThatHappened(t *testing.T) {
	for _, noPort := range []bool{false, true} {
		e := newEnv(t, sqstest.Config{NoPort: noPort})
		q := e.queue("orders", nil)
		open := make(chan struct{})
		e.s.Inject(sqstest.Fault{Action: "SendMessage", Hold: open, Times: 1})
		sent := make(chan error)
		go func() {
			_, err := e.trySend(q, "held")
			sent <- err
		}()
		until(t, func() bool { st, _ := e.s.Queue("orders"); return st.Visible == 1 })
		select {
		case err := <-sent:
			t.Errorf("the held answer came: %v", err)
		default:
		}
		close(open)
		e.ok(<-sent)
		e.s.Inject(sqstest.Fault{Action: "SendMessage", Lose: true, Times: 1})
		if _, err := e.trySend(q, "lost"); err == nil {
			t.Error("the lost answer came")
		}
		e.s.Inject(sqstest.Fault{Action: "SendMessage", Cut: true, Times: 1})
		if _, err := e.trySend(q, "cut"); err == nil {
			t.Error("a cut call was answered")
		}
		e.got(e.receive(q, 10, 0), "held", "lost")
	}
}

func TestFaultSecondReceipt(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.send(q, "x")
		e.s.Inject(sqstest.Fault{Action: "ReceiveMessage", SecondReceipt: true, Times: 1})
		both := e.receive(q, 10, 0)
		e.got(both, "x", "x")
		if *both[0].MessageId != *both[1].MessageId || *both[0].ReceiptHandle == *both[1].ReceiptHandle {
			e.Errorf("want one id and two receipts: %+v", both)
		}
		e.ok(e.remove(q, both[0]))
		e.counts(q, "0", "1", "0")
		e.ok(e.remove(q, both[1]))
		e.counts(q, "0", "0", "0")

		e.send(q, "y") // without room the copy comes with the next receive
		e.s.Inject(sqstest.Fault{Action: "ReceiveMessage", SecondReceipt: true, Times: 1})
		e.got(e.receive(q, 1, 0), "y")
		e.got(e.receive(q, 1, 0), "y")
	})
}

// F-D05
func TestSecondReceiptGoesToAPollThatWaits(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		e.s.Inject(sqstest.Fault{Action: "ReceiveMessage", SecondReceipt: true})
		got := make(chan string, 2)
		for range 2 {
			go func() { got <- strings.Join(bodies(e.receive(q, 1, 20)), " ") }()
		}
		e.wait(time.Second)
		e.send(q, "x")
		e.took(0, 0, func() {
			if a, b := <-got, <-got; a != "x" || b != "x" {
				e.Errorf("the polls got %q and %q", a, b)
			}
		})
	})
}

func TestCallLogHasReceiptsAndValues(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.queue("orders", nil)
		sent := e.send(q, "x", delayed(0))
		m := e.one(q, 5, hiddenFor(9))
		e.ok(e.hide(q, m, 33))
		e.ok(e.remove(q, m))
		_, _ = e.c.DeleteMessageBatch(e.ctx(), &awssqs.DeleteMessageBatchInput{QueueUrl: &q, Entries: []types.DeleteMessageBatchRequestEntry{
			{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")}}})
		_, err := e.trySend(q, "")
		if err == nil {
			e.Error("an empty body was taken")
		}
		calls := e.s.Calls()
		if len(calls) != 7 {
			e.Fatalf("%d calls: %+v", len(calls), calls)
		}
		r := calls[2]
		if r.Action != "ReceiveMessage" || r.Queue != "orders" || r.Wait != 5 || r.Visibility != 9 || r.Max != 1 || !r.Done ||
			len(r.Entries) != 1 || r.Entries[0].MessageID != *sent.MessageId || r.Entries[0].Receipt != *m.ReceiptHandle {
			e.Errorf("receive %+v", r)
		}
		if h := calls[3]; h.Entries[0].Visibility != 33 || h.Entries[0].Receipt != *m.ReceiptHandle || h.Entries[0].MessageID != *sent.MessageId {
			e.Errorf("visibility %+v", h)
		}
		if b := calls[5]; b.Entries[0].ID != "bad" || b.Entries[0].Code != "ReceiptHandleIsInvalid" || b.Code != "" {
			e.Errorf("delete batch %+v", b)
		}
		if calls[6].Code != "MissingParameter" {
			e.Errorf("refused send %+v", calls[6])
		}
		if e.s.Count("SendMessage") != 2 || e.s.Count() != 7 || len(e.s.Calls("DeleteMessage")) != 1 {
			e.Errorf("counts: %d of SendMessage, %d in all", e.s.Count("SendMessage"), e.s.Count())
		}
		e.s.ForgetCalls()
		if e.s.Count() != 0 || len(e.s.Calls()) != 0 {
			e.Error("the log is not empty")
		}
	})
}

func TestCallLogIsBounded(t *testing.T) {
	bubble(t, sqstest.Config{CallLog: 10}, func(e *env) {
		q := e.queue("orders", nil)
		for range 100 {
			e.send(q, "x")
		}
		if n := len(e.s.Calls()); n > 10 || e.s.Count("SendMessage") != 100 {
			e.Errorf("%d calls kept, %d counted", n, e.s.Count("SendMessage"))
		}
	})
}

func TestInspection(t *testing.T) {
	bubble(t, sqstest.Config{}, func(e *env) {
		q := e.s.CreateQueue(e, "orders.fifo", map[string]string{"ContentBasedDeduplication": "true"})
		e.send(q, "x", inGroup("g", ""), with(map[string]types.MessageAttributeValue{"a": str("1"), "b": {DataType: aws.String("Binary"), BinaryValue: []byte{7}}}))
		e.one(q, 0)
		ms := e.s.Messages("orders.fifo")
		if len(ms) != 1 || ms[0].Group != "g" || ms[0].Strings["a"] != "1" || ms[0].Binaries["b"][0] != 7 || ms[0].Receives != 1 || !ms[0].Hidden {
			e.Errorf("%+v", ms)
		}
		e.s.Expire("orders.fifo")
		if st, ok := e.s.Queue("orders.fifo"); !ok || st != (sqstest.QueueState{Visible: 1}) {
			e.Errorf("%+v", st)
		}
		if _, ok := e.s.Queue("nowhere"); ok {
			e.Error("a queue that does not exist was found")
		}
	})
}
