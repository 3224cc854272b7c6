package sqstest_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func fifoChecks() []check {
	content := map[string]string{"ContentBasedDeduplication": "true"}
	return []check{
		{"FIFO: order in a group; one in flight blocks the rest", func(e *env) {
			q := e.queue("orders.fifo", content)
			for _, body := range []string{"1", "2", "3"} {
				e.send(q, body, inGroup("g", ""))
			}
			for _, want := range []string{"1", "2", "3"} {
				m := e.one(q, 0)
				if *m.Body != want {
					e.Errorf("received %s, want %s", *m.Body, want)
				}
				e.none(q)
				e.ok(e.remove(q, m))
			}
		}},
		{"FIFO: other groups flow while one is blocked", func(e *env) {
			q := e.queue("orders.fifo", content)
			e.send(q, "a1", inGroup("a", ""))
			e.send(q, "a2", inGroup("a", ""))
			e.send(q, "b1", inGroup("b", ""))
			e.got(e.receive(q, 1, 0), "a1")
			e.got(e.receive(q, 10, 0), "b1")
		}},
		{"FIFO: one receive of 10 returns the group's run in order", func(e *env) {
			q := e.queue("orders.fifo", content)
			want := run(e, q)
			e.got(e.receive(q, 10, 0), want...)
		}},
		{"FIFO: order kept after visibility expiry of a run of 10", func(e *env) {
			q := e.queue("orders.fifo", content)
			want := run(e, q)
			e.receive(q, 10, 0, hiddenFor(1))
			e.wait(1100 * ms)
			e.got(e.receive(q, 10, 0), want...)
		}},
		{"FIFO: same dedup id is accepted, same MessageId, one delivery", func(e *env) {
			q := e.queue("orders.fifo", nil)
			a, b := e.send(q, "first", inGroup("g", "d")), e.send(q, "second", inGroup("h", "d"))
			if *a.MessageId != *b.MessageId || *a.SequenceNumber != *b.SequenceNumber {
				e.Errorf("%+v and %+v", a, b)
			}
			e.got(e.receive(q, 10, 0), "first")
		}},
		{"FIFO: dedup holds while in flight and after delete (5 min window)", func(e *env) {
			q := e.queue("orders.fifo", nil)
			e.send(q, "first", inGroup("g", "d"))
			m := e.one(q, 0)
			e.send(q, "second", inGroup("g", "d"))
			e.ok(e.remove(q, m))
			e.send(q, "third", inGroup("g", "d"))
			e.none(q)
		}},
		{"FIFO: ContentBasedDeduplication", func(e *env) {
			q := e.queue("orders.fifo", content)
			e.send(q, "same", inGroup("g", ""))
			e.send(q, "same", inGroup("g", ""))
			e.send(q, "other", inGroup("g", ""))
			ms := e.receive(q, 10, 0)
			e.got(ms, "same", "other")
			if len(ms) > 0 && ms[0].Attributes["MessageDeduplicationId"] != "0967115f2813a3541eaef77de9d9d5773f1c0c04314b0bbfe4ff3b3b1c55b5d5" {
				e.Errorf("deduplication id %s", ms[0].Attributes["MessageDeduplicationId"])
			}
		}},
		{"FIFO: no MessageGroupId / no dedup id = error", func(e *env) {
			q := e.queue("orders.fifo", nil)
			_, err := e.trySend(q, "x")
			e.code(err, "MissingParameter")
			_, err = e.trySend(q, "x", inGroup("g", ""))
			e.code(err, "InvalidParameterValue")
			_, err = e.trySend(q, "x", inGroup("g", "d"), delayed(1))
			e.code(err, "InvalidParameterValue")
		}},
		{"FIFO: SequenceNumber grows; group/dedup/sequence in system attributes", func(e *env) {
			q := e.queue("orders.fifo", nil)
			a, b := e.send(q, "1", inGroup("g", "x")), e.send(q, "2", inGroup("g", "y"))
			if len(*a.SequenceNumber) != 20 || *a.SequenceNumber >= *b.SequenceNumber {
				e.Errorf("sequence %s, then %s", *a.SequenceNumber, *b.SequenceNumber)
			}
			at := e.one(q, 0).Attributes
			if at["SequenceNumber"] != *a.SequenceNumber || at["MessageGroupId"] != "g" || at["MessageDeduplicationId"] != "x" {
				e.Errorf("attributes %v", at)
			}
		}},
	}
}

// F-D06
func releasedHeadWaitsForItsRun(e *env) {
	q := e.queue("orders.fifo", nil)
	for _, body := range []string{"1", "2", "3"} {
		e.send(q, body, inGroup("g", body))
	}
	ms := e.receive(q, 2, 0)
	e.got(ms, "1", "2")
	e.ok(e.hide(q, ms[0], 0)) // it is visible, but 2 is still in flight
	e.none(q)
	e.ok(e.hide(q, ms[1], 0))
	e.got(e.receive(q, 10, 0), "1", "2", "3")
}

