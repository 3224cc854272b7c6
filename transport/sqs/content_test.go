package sqs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// trip publishes a message and receives it.
func trip(t testing.TB, b *sqs.Broker, p *sqs.Publisher, c transport.Consumer, m *longshore.Message) *longshore.Delivery {
	t.Helper()
	must(t, p.Publish(t.Context(), "orders", m))
	d := take(t, c, 1)[0]
	must(t, d.Ack(t.Context()))
	return d
}

//nolint:revive // all that a test needs
func setup(t *testing.T, cfg func(*sqs.Config), q sqs.QueueConfig) (*sqstest.Server, *sqs.Broker, *sqs.Publisher, transport.Consumer) {
	t.Helper()
	s := sqstest.New(t, sqstest.Config{NoPort: true})
	s.CreateQueue(t, "orders", nil)
	c := s.Config()
	if cfg != nil {
		cfg(&c)
	}
	b := sqs.New(c)
	p, err := b.Publisher(sqs.PublisherConfig{})
	must(t, err)
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	return s, b, p, open(t, b.Queue("orders", q), nil)
}

// own leaves out headers of ours.
func own(h longshore.Headers) longshore.Headers {
	var out longshore.Headers
	for _, x := range h {
		if !strings.HasPrefix(x.Name, "longshore-") {
			out = append(out, x)
		}
	}
	return out
}

// F-I02: 0 to 40 headers with long, empty and odd names and values.
func TestMoreHeadersThanSQSTakes(t *testing.T) {
	s, b, p, c := setup(t, nil, sqs.QueueConfig{})
	r := rand.New(rand.NewPCG(5, 6))
	names := []string{"plain", "", "with space", ".dot", "dot.", "a..b", "AWS.x", "amazon.y", "\u00fcber", "\xff\xfe", strings.Repeat("n", 300), "traceparent",
		"tracestate", "x-message-mutex", "ce_id", "content-type", "content-encoding", "longshore-x", "AWSTraceHeader", "ExtendedPayloadSize"}
	values := []any{"v", "", "\x00", "\ufffe", []byte{}, []byte{0, 255}, nil, true, int64(5), 2.5, strings.Repeat("long", 500), []any{"x", nil}, time.Unix(1, 5).UTC()}
	for n := range 41 {
		m := &longshore.Message{Body: []byte("{}"), ContentType: "application/json"}
		for i := range n {
			name := names[r.IntN(len(names))]
			if r.IntN(2) == 0 {
				name = fmt.Sprintf("h%02d", i)
			}
			m.Headers.Add(name, values[r.IntN(len(values))])
		}
		want := m.Headers.Clone()
		d := trip(t, b, p, c, m)
		if !d.Headers.Has(longshore.HeaderID) {
			t.Fatalf("%d headers, and no identity", n)
		}
		d.Headers.Del(longshore.HeaderID)
		if len(want)+len(d.Headers) > 0 && !reflect.DeepEqual(d.Headers, want) {
			t.Fatalf("%d headers\n got %#v\nwant %#v", n, d.Headers, want)
		}
		if d.ContentType != "application/json" || string(d.Body) != "{}" {
			t.Fatalf("body %q of type %q", d.Body, d.ContentType)
		}
	}
	for _, call := range s.Calls("SendMessageBatch") {
		if call.Entries[0].Code != "" {
			t.Errorf("refused: %s", call.Entries[0].Code)
		}
	}
}

// Plain stays plain: a reader without Longshore sees the same message.
func TestPlainMessageIsPlainOnTheWire(t *testing.T) {
	s, _, p, _ := setup(t, nil, sqs.QueueConfig{})
	must(t, p.Publish(t.Context(), "orders", &longshore.Message{Key: []byte("c-91"), Body: []byte(`{"id":1}`), ContentType: "application/json",
		Headers: longshore.Headers{{Name: "amount", Value: int64(7)}, {Name: "traceparent", Value: "00-x"}}}))
	m := s.Messages("orders")[0]
	if m.Body != `{"id":1}` || m.Group != "c-91" || len(m.Types) != 4 || m.Strings[longshore.HeaderID] == "" || m.Strings["content-type"] != "application/json" ||
		m.Strings["amount"] != "7" || m.Types["amount"] != "Number.java.lang.Long" || m.Strings["traceparent"] != "00-x" {
		t.Errorf("%+v", m)
	}
}

