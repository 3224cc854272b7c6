package codec

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the checksum that SQS sends
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// arrive is what a consumer gets of an entry: SQS keeps the X-Ray header and the group apart.
func arrive(e *types.SendMessageBatchRequestEntry) *types.Message {
	out := &types.Message{Body: e.MessageBody, MessageAttributes: e.MessageAttributes, Attributes: map[string]string{}}
	if e.MessageGroupId != nil {
		out.Attributes["MessageGroupId"] = *e.MessageGroupId
	}
	for name, a := range e.MessageSystemAttributes {
		out.Attributes[name] = aws.ToString(a.StringValue)
	}
	return out
}

func full() *longshore.Message {
	return &longshore.Message{ID: "m-1", Type: "order.created", ContentType: "application/json", ContentEncoding: "gzip", CorrelationID: "c-1", ReplyTo: "answers",
		AppID: "shop", UserID: "guest", Timestamp: time.Unix(1700000000, 123456789).UTC(), Expiration: 1500 * time.Millisecond, Priority: 7, DeliveryMode: 2,
		Key: []byte("customer-1"), Body: []byte(`{"id":1}`)}
}

// Every property, the key, the body and the headers with their types come back, on each kind of
// queue.
func TestMessagesComeBackAsTheyWere(t *testing.T) {
	cases := map[string]func(*longshore.Message){
		"full":               func(*longshore.Message) {},
		"empty":              func(m *longshore.Message) { *m = longshore.Message{Body: []byte{}} },
		"binary body":        func(m *longshore.Message) { m.Body = []byte{0, 255, 254} },
		"no legal group":     func(m *longshore.Message) { m.Key = []byte("a b") },
		"a group like ours":  func(m *longshore.Message) { m.Key = []byte("~x") },
		"long key":           func(m *longshore.Message) { m.Key = bytes.Repeat([]byte("k"), 129) },
		"epoch":              func(m *longshore.Message) { m.Timestamp = time.Unix(0, 0).UTC() },
		"before the nanosec": func(m *longshore.Message) { m.Timestamp = time.Date(1500, 1, 2, 3, 4, 5, 6, time.UTC) },
		"far future":         func(m *longshore.Message) { m.Timestamp = time.Date(2500, 1, 2, 3, 4, 5, 6, time.UTC) },
		"type in bad text":   func(m *longshore.Message) { m.ContentType = "a\x00b" },
		"x-ray":              func(m *longshore.Message) { m.Headers = longshore.Headers{{Name: HeaderTrace, Value: "Root=1-2-3"}} },
		"two x-ray": func(m *longshore.Message) {
			m.Headers = longshore.Headers{{Name: HeaderTrace, Value: "a"}, {Name: HeaderTrace, Value: "b"}}
		},
		"x-ray that is no text": func(m *longshore.Message) { m.Headers = longshore.Headers{{Name: HeaderTrace, Value: int64(1)}} },
		"long x-ray": func(m *longshore.Message) {
			m.Headers = longshore.Headers{{Name: HeaderTrace, Value: strings.Repeat("x", 1025)}}
		},
		"out of order": func(m *longshore.Message) {
			m.Headers = longshore.Headers{{Name: "b", Value: "1"}, {Name: "a", Value: "2"}}
		},
		"twice": func(m *longshore.Message) {
			m.Headers = longshore.Headers{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}
		},
		"kinds": func(m *longshore.Message) {
			m.Headers = longshore.Headers{{Name: "a", Value: true}, {Name: "b", Value: int32(-5)}, {Name: "c", Value: int64(1 << 60)}, {Name: "d", Value: 2.5},
				{Name: "e", Value: []byte{1, 2}}, {Name: "f", Value: time.Unix(1, 5).UTC()}, {Name: "g", Value: nil}, {Name: "h", Value: uint64(1 << 63)},
				{Name: "i", Value: float32(0.5)}, {Name: "j", Value: int8(1)}, {Name: "k", Value: int16(2)}}
		},
		"more than there is room for": func(m *longshore.Message) {
			for i := range 14 {
				m.Headers = append(m.Headers, longshore.Header{Name: fmt.Sprintf("h%02d", i), Value: "v"})
			}
		},
		"foreign types": func(m *longshore.Message) {
			m.Headers = longshore.Headers{{Name: "price", Value: "1.50"}, {Name: "raw", Value: []byte("x")},
				{Name: headerTypes, Value: `{"price":"Number.EUR","raw":"Binary.png"}`}}
		},
	}
	for n := 6; n <= 11; n++ { // around the room that the envelope and two properties leave
		cases[fmt.Sprint(n, " headers")] = func(m *longshore.Message) {
			for i := range n {
				m.Headers = append(m.Headers, longshore.Header{Name: fmt.Sprintf("h%02d", i), Value: "v"})
			}
		}
	}
	for name, change := range cases {
		for _, o := range []Options{{}, {FIFO: true}, {NoGroup: true}, {Reserve: 3}, {FIFO: true, Reserve: 9}} {
			in := full()
			change(in)
			e, err := Encode(in, o)
			if err != nil {
				t.Errorf("%s %+v: %v", name, o, err)
				continue
			}
			entry := e.Entry("1")
			if n := len(entry.MessageAttributes); n > MaxAttributes {
				t.Errorf("%s %+v: %d attributes", name, o, n)
			}
			size := len(*entry.MessageBody)
			for name, a := range entry.MessageAttributes {
				size += len(name) + len(*a.DataType) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
			}
			if e.Size != size {
				t.Errorf("%s %+v: size %d, SQS counts %d", name, o, e.Size, size)
			}
			if e.Binary != (name == "binary body") {
				t.Errorf("%s: binary %v", name, e.Binary)
			}
			var out longshore.Message
			Decode(&out, arrive(&entry), Bare)
			if !reflect.DeepEqual(&out, in) {
				t.Errorf("%s %+v:\n%+v came back as\n%+v", name, o, *in, out)
			}
		}
	}
}

