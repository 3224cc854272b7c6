package spring_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/spring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func delivery(m longshore.Message) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 0)
	d.Message = m
	return d
}

// through is what a handler behind the middleware sees.
func through(t *testing.T, m longshore.Middleware, d *longshore.Delivery) longshore.Message {
	t.Helper()
	var seen longshore.Message
	err := m.Wrap(longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { seen = d.Message; return nil })).Handle(t.Context(), d)
	if err != nil {
		t.Error(err)
	}
	return seen
}

// As DefaultKafkaHeaderMapper writes them, with and without encodeStrings.
func TestHeadersOfTheKafkaHeaderMapper(t *testing.T) {
	in := longshore.Headers{
		{Name: "quoted", Value: `"a \"b\""`}, {Name: "bare", Value: "a b"}, {Name: "count", Value: "7"}, {Name: "long", Value: "9007199254740993"},
		{Name: "small", Value: "300"}, {Name: "flag", Value: "true"}, {Name: "ratio", Value: "0.5"}, {Name: "list", Value: `["a",1]`}, {Name: "map", Value: `{"b":2,"a":null}`},
		{Name: "broken", Value: `"a`}, {Name: "raw", Value: []byte{0xff}}, {Name: "unlisted", Value: `"x"`}, {Name: "contentType", Value: `"application/json"`},
		{Name: spring.HeaderTypeID, Value: "com.acme.OrderPaid"},
		{Name: spring.HeaderJSONTypes, Value: `{"quoted":"java.lang.String","bare":"java.lang.String","count":"java.lang.Integer","long":"java.lang.Long","small":"java.lang.Byte","flag":"java.lang.Boolean",` +
			`"ratio":"java.lang.Double","list":"java.util.ArrayList","map":"java.util.LinkedHashMap","broken":"java.lang.String","contentType":"java.lang.String"}`},
	}
	d := delivery(longshore.Message{Headers: in})
	got := through(t, spring.Headers(spring.HeadersConfig{Types: map[string]string{"com.acme.OrderPaid": "order.paid"}}), d)
	want := longshore.Headers{
		{Name: "quoted", Value: `a "b"`}, {Name: "bare", Value: "a b"}, {Name: "count", Value: int32(7)}, {Name: "long", Value: int64(9007199254740993)},
		{Name: "small", Value: "300"}, {Name: "flag", Value: true}, {Name: "ratio", Value: 0.5}, {Name: "list", Value: []any{"a", int64(1)}},
		{Name: "map", Value: longshore.Headers{{Name: "a"}, {Name: "b", Value: int64(2)}}}, {Name: "broken", Value: `"a`}, {Name: "raw", Value: []byte{0xff}},
		{Name: "unlisted", Value: `"x"`}, {Name: "contentType", Value: "application/json"}, {Name: spring.HeaderTypeID, Value: "com.acme.OrderPaid"},
	}
	if fmt.Sprintf("%#v", got.Headers) != fmt.Sprintf("%#v", want) {
		t.Errorf("got  %#v\nwant %#v", got.Headers, want)
	}
	if got.Type != "order.paid" || got.ContentType != "application/json" {
		t.Errorf("type %q, content type %q", got.Type, got.ContentType)
	}
	if err := got.Headers.Check(); err != nil {
		t.Error(err)
	}
	if len(d.Received().Headers) != len(in) || d.Received().Type != "" {
		t.Errorf("what was received was changed: %+v", d.Received())
	}
}