// The lock's header, the trace and CloudEvents keep their own attributes; the rest
// is in the envelope, which a reader can undo by hand.
func TestWhichHeadersStayReadable(t *testing.T) {
	s, _, p, _ := setup(t, nil, sqs.QueueConfig{})
	m := &longshore.Message{Body: []byte("x")}
	for i := range 12 {
		m.Headers.Add(fmt.Sprintf("a%02d", i), "v")
	}
	for _, name := range []string{"x-message-mutex", "tracestate", "traceparent", "ce_id"} {
		m.Headers.Add(name, "v")
	}
	must(t, p.Publish(t.Context(), "orders", m))
	got := s.Messages("orders")[0].Strings
	for _, name := range []string{"x-message-mutex", "tracestate", "traceparent", "ce_id", "a00", "a04", "longshore-env"} {
		if got[name] == "" {
			t.Errorf("%s is not an attribute", name)
		}
	}
	env := got["longshore-env"]
	var content struct{ H [][]any }
	if err := json.Unmarshal([]byte(env[strings.Index(env, "{"):]), &content); err != nil || len(content.H) != 17 || len(got) != 10 {
		t.Errorf("%d attributes, envelope %s: %v", len(got), env, err)
	}
}

// F-I03: any body, byte for byte; unflagged text is never decoded.
func TestAnyBodyByteForByte(t *testing.T) {
	_, _, p, c := setup(t, nil, sqs.QueueConfig{})
	r := rand.New(rand.NewPCG(7, 8))
	bodies := [][]byte{[]byte("aGVsbG8="), []byte("-"), []byte(" "), []byte("\t\n\r"), []byte("\ufffe\uffff"), []byte("\xed\xa0\x80"), {0}, []byte(`{"a":"\u0000"}`)}
	for len(bodies) < 10_000 {
		b := make([]byte, r.IntN(60))
		for i := range b {
			b[i] = byte(r.Uint32()) //nolint:gosec // any byte
		}
		bodies = append(bodies, b)
	}
	want := map[string]int{}
	var msgs []*longshore.Message
	for _, b := range bodies {
		msgs = append(msgs, &longshore.Message{Body: b})
		want[string(b)]++
	}
	must(t, p.Publish(t.Context(), "orders", msgs...))
	for _, d := range take(t, c, len(bodies)) {
		want[string(d.Body)]--
		must(t, d.Ack(t.Context()))
	}
	for b, n := range want {
		if n != 0 {
			t.Fatalf("%q: %d missing", b, n)
		}
	}
}

// F-I04, F-I07, F-M05: nil is not empty, a time keeps its nanoseconds, no time stays none.
func TestNilEmptyAndTime(t *testing.T) {
	_, b, p, c := setup(t, nil, sqs.QueueConfig{})
	for _, m := range []longshore.Message{
		{}, {Body: []byte{}}, {Key: []byte{}}, {Key: []byte("k"), Headers: longshore.Headers{{Name: "n", Value: nil}}},
		{Body: []byte("x"), Timestamp: time.Date(2026, 1, 2, 12, 0, 0, 123456789, time.UTC)},
		{Body: []byte("x"), Timestamp: time.Date(1000, 1, 2, 12, 0, 0, 1, time.UTC)},
		{Body: []byte("x"), Timestamp: time.Unix(0, 0).UTC()},
		{Body: []byte("x"), Key: []byte("~mine")}, {Body: []byte("x"), Key: []byte("gr\u00fc\u00df dich")}, {Body: []byte("x"), Key: bytes.Repeat([]byte("k"), 500)},
	} {
		d := trip(t, b, p, c, m.Clone())
		if !bytes.Equal(d.Body, m.Body) || (d.Body == nil) != (m.Body == nil) || !bytes.Equal(d.Key, m.Key) || (d.Key == nil) != (m.Key == nil) || !d.Timestamp.Equal(m.Timestamp) {
			t.Errorf("%+v came as body %#v, key %#v, time %s", m, d.Body, d.Key, d.Timestamp)
		}
	}
}