// What does not fit into attributes keeps its foreign type, beside what does.
func TestForeignTypesOfPackedHeaders(t *testing.T) {
	h := longshore.Headers{{Name: "price", Value: "1.50"}}
	for i := range 12 {
		h = append(h, longshore.Header{Name: fmt.Sprintf("a%02d", i), Value: "v"})
	}
	h = append(h, longshore.Header{Name: headerTypes, Value: `{"price":"Number.EUR"}`})
	e, err := Encode(&longshore.Message{Body: []byte("b"), Headers: h}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, native := e.attrs["price"]; native {
		t.Fatal("price became an attribute, which this test is not about")
	}
	entry := e.Entry("1")
	var out longshore.Message
	Decode(&out, arrive(&entry), Bare)
	if !reflect.DeepEqual(out.Headers, h) {
		t.Errorf("%v came back as %v", h, out.Headers)
	}
}

// The attributes go to the lock, the trace, the class and CloudEvents before others.
func TestWantedHeadersAreAttributesFirst(t *testing.T) {
	want := []string{"x-message-mutex", "traceparent", "tracestate", "JavaType", "ce_id"}
	h := longshore.Headers{{Name: "zz", Value: "v"}}
	for i := range 10 {
		h = append(h, longshore.Header{Name: fmt.Sprintf("a%02d", i), Value: "v"})
	}
	for _, name := range append(slices.Clone(want), longshore.HeaderID) {
		h = append(h, longshore.Header{Name: name, Value: "v"})
	}
	e, err := Encode(&longshore.Message{Body: []byte("b"), Headers: h}, Options{Reserve: 4})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Clone(want), envelope.Header) {
		if _, ok := e.attrs[name]; !ok {
			t.Errorf("%s is no attribute", name)
		}
	}
	if n := len(e.attrs); n != MaxAttributes-4 {
		t.Errorf("%d attributes where 4 of %d are kept free", n, MaxAttributes)
	}
}

// Deduplication: the same message is one, a dead one and a replayed one are others.
func TestDeduplicationIDs(t *testing.T) {
	id := func(h ...longshore.Header) string {
		e, err := Encode(&longshore.Message{ID: "m-1", Headers: h}, Options{FIFO: true})
		if err != nil {
			t.Fatal(err)
		}
		return *e.Entry("1").MessageDeduplicationId
	}
	dead := longshore.Header{Name: headerDeadAt, Value: "2026-01-01"}
	replay := func(n int) longshore.Header { return longshore.Header{Name: headerReplays, Value: n} }
	all := []string{id(), id(dead), id(replay(1)), id(replay(2)), id(longshore.Header{Name: longshore.HeaderID, Value: "other"})}
	if slices.Sort(all); len(slices.Compact(all)) != 5 {
		t.Errorf("messages that differ have ids in common: %v", all)
	}
	if id() != "m-1" || id(replay(0)) != "m-1" || all[0] == "" {
		t.Error("the same message has several ids")
	}
	if e, _ := Encode(&longshore.Message{}, Options{FIFO: true}); e.dedup == "" || e.Group == "" || e.Group[0] != '~' {
		t.Errorf("without id and key: %+v", e)
	}
	if e, _ := Encode(&longshore.Message{ID: "a b"}, Options{FIFO: true}); e.dedup != Hashed("a b") {
		t.Errorf("an id that is not legal became %q", e.dedup)
	}
	if e, _ := Encode(&longshore.Message{ID: "m-1"}, Options{}); e.Entry("1").MessageDeduplicationId != nil {
		t.Error("a standard queue was sent a deduplication id")
	}
	if _, err := Encode(&longshore.Message{Expiration: -1}, Options{}); !errors.Is(err, longshore.CodeRefused) {
		t.Errorf("a negative expiration: %v", err)
	}
	if a, b := NewID(), NewID(); a == b || len(a) != 36 || a[14] != '7' {
		t.Errorf("new ids %s and %s", a, b)
	}
}