// run sends ten messages of one group.
func run(e *env, q string) []string {
	e.Helper()
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprint(i))
		e.send(q, want[i], inGroup("g", ""))
	}
	return want
}

func limitChecks() []check {
	const kib = 1 << 10
	return []check{
		{"Size: 256 KiB + 1 (default queue; AWS accepts since the 1 MiB limit)", func(e *env) {
			e.send(e.queue("orders", nil), strings.Repeat("x", 256*kib+1))
		}},
		{"Size: 1 MiB + 1 = InvalidParameterValue", func(e *env) {
			q := e.queue("orders", nil)
			_, err := e.trySend(q, strings.Repeat("x", 1024*kib+1))
			e.code(err, "InvalidParameterValue")
			_, err = e.trySend(q, strings.Repeat("x", 1024*kib-8), with(map[string]types.MessageAttributeValue{"a": str("12")}))
			e.code(err, "InvalidParameterValue")
			e.send(q, strings.Repeat("x", 1024*kib))
		}},
		{"Size: queue MaximumMessageSize=1024 enforced", func(e *env) {
			q := e.queue("orders", map[string]string{"MaximumMessageSize": "1024"})
			_, err := e.trySend(q, strings.Repeat("x", 1025))
			e.code(err, "InvalidParameterValue")
			e.send(q, strings.Repeat("x", 1024))
		}},
		{"Size: batch total over 1 MiB = *types.BatchRequestTooLong", func(e *env) {
			q := e.queue("orders", nil)
			half := strings.Repeat("x", 512*kib)
			_, err := e.sendBatch(q, entry("a", half), entry("b", half+"x"))
			isA[*types.BatchRequestTooLong](e, err)
			_, err = e.sendBatch(q, entry("a", half), entry("b", half))
			e.ok(err)
		}},
		{"Invalid characters in body = *types.InvalidMessageContents", func(e *env) {
			q := e.queue("orders", nil)
			for _, bad := range []string{"\x00", "\x0b", "a\x1fb", "\ufffe", "\uffff"} {
				_, err := e.trySend(q, bad)
				isA[*types.InvalidMessageContents](e, err)
			}
			e.send(q, "\t\n\r \u00e9\ud7ff\ue000\ufffd\U00010000\U0010ffff")
		}},
		{"Empty body = error", func(e *env) {
			_, err := e.trySend(e.queue("orders", nil), "")
			if err == nil {
				e.Error("an empty body was taken")
			}
		}},
	}
}

// The rest of the rules for attributes, which the list of checks leaves out.
func attributeRules(e *env) {
	q := e.queue("orders", nil)
	number := func(v string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: &v}
	}
	try := func(attrs map[string]types.MessageAttributeValue) error {
		_, err := e.trySend(q, "x", with(attrs))
		return err
	}
	many := map[string]types.MessageAttributeValue{}
	for i := range 11 {
		many[fmt.Sprint("a", i)] = str("x")
	}
	e.code(try(many), "InvalidParameterValue")
	delete(many, "a10")
	e.ok(try(many))
	for _, name := range []string{"", ".a", "a.", "a..b", "AWS.a", "amazon.a", "a b", "é", strings.Repeat("x", 257)} {
		e.code(try(map[string]types.MessageAttributeValue{name: str("x")}), "InvalidParameterValue")
	}
	e.code(try(map[string]types.MessageAttributeValue{"a": str("")}), "InvalidParameterValue")
	for _, bad := range []string{"ten", "--1", "1e", "e5", ".", "1.2.3", "+"} {
		e.code(try(map[string]types.MessageAttributeValue{"a": number(bad)}), "InvalidParameterValue")
	}
	e.code(try(map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Text"), StringValue: aws.String("x")}}), "InvalidParameterValue")
	for _, good := range []string{"1", "-1.5", "1e400", "+.5E-3"} {
		e.ok(try(map[string]types.MessageAttributeValue{"a": number(good)}))
	}
	for _, bad := range []string{strings.Repeat("x", 129), "é", "a b"} {
		_, err := e.trySend(q, "x", inGroup(bad, ""))
		e.code(err, "InvalidParameterValue")
	}
	for _, label := range []string{"String.json", "Number.i64", "Binary.x"} {
		v := types.MessageAttributeValue{DataType: &label, StringValue: aws.String("1")}
		if strings.HasPrefix(label, "Binary") {
			v.StringValue, v.BinaryValue = nil, []byte{1}
		}
		e.ok(try(map[string]types.MessageAttributeValue{"labelled": v}))
	}
	var labels []string
	for _, m := range append(e.receive(q, 10, 0), e.receive(q, 10, 0)...) {
		if a, ok := m.MessageAttributes["labelled"]; ok {
			labels = append(labels, *a.DataType)
		}
	}
	slices.Sort(labels)
	if strings.Join(labels, " ") != "Binary.x Number.i64 String.json" {
		e.Errorf("labels %v", labels)
	}
	e.took(0, 10*time.Second, func() { e.none(q) })
}
