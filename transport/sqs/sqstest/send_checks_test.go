package sqstest_test

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const ms = time.Millisecond

func sendChecks() []check {
	return []check{
		{"SendMessage: ids, MD5OfMessageBody", func(e *env) {
			q := e.queue("orders", nil)
			a, b := e.send(q, "hello"), e.send(q, "hello")
			if *a.MessageId == *b.MessageId || *a.MD5OfMessageBody != "5d41402abc4b2a76b9719d911017c592" {
				e.Errorf("%+v %+v", a, b)
			}
		}},
		{"MessageAttributes string/number/binary round trip", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x", with(threeKinds()))
			m := e.one(q, 0)
			if got := m.MessageAttributes; *got["str"].StringValue != "v\u00e9" || *got["num"].StringValue != "42.5" ||
				!bytes.Equal(got["bin"].BinaryValue, []byte{0, 1, 2, 254, 255}) || *got["bin"].DataType != "Binary" {
				e.Errorf("attributes %v", got)
			}
		}},
		{"MD5OfMessageAttributes on send and receive", func(e *env) {
			q := e.queue("orders", nil)
			out := e.send(q, "x", with(threeKinds()))
			m := e.one(q, 0)
			const want = "24780ff8cb7857d5c183a8f6e23f3474"
			if aws.ToString(out.MD5OfMessageAttributes) != want || aws.ToString(m.MD5OfMessageAttributes) != want {
				e.Errorf("sent %s, received %s, want %s", aws.ToString(out.MD5OfMessageAttributes), aws.ToString(m.MD5OfMessageAttributes), want)
			}
		}},
		{"Receive returns only requested attribute names", func(e *env) {
			q := e.queue("orders", map[string]string{"VisibilityTimeout": "0"})
			e.send(q, "x", with(map[string]types.MessageAttributeValue{"a.one": str("1"), "a.two": str("2"), "b": str("3")}))
			for want, names := range map[string][]string{"": nil, "a.one a.two b": {"All"}, "a.one": {"a.one", "c"}, "a.one a.two": {"a.*"}} {
				m := e.one(q, 0, func(in *awssqs.ReceiveMessageInput) {
					in.MessageAttributeNames = names
					in.MessageSystemAttributeNames = []types.MessageSystemAttributeName{"SenderId"}
				})
				if got := strings.Join(sortedKeys(m.MessageAttributes), " "); got != want {
					e.Errorf("asked for %v: %q, want %q", names, got, want)
				}
				if got := sortedKeys(m.Attributes); len(got) != 1 || got[0] != "SenderId" {
					e.Errorf("system attributes %v", got)
				}
			}
		}},
		{"System attributes (SentTimestamp, SenderId, FirstReceive, ReceiveCount)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x")
			a := e.one(q, 0).Attributes
			for _, name := range []string{"SentTimestamp", "ApproximateFirstReceiveTimestamp"} {
				if n, err := strconv.ParseInt(a[name], 10, 64); err != nil || time.Since(time.UnixMilli(n)).Abs() > time.Minute {
					e.Errorf("%s is %q", name, a[name])
				}
			}
			if a["SenderId"] == "" || a["ApproximateReceiveCount"] != "1" {
				e.Errorf("%v", a)
			}
		}},
		{"DelaySeconds=2 on SendMessage hides, then shows (short poll)", func(e *env) {
			q := e.queue("orders", nil)
			e.send(q, "x", delayed(2))
			e.none(q)
			e.wait(1 * time.Second)
			e.none(q)
			e.wait(1100 * ms)
			e.one(q, 0)
		}},
		{"Queue DelaySeconds attribute", func(e *env) {
			q := e.queue("orders", map[string]string{"DelaySeconds": "1"})
			e.send(q, "x")
			e.none(q)
			e.wait(1100 * ms)
			e.one(q, 0)
		}},
	}
}