func TestLegalIDs(t *testing.T) {
	for s, want := range map[string]bool{"": false, "a": true, " ": false, "~": true, "!": true, "\x7f": false, "ä": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false} {
		if got := legalID(s); got != want {
			t.Errorf("legalID(%.20q) = %v", s, got)
		}
	}
	for s, want := range map[string]bool{"": false, "a": true, ".a": false, "a.": false, "a..b": false, "a.b": true, "a b": false, "AWS.x": false, "amazon.x": false,
		"aZ09_-": true, "@": false, "[": false, "`": false, "{": false, "/": false, ":": false, strings.Repeat("a", 256): true, strings.Repeat("a", 257): false} {
		if got := attributeName(s); got != want {
			t.Errorf("attributeName(%.20q) = %v", s, got)
		}
	}
}

func TestChecksums(t *testing.T) {
	sum := md5.Sum([]byte("body")) //nolint:gosec // see above
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 32)
	for name, like := range map[string]struct {
		m    types.Message
		want bool
	}{
		"right":       {types.Message{Body: aws.String("body"), MD5OfBody: &right}, true},
		"wrong":       {types.Message{Body: aws.String("body"), MD5OfBody: &wrong}, false},
		"no checksum": {types.Message{Body: aws.String("body")}, true},
		"no body":     {types.Message{MD5OfBody: &right}, true},
		"neither":     {types.Message{}, true},
	} {
		if Intact(&like.m) != like.want {
			t.Errorf("%s: intact is %v", name, !like.want)
		}
	}
}