// F-I06: typed attributes of a raw client come readable, and keep their types on
// the way to the dead-letter queue.
func TestTypedAttributes(t *testing.T) {
	s, b, _, _ := setup(t, nil, sqs.QueueConfig{})
	s.CreateQueue(t, "dead", nil)
	raw := rawClient(s)
	attrs := map[string]types.MessageAttributeValue{}
	for name, v := range map[string][2]string{"huge": {"Number", "1e400"}, "money": {"Number.EUR", "12.50"}, "int": {"Number", "42"}, "float": {"Number", "0.1"},
		"json": {"String.json", "{}"}, "text": {"String", "x"}, "lead": {"Number", "007"}} {
		attrs[name] = types.MessageAttributeValue{DataType: aws.String(v[0]), StringValue: aws.String(v[1])}
	}
	attrs["blob"] = types.MessageAttributeValue{DataType: aws.String("Binary.png"), BinaryValue: []byte{1, 2}}
	_, err := raw.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders"), MessageBody: aws.String("x"), MessageAttributes: attrs})
	must(t, err)
	var got longshore.Headers
	_, stop := run(t, b.Queue("orders", sqs.QueueConfig{}), func(_ context.Context, d *longshore.Delivery) error {
		got = own(d.Headers.Clone())
		return longshore.Reject(errBad)
	}, container.Config{DeadLetter: container.DeadLetter{To: "dead"}})
	until(t, 10*time.Second, "a dead letter", func() bool { return state(t, s, "dead").Visible == 1 })
	stop()
	want := longshore.Headers{{Name: "blob", Value: []byte{1, 2}}, {Name: "float", Value: "0.1"}, {Name: "huge", Value: "1e400"}, {Name: "int", Value: int64(42)},
		{Name: "json", Value: "{}"}, {Name: "lead", Value: "007"}, {Name: "money", Value: "12.50"}, {Name: "text", Value: "x"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("headers\n got %#v\nwant %#v", got, want)
	}
	c := open(t, b.Queue("dead", sqs.QueueConfig{}), nil)
	d := take(t, c, 1)[0]
	var kinds map[string]string
	if err := json.Unmarshal([]byte(d.Headers.String("longshore-p-sqs-types")), &kinds); err != nil || kinds["money"] != "Number.EUR" || kinds["huge"] != "Number" ||
		kinds["blob"] != "Binary.png" || kinds["json"] != "String.json" {
		t.Errorf("types %v (%v)", kinds, err)
	}
	if d.Headers.String("longshore-dead-reason") == "" || d.Headers.String("money") != "12.50" {
		t.Errorf("dead letter %v", d.Headers)
	}
}

func rawClient(s *sqstest.Server) *awssqs.Client {
	return awssqs.New(awssqs.Options{Region: "us-east-1", BaseEndpoint: aws.String(s.URL), HTTPClient: s.HTTPClient(), Credentials: s.Config().Credentials})
}

// F-G02: whatever foreign clients send is a message, as it is.
func TestForeignMessagesComeAsTheyAre(t *testing.T) {
	s, _, _, c := setup(t, nil, sqs.QueueConfig{})
	raw := rawClient(s)
	for _, v := range []string{"1.0000.{}", "1.", "garbage", `2.abcd.{"b":"64"}`} {
		_, err := raw.SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders"), MessageBody: aws.String("AAAA"),
			MessageAttributes: map[string]types.MessageAttributeValue{"longshore-env": {DataType: aws.String("String"), StringValue: aws.String(v)}}})
		must(t, err)
		d := take(t, c, 1)[0]
		if string(d.Body) != "AAAA" || d.Headers.String("longshore-env") != v {
			t.Errorf("%q: body %q, headers %v", v, d.Body, d.Headers)
		}
		must(t, d.Ack(t.Context()))
	}
}