func threeKinds() map[string]types.MessageAttributeValue {
	return map[string]types.MessageAttributeValue{
		"str": str("v\u00e9"),
		"num": {DataType: aws.String("Number"), StringValue: aws.String("42.5")},
		"bin": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1, 2, 254, 255}},
	}
}

func entry(id, body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body}
}

func (e *env) sendBatch(q string, entries ...types.SendMessageBatchRequestEntry) (*awssqs.SendMessageBatchOutput, error) {
	return e.c.SendMessageBatch(e.ctx(), &awssqs.SendMessageBatchInput{QueueUrl: &q, Entries: entries})
}

// failedIDs are the ids of failed entries, with a * for those that are the sender's fault.
func failedIDs(fs []types.BatchResultErrorEntry) string {
	var out []string
	for _, f := range fs {
		id := *f.Id
		if f.SenderFault {
			id += "*"
		}
		out = append(out, id)
	}
	return strings.Join(out, " ")
}

func batchChecks() []check {
	return []check{
		{"DelaySeconds in SendMessageBatch entries", func(e *env) {
			q := e.queue("orders", nil)
			late := entry("b", "late")
			late.DelaySeconds = 2
			_, err := e.sendBatch(q, entry("a", "now"), late)
			e.ok(err)
			e.got(e.receive(q, 10, 0), "now")
			e.wait(2100 * ms)
			e.got(e.receive(q, 10, 0), "late")
		}},
		{"SendMessageBatch of 10", func(e *env) {
			q := e.queue("orders", nil)
			var entries []types.SendMessageBatchRequestEntry
			for i := range 10 {
				entries = append(entries, entry(strconv.Itoa(i), "m"+strconv.Itoa(i)))
			}
			out, err := e.sendBatch(q, entries...)
			e.ok(err)
			if len(out.Successful) != 10 || len(out.Failed) != 0 {
				e.Errorf("%d sent, %d failed", len(out.Successful), len(out.Failed))
			}
			if got := e.receive(q, 10, 0); len(got) != 10 {
				e.Errorf("received %d", len(got))
			}
		}},
		{"SendMessageBatch partial failure (DelaySeconds=901 / bad chars / empty body)", func(e *env) {
			q := e.queue("orders", nil)
			late := entry("late", "x")
			late.DelaySeconds = 901
			out, err := e.sendBatch(q, entry("good", "x"), late, entry("chars", "\x01"), entry("empty", ""))
			e.ok(err)
			if got := failedIDs(out.Failed); got != "late* chars* empty*" || len(out.Successful) != 1 || *out.Successful[0].Id != "good" {
				e.Errorf("failed %q, successful %v", got, out.Successful)
			}
		}},
		{"SendMessageBatch FIFO entry without group = per-entry failure", func(e *env) {
			q := e.queue("orders.fifo", map[string]string{"ContentBasedDeduplication": "true"})
			good := entry("good", "x")
			good.MessageGroupId = aws.String("g")
			out, err := e.sendBatch(q, entry("bad", "y"), good)
			e.ok(err)
			if got := failedIDs(out.Failed); got != "bad*" || len(out.Successful) != 1 {
				e.Errorf("failed %q, successful %v", got, out.Successful)
			}
		}},
		{"Batch errors: TooManyEntries / IdsNotDistinct / Empty", func(e *env) {
			q := e.queue("orders", nil)
			var many []types.SendMessageBatchRequestEntry
			for i := range 11 {
				many = append(many, entry(strconv.Itoa(i), "x"))
			}
			_, err := e.sendBatch(q, many...)
			isA[*types.TooManyEntriesInBatchRequest](e, err)
			_, err = e.sendBatch(q, entry("a", "x"), entry("a", "y"))
			isA[*types.BatchEntryIdsNotDistinct](e, err)
			_, err = e.sendBatch(q, []types.SendMessageBatchRequestEntry{}...)
			if err == nil {
				e.Error("an empty batch was taken")
			}
			_, err = e.sendBatch(q, entry("a b", "x"))
			isA[*types.InvalidBatchEntryId](e, err)
			e.counts(q, "0", "0", "0")
		}},
	}
}