func TestTypeOfAnotherClassAndOfOurOwn(t *testing.T) {
	m := spring.Headers(spring.HeadersConfig{})
	if got := through(t, m, delivery(longshore.Message{Headers: longshore.Headers{{Name: spring.HeaderTypeID, Value: "a.B"}}})); got.Type != "a.B" {
		t.Errorf("%q", got.Type)
	}
	if got := through(t, m, delivery(longshore.Message{Type: "own", Headers: longshore.Headers{{Name: spring.HeaderTypeID, Value: "a.B"}, {Name: spring.HeaderJSONTypes, Value: "{"}}})); got.Type != "own" || len(got.Headers) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestHeadersInABatch(t *testing.T) {
	m := spring.Headers(spring.HeadersConfig{}).(interface { //nolint:errcheck // it has them
		WrapBatch(longshore.BatchHandler) longshore.BatchHandler
	})
	ds := []*longshore.Delivery{delivery(longshore.Message{}), delivery(longshore.Message{Headers: longshore.Headers{{Name: spring.HeaderTypeID, Value: "a.B"}}})}
	err := m.WrapBatch(longshore.BatchHandlerFunc(func(_ context.Context, ds []*longshore.Delivery) error {
		if ds[0].Type != "" || ds[1].Type != "a.B" {
			t.Errorf("%q %q", ds[0].Type, ds[1].Type)
		}
		return nil
	})).HandleBatch(t.Context(), ds)
	if err != nil {
		t.Error(err)
	}
}

// pack is what SimpleBatchingStrategy writes.
func pack(bodies ...string) longshore.Message {
	m := longshore.Message{ContentType: "text/plain", Headers: longshore.Headers{{Name: spring.HeaderBatchFormat, Value: spring.LengthHeader4}, {Name: "amqp_batchSize", Value: int32(2)}, {Name: "a", Value: "b"}}}
	for _, b := range bodies {
		m.Body = append(binary.BigEndian.AppendUint32(m.Body, uint32(len(b))), b...)
	}
	return m
}

func TestProducerBatches(t *testing.T) {
	d := delivery(pack("one", "", "three"))
	var seen []string
	err := spring.Batches().Wrap(longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		seen = append(seen, string(d.Body))
		if len(d.Headers) != 1 || d.Headers.String("a") != "b" || d.ContentType != "text/plain" {
			t.Errorf("%+v", d.Message)
		}
		return nil
	})).Handle(t.Context(), d)
	if err != nil || fmt.Sprintf("%q", seen) != `["one" "" "three"]` {
		t.Errorf("%q %v", seen, err)
	}
	if len(d.Received().Body) != 20 || !d.Headers.Has(spring.HeaderBatchFormat) {
		t.Errorf("the whole is not what it was: %+v", d.Message)
	}
	if got := through(t, spring.Batches(), delivery(longshore.Message{Body: []byte("x")})); string(got.Body) != "x" {
		t.Errorf("%+v", got)
	}
}

func TestFailedPartEndsTheBatchWithItsVerdict(t *testing.T) {
	calls := 0
	err := spring.Batches().Wrap(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		calls++
		return longshore.Discard(errors.New("no stock"))
	})).Handle(t.Context(), delivery(pack("one", "two")))
	v, _ := longshore.VerdictOf(err)
	if calls != 1 || v != longshore.VerdictDiscard || !strings.Contains(err.Error(), "part 1 of 2") {
		t.Errorf("%d calls, %v, %v", calls, v, err)
	}
}

// F-G02 for batches: what cannot be taken apart is rejected, never a panic.
func TestBatchesThatAreNone(t *testing.T) {
	other := pack("one")
	other.Headers[0].Value = "lengthHeader8"
	number := pack("one")
	number.Headers[0].Value = int64(4)
	huge := pack("one")
	huge.Body[0] = 0xff
	for name, m := range map[string]longshore.Message{"empty": pack(), "another format": other, "a number": number, "too long": huge,
		"cut": {Headers: pack().Headers, Body: pack("one").Body[:6]}, "a rest": {Headers: pack().Headers, Body: append(pack("one").Body, 0, 0)}} {
		err := spring.Batches().Wrap(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { t.Error(name, "reached the handler"); return nil })).
			Handle(t.Context(), delivery(m))
		if v, _ := longshore.VerdictOf(err); v != longshore.VerdictReject || !errors.Is(err, longshore.CodeUndecodable) {
			t.Errorf("%s: %v %v", name, v, err)
		}
	}
}

func TestBatchesNeedResultsAsVerdicts(t *testing.T) {
	c := spring.Batches().(interface { //nolint:errcheck // it has them
		Check(context.Context, longshore.Facts) error
	})
	if err := c.Check(t.Context(), longshore.Facts{Manual: true}); !errors.Is(err, longshore.CodeConfig) {
		t.Error(err)
	}
	if err := c.Check(t.Context(), longshore.Facts{}); err != nil {
		t.Error(err)
	}
}

func FuzzBatches(f *testing.F) {
	f.Add(pack("a", "bc").Body)
	f.Fuzz(func(t *testing.T, body []byte) {
		total := 0
		m := pack()
		m.Body = body
		err := spring.Batches().Wrap(longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error { total += 4 + len(d.Body); return nil })).
			Handle(t.Context(), delivery(m))
		if err == nil && total != len(body) {
			t.Errorf("%d of %d bytes were handled", total, len(body))
		}
	})
}

func ExampleHeaders() {
	paid := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		tenant, _ := d.Headers.Get("tenant")
		fmt.Println(d.Type, tenant)
		return nil
	})
	read := spring.Headers(spring.HeadersConfig{Types: map[string]string{"com.acme.OrderPaid": "order.paid"}})
	_ = read.Wrap(paid).Handle(context.Background(), delivery(longshore.Message{Headers: longshore.Headers{
		{Name: "__TypeId__", Value: "com.acme.OrderPaid"}, {Name: "tenant", Value: `"t-1"`}, {Name: "spring_json_header_types", Value: `{"tenant":"java.lang.String"}`},
	}}))
	// Output: order.paid t-1
}

func ExampleBatches() {
	handler := longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		fmt.Println(string(d.Body))
		return nil
	})
	_ = spring.Batches().Wrap(handler).Handle(context.Background(), delivery(pack("one", "two")))
	// Output:
	// one
	// two
}