// A pointer is read as it was written, by both Java libraries, and nothing else is one.
func TestPointers(t *testing.T) {
	at := Pointer{Bucket: "b", Key: "k/1"}
	e, err := Encode(full(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := e.Size - len(e.Body)
	e.Claim(at, 300000)
	if got, ok := ReadPointer([]byte(e.Body)); !ok || got != at {
		t.Errorf("%s is read as %+v, %v", e.Body, got, ok)
	}
	mark := e.attrs[sizeAttribute]
	if want := before + len(e.Body) + sizeOf(sizeAttribute, &mark); e.Size != want {
		t.Errorf("size %d, want %d", e.Size, want)
	}
	entry := e.Entry("1")
	var out longshore.Message
	Decode(&out, arrive(&entry), Bare)
	if n := StatedSize(out.Headers); n != 300000 {
		t.Errorf("the stated size is %d", n)
	}
	if left := WithoutMarks(out.Headers); len(left) != 0 {
		t.Errorf("left of the marks: %v", left)
	}
	types := longshore.Headers{{Name: "a", Value: "1"}, {Name: oldSize, Value: "5"}, {Name: headerTypes, Value: `{"SQSLargePayloadSize":"Number","a":"Number.x"}`}}
	if left := WithoutMarks(types); len(left) != 2 || left[0].Name != "a" || left.String(headerTypes) != `{"a":"Number.x"}` || StatedSize(types) != 5 {
		t.Errorf("left: %v", left)
	}
	if StatedSize(nil) != 0 || StatedSize(longshore.Headers{{Name: oldSize, Value: "x"}}) != 0 {
		t.Error("a size out of nothing")
	}
	for body, want := range map[string]bool{
		`["` + oldPointerClass + `",{"s3BucketName":"b","s3Key":"k"}]`: true,
		`["` + pointerClass + `",{"s3BucketName":"","s3Key":"k"}]`:     false,
		`["` + pointerClass + `",{"s3BucketName":"b","s3Key":""}]`:     false,
		`["` + pointerClass + `",7]`:                                   false,
		`["other",{"s3BucketName":"b","s3Key":"k"}]`:                   false,
		`[7,{"s3BucketName":"b","s3Key":"k"}]`:                         false,
		`["` + pointerClass + `"]`:                                     false,
		`{"s3BucketName":"b"}`:                                         false,
		`[`:                                                            false,
		`[[]`:                                                          false,
		``:                                                             false,
	} {
		if _, ok := ReadPointer([]byte(body)); ok != want {
			t.Errorf("ReadPointer(%s) = %v", body, ok)
		}
	}
}

// Envelopes of other services are taken off where they are complete, and left alone otherwise.
func TestEnvelopesOfOtherServices(t *testing.T) {
	read := func(body string, w Wrapping) (m longshore.Message) {
		Decode(&m, &types.Message{Body: &body}, w)
		return m
	}
	sns := ` {"Type":"Notification","MessageId":"n-1","TopicArn":"arn:t","Subject":"s","Message":"hello","Timestamp":"2026-01-02T03:04:05.678Z",
		"MessageAttributes":{"n":{"Type":"Number","Value":"5"},"b":{"Type":"Binary","Value":"AAE="},"c":{"Type":"Binary","Value":"?"}}}`
	m := read(sns, SNS)
	want := longshore.Headers{{Name: "b", Value: []byte{0, 1}}, {Name: "c", Value: []byte("?")}, {Name: "n", Value: int64(5)},
		{Name: "sns-topic", Value: "arn:t"}, {Name: "sns-subject", Value: "s"}, {Name: headerTypes, Value: `{"n":"Number"}`}}
	if string(m.Body) != "hello" || m.ID != "n-1" || !m.Timestamp.Equal(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)) || !reflect.DeepEqual(m.Headers, want) {
		t.Errorf("notification: %+v", m)
	}
	if m := read(`{"Type":"Notification","TopicArn":"arn:t","Message":"hello","Timestamp":"?"}`, SNS); m.Headers.Has("sns-subject") || !m.Timestamp.IsZero() {
		t.Errorf("notification without a subject: %+v", m)
	}
	event := `{"id":"e-1","detail-type":"created","source":"shop","account":"42","time":"2026-01-02T03:04:05Z","region":"eu","detail":{"a":1}}`
	m = read(event, EventBridge)
	want = longshore.Headers{{Name: "eventbridge-account", Value: "42"}, {Name: "eventbridge-region", Value: "eu"}, {Name: "eventbridge-source", Value: "shop"}}
	if string(m.Body) != `{"a":1}` || m.ID != "e-1" || m.Type != "created" || m.AppID != "shop" || m.ContentType != "application/json" || m.Timestamp.IsZero() || !reflect.DeepEqual(m.Headers, want) {
		t.Errorf("event: %+v", m)
	}
	if m := read(`{"id":"e-1","detail-type":"","detail":null}`, EventBridge); m.ID != "e-1" || len(m.Headers) != 0 {
		t.Errorf("an event with little in it: %+v", m)
	}
	for body, w := range map[string]Wrapping{
		sns + " ": Bare, event: SNS, sns: EventBridge, "": SNS, "\n": EventBridge, "[]": SNS, "{": EventBridge,
		`{"Type":"SubscriptionConfirmation","TopicArn":"arn:t","Message":"hello"}`: SNS,
		`{"Type":"Notification","TopicArn":"arn:t"}`:                               SNS,
		`{"Type":"Notification","Message":"hello"}`:                                SNS,
		`{"id":"e-1","detail":{}}`:                                                 EventBridge,
		`{"id":"e-1","detail-type":"x"}`:                                           EventBridge,
		`{"detail-type":"x","detail":{}}`:                                          EventBridge,
	} {
		if m := read(body, w); string(m.Body) != body || m.ID != "" || len(m.Headers) != 0 {
			t.Errorf("%s became %+v", body, m)
		}
	}
}

// Foreign attributes keep their exact text and type, and our numbers their kind.
func TestAttributesOfOthers(t *testing.T) {
	for name, like := range map[string]struct {
		kind, text string
		want       any
		keeps      string
	}{
		"text":             {"String", "x", "x", ""},
		"custom text":      {"String.uuid", "x", "x", "String.uuid"},
		"whole number":     {"Number", "-5", int64(-5), "Number"},
		"leading zero":     {"Number", "05", "05", "Number"},
		"fraction":         {"Number", "1.50", "1.50", "Number"},
		"java long":        {"Number.java.lang.Long", "7", int64(7), ""},
		"java long, other": {"Number.java.lang.Long", "07", "07", "Number.java.lang.Long"},
		"java byte, big":   {"Number.java.lang.Byte", "700", "700", "Number.java.lang.Byte"},
		"unknown label":    {"Number.EUR", "7", "7", "Number.EUR"},
		"true":             {"String.bool", "true", true, ""},
		"false":            {"String.bool", "false", false, ""},
		"no bool":          {"String.bool", "TRUE", "TRUE", "String.bool"},
		"time":             {"String.ts", "2026-01-02T03:04:05Z", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ""},
		"other time":       {"String.ts", "2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05+01:00", "String.ts"},
	} {
		v, kind := fromAttribute(&types.MessageAttributeValue{DataType: &like.kind, StringValue: &like.text})
		if !reflect.DeepEqual(v, like.want) || kind != like.keeps {
			t.Errorf("%s: %#v %q, want %#v %q", name, v, kind, like.want, like.keeps)
		}
		back, ok := toAttribute(v, kind)
		if !ok || aws.ToString(back.StringValue) != like.text || aws.ToString(back.DataType) != like.kind {
			t.Errorf("%s: written as %q %q, %v", name, aws.ToString(back.DataType), aws.ToString(back.StringValue), ok)
		}
	}
	if v, kind := fromAttribute(&types.MessageAttributeValue{DataType: aws.String("Binary")}); !reflect.DeepEqual(v, []byte{}) || kind != "" {
		t.Errorf("an empty binary: %#v %q", v, kind)
	}
	for text, want := range map[string]bool{"1": true, "-1.5e9": true, "1e999": true, "0x1": false, "NaN": false, "Inf": false, "1_0": false, "": false, "a": false} {
		if isNumber(text) != want {
			t.Errorf("isNumber(%q) = %v", text, !want)
		}
	}
	for _, v := range []any{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), nil, []any{1}, longshore.Headers{}, "", []byte{}, uint8(1)} {
		if _, ok := toAttribute(v, ""); ok {
			t.Errorf("%#v became an attribute", v)
		}
	}
	if m := typesOf(longshore.Headers{{Name: headerTypes, Value: `{"a":"String.x","b":"Other","c":"Number.` + strings.Repeat("x", 250) + `","d":"Binary.\u0000"}`}}); !reflect.DeepEqual(m, map[string]string{"a": "String.x"}) {
		t.Errorf("types: %v", m)
	}
	longest := "String." + strings.Repeat("x", 249)
	if m := typesOf(longshore.Headers{{Name: headerTypes, Value: `{"a":"` + longest + `"}`}}); m["a"] != longest {
		t.Errorf("a type of 256 characters: %v", m)
	}
	if m := typesOf(longshore.Headers{{Name: headerTypes, Value: "{"}}); m != nil {
		t.Errorf("types out of broken text: %v", m)
	}
}

