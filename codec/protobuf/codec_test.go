package protobuf_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/codec/protobuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWhatWasWrittenIsRead(t *testing.T) {
	in := &durationpb.Duration{Seconds: 7, Nanos: 8}
	for name, v := range map[string]any{"a message": in, "a pointer to one": &in} {
		m := &longshore.Message{}
		if err := (protobuf.Codec{}).Encode(t.Context(), v, m); err != nil || m.ContentType != "application/x-protobuf" {
			t.Fatalf("%s: %v, %q", name, err, m.ContentType)
		}
		var made *durationpb.Duration // as a typed handler has it
		given := &durationpb.Duration{Seconds: 1}
		for _, into := range []any{&made, given} {
			if err := (protobuf.Codec{}).Decode(t.Context(), m, into); err != nil {
				t.Errorf("%s into %T: %v", name, into, err)
			}
		}
		if !proto.Equal(made, in) || !proto.Equal(given, in) {
			t.Errorf("%s: %v, %v", name, made, given)
		}
	}
}

func TestWhatIsNoMessageIsToldByItsType(t *testing.T) {
	var none *durationpb.Duration
	var number int
	for name, err := range map[string]error{
		"decodes generated messages, not *int":               (protobuf.Codec{}).Decode(t.Context(), &longshore.Message{}, &number),
		"decodes generated messages, not **int":              (protobuf.Codec{}).Decode(t.Context(), &longshore.Message{}, new(*int)),
		"decodes generated messages, not *durationpb.Durati": (protobuf.Codec{}).Decode(t.Context(), &longshore.Message{}, none),
		"encodes generated messages, not string":             (protobuf.Codec{}).Encode(t.Context(), "x", &longshore.Message{}),
		"encodes generated messages, not <nil>":              (protobuf.Codec{}).Encode(t.Context(), nil, &longshore.Message{}),
		"the message is nil":                                 (protobuf.Codec{}).Encode(t.Context(), none, &longshore.Message{}),
		"cannot parse":                                       (protobuf.Codec{}).Decode(t.Context(), &longshore.Message{Body: []byte("{}")}, &durationpb.Duration{}),
	} {
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "\u00a0", " "), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An empty body is a message with nothing set, not a mistake.
func TestAnEmptyBodyIsAMessage(t *testing.T) {
	var v *durationpb.Duration
	if err := (protobuf.Codec{}).Decode(t.Context(), &longshore.Message{Body: []byte{}}, &v); err != nil || v == nil || v.Seconds != 0 {
		t.Error(v, err)
	}
}

func TestUnknownFieldsAreKeptUnlessDiscarded(t *testing.T) {
	m := &longshore.Message{}
	if err := (protobuf.Codec{}).Encode(t.Context(), &durationpb.Duration{Seconds: 7, Nanos: 8}, m); err != nil {
		t.Fatal(err)
	}
	for _, discard := range []bool{false, true} {
		v := &wrapperspb.Int64Value{} // has field 1 only
		if err := (protobuf.Codec{DiscardUnknown: discard}).Decode(t.Context(), m, v); err != nil || v.Value != 7 {
			t.Fatal(v, err)
		}
		if kept := len(v.ProtoReflect().GetUnknown()) > 0; kept == discard {
			t.Errorf("discard %v: kept %v", discard, kept)
		}
	}
}

func TestDeterministicBytes(t *testing.T) {
	fields := map[string]any{}
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		fields[name] = name
	}
	v, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for range 20 {
		m := &longshore.Message{}
		if err := (protobuf.Codec{Deterministic: true}).Encode(t.Context(), v, m); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = m.Body
		}
		if !bytes.Equal(first, m.Body) {
			t.Fatal("two encodings of one message differ")
		}
	}
}

// One typed handler reads what names protobuf in three ways, and rejects what does not decode.
func TestATypedHandlerOfProtobuf(t *testing.T) {
	var got []int64
	h := longshore.Typed(longshore.ContentTypes{Types: protobuf.Types()}, func(_ context.Context, v *durationpb.Duration, _ *longshore.Delivery) error {
		got = append(got, v.Seconds)
		return nil
	})
	body, err := proto.Marshal(&durationpb.Duration{Seconds: 7})
	if err != nil {
		t.Fatal(err)
	}
	handle := func(contentType string, body []byte) error {
		d := longshore.NewDelivery(t.Context(), nil, 1)
		d.Message = longshore.Message{ContentType: contentType, Body: body}
		return h.Handle(t.Context(), d)
	}
	for _, name := range []string{"application/x-protobuf", "Application/Protobuf", "application/vnd.google.protobuf; proto=google.protobuf.Duration"} {
		if err := handle(name, body); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	err = handle("application/x-protobuf", []byte("{}"))
	if v, _ := longshore.VerdictOf(err); v != longshore.VerdictReject || longshore.CodeOf(err) != longshore.CodeUndecodable {
		t.Errorf("%v %v", v, err)
	}
	if len(got) != 3 {
		t.Errorf("the handler saw %v", got)
	}
}

// F-N20: a tombstone is nil, an empty body is a message in which nothing is set.
func TestTombstoneIsNoEmptyMessage(t *testing.T) {
	for _, c := range []struct {
		name string
		body []byte
		want bool // a message
	}{{"tombstone", nil, false}, {"empty body", []byte{}, true}} {
		calls := 0
		h := longshore.Typed(protobuf.Codec{}, func(_ context.Context, v *durationpb.Duration, _ *longshore.Delivery) error {
			if calls++; (v != nil) != c.want {
				t.Errorf("%s: %v", c.name, v)
			}
			return nil
		})
		d := longshore.NewDelivery(t.Context(), nil, 1)
		d.Message = longshore.Message{Body: c.body}
		if err := h.Handle(t.Context(), d); err != nil || calls != 1 {
			t.Errorf("%s: %d calls, %v", c.name, calls, err)
		}
		into := &durationpb.Duration{Seconds: 1}
		if err := (protobuf.Codec{}).Decode(t.Context(), &d.Message, into); errors.Is(err, longshore.CodeTombstone) == c.want || (err == nil) != c.want {
			t.Errorf("%s: %v, %v", c.name, into, err)
		}
	}
}