func TestEnvelopesOfOtherServices(t *testing.T) {
	sns := `{"Type":"Notification","MessageId":"m-1","TopicArn":"arn:aws:sns:x:1:t","Subject":"s","Message":"{\"a\":1}","Timestamp":"2026-01-02T03:04:05.678Z",
		"MessageAttributes":{"traceparent":{"Type":"String","Value":"00-t"},"bin":{"Type":"Binary","Value":"AAE="},"n":{"Type":"Number","Value":"5"}}}`
	event := `{"version":"0","id":"e-1","detail-type":"OrderPaid","source":"shop","account":"1","time":"2026-01-02T03:04:05Z","region":"eu-west-1","resources":[],"detail":{"a":1}}`
	for _, tc := range []struct {
		name  string
		as    sqs.Envelope
		body  string
		check func(d *longshore.Delivery) bool
	}{
		{"sns", sqs.SNS, sns, func(d *longshore.Delivery) bool {
			return string(d.Body) == `{"a":1}` && d.ID == "m-1" && d.Headers.String("traceparent") == "00-t" && d.Headers.String("bin") == "\x00\x01" &&
				d.Headers.String("n") == "5" && d.Headers.String("sns-subject") == "s" && d.Timestamp.UnixMilli() == 1767323045678
		}},
		{"sns raw delivery", sqs.SNS, `{"a":1}`, func(d *longshore.Delivery) bool { return string(d.Body) == `{"a":1}` && d.ID == "" }},
		{"sns, no JSON", sqs.SNS, `Type: Notification`, func(d *longshore.Delivery) bool { return string(d.Body) == `Type: Notification` }},
		{"sns not asked for", sqs.None, sns, func(d *longshore.Delivery) bool { return string(d.Body) == sns }},
		{"eventbridge", sqs.EventBridge, event, func(d *longshore.Delivery) bool {
			return string(d.Body) == `{"a":1}` && d.ID == "e-1" && d.Type == "OrderPaid" && d.Headers.String("eventbridge-source") == "shop"
		}},
		{"eventbridge, something else", sqs.EventBridge, `{"id":"x"}`, func(d *longshore.Delivery) bool { return string(d.Body) == `{"id":"x"}` }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _, _, c := setup(t, nil, sqs.QueueConfig{Envelope: tc.as})
			_, err := rawClient(s).SendMessage(t.Context(), &awssqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/000000000000/orders"), MessageBody: aws.String(tc.body)})
			must(t, err)
			if d := take(t, c, 1)[0]; !tc.check(d) {
				t.Errorf("body %s, id %q, type %q, time %s, headers %v", d.Body, d.ID, d.Type, d.Timestamp, d.Headers)
			}
		})
	}
}

// F-D04 for sends: entry 3 fails at the server once, entry 7 is refused.
func TestPartOfAPublishFails(t *testing.T) {
	for _, queue := range []string{"orders", "orders.fifo"} {
		bubble(t, func(t *testing.T, s *sqstest.Server) {
			s.CreateQueue(t, queue, nil)
			b := sqs.New(s.Config())
			p, err := b.Publisher(sqs.PublisherConfig{})
			must(t, err)
			var once sync.Once
			s.Inject(sqstest.Fault{Action: "SendMessageBatch", Entry: func(e sqstest.Entry) (code string) {
				switch e.Body {
				case "m00003":
					once.Do(func() { code = "InternalFailure" })
				case "m00007":
					code = "InvalidParameterValue"
				}
				return code
			}})
			var msgs []*longshore.Message
			for i, body := range numbered(12) {
				msgs = append(msgs, &longshore.Message{Key: fmt.Appendf(nil, "g%d", i%2), Body: []byte(body)})
			}
			err = p.Publish(t.Context(), queue, msgs...)
			var partial *transport.PartialError
			want := "[7]"
			if queue == "orders.fifo" { // what is behind it in its group waits for it in vain
				want = "[7 9 11]"
			}
			if !errors.As(err, &partial) || fmt.Sprint(partial.Indexes()) != want {
				t.Errorf("%s: %v, want %s", queue, err, want)
			}
			sent := map[string]int{}
			for _, call := range s.Calls("SendMessageBatch") {
				for _, e := range call.Entries {
					sent[e.Body]++
				}
			}
			if sent["m00003"] != 2 || sent["m00007"] != 1 || sent["m00000"] != 1 {
				t.Errorf("%s: sent %v", queue, sent)
			}
			if queue == "orders.fifo" {
				last := map[string]string{}
				for _, m := range s.Messages(queue) {
					if m.Body <= last[m.Group] {
						t.Errorf("%s: %s behind %s", queue, m.Body, last[m.Group])
					}
					last[m.Group] = m.Body
				}
			}
			must(t, p.Close(t.Context()))
		})
	}
}