// A copy's identity is put where the order of names stays, and marks take what room there is.
func TestCopies(t *testing.T) {
	in := &longshore.Message{ID: "m-1", Headers: longshore.Headers{{Name: "a", Value: "1"}, {Name: "z", Value: "2"}}}
	out := Identified(in)
	if !inOrder(out.Headers) || out.Headers.String(longshore.HeaderID) != "m-1" || len(in.Headers) != 2 || len(out.Headers) != 3 {
		t.Errorf("identified: %v of %v", out.Headers, in.Headers)
	}
	if Identified(out) != out {
		t.Error("a message with an identity got another one")
	}
	if out := Identified(&longshore.Message{Headers: longshore.Headers{{Name: "z"}, {Name: "a"}}}); out.Headers[2].Name != longshore.HeaderID || out.Headers.String(longshore.HeaderID) == "" {
		t.Errorf("identified without an order: %v", out.Headers)
	}
	m := &types.Message{Body: aws.String("body"), MessageAttributes: map[string]types.MessageAttributeValue{}}
	for i := range MaxAttributes - 1 {
		a, _ := stringAttribute("String", "v")
		m.MessageAttributes[fmt.Sprint(i)] = a
	}
	got := CopyAttributes(m, Mark{"none", nil}, Mark{"why", "x"}, Mark{"when", "y"}, Mark{"0", "new"})
	if len(got) != MaxAttributes || aws.ToString(got["why"].StringValue) != "x" || aws.ToString(got["0"].StringValue) != "new" || len(m.MessageAttributes) != MaxAttributes-1 {
		t.Errorf("marks: %v", got)
	}
	if n := SizeOfCopy(m, m.MessageAttributes); n != 4+9*(1+6+1) {
		t.Errorf("size %d", n)
	}
}
