package transporttest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func contentChecks() []check {
	return []check{
		{name: "headers", run: carriesHeaders},
		{name: "headers-order", run: keepsHeaderOrder},
		{name: "nil-and-empty", run: tellsNilFromEmpty},
		{name: "bodies", run: carriesAnyBody},
		{name: "properties", run: carriesProperties},
	}
}

// trip sends messages, each when the one before has come, and compares what comes
// with what should. Where a broker brings an earlier one once more in between, which a
// standard queue may, that is not an answer.
func (e *env) trip(what string, msgs ...longshore.Message) {
	e.Helper()
	src := e.h.Source(e)
	s := e.open(src, transport.OpenOptions{})
	var before []longshore.Message
	for _, m := range msgs {
		e.send(src, m.Clone())
		d := s.take(1)[0]
		want := *m.Clone()
		if e.h.Expect != nil {
			want = e.h.Expect(want)
		}
		for len(differences(want, d.Message)) > 0 && slices.ContainsFunc(before, func(w longshore.Message) bool { return len(differences(w, d.Message)) == 0 }) {
			s.ack(d)
			d = s.take(1)[0]
		}
		before = append(before, want)
		for _, diff := range differences(want, d.Message) {
			e.Errorf("%s: %s", what, diff)
		}
		s.ack(d)
	}
}

func carriesHeaders(e *env) {
	at := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	kinds := longshore.Headers{
		{Name: "string", Value: "zwölf"}, {Name: "empty", Value: ""}, {Name: "bytes", Value: []byte{0, 1, 254, 255}},
		{Name: "true", Value: true}, {Name: "false", Value: false},
		{Name: "int8", Value: int8(-8)}, {Name: "int16", Value: int16(-16)}, {Name: "int32", Value: int32(-32)},
		{Name: "int64", Value: int64(-1 << 62)}, {Name: "int", Value: 7},
		{Name: "uint8", Value: uint8(200)}, {Name: "uint16", Value: uint16(60000)}, {Name: "uint32", Value: uint32(4e9)},
		{Name: "uint64", Value: uint64(1 << 40)}, {Name: "uint", Value: uint(9)},
		{Name: "float32", Value: float32(1.5)}, {Name: "float64", Value: -2.25},
		{Name: "decimal", Value: longshore.Decimal{Scale: 2, Value: 1250}}, {Name: "time", Value: at}, {Name: "nil", Value: nil},
		{Name: "array", Value: []any{"a", int64(1), nil, []any{true}}},
		{Name: "table", Value: longshore.Headers{{Name: "x", Value: int64(1)}, {Name: "deep", Value: longshore.Headers{{Name: "y", Value: "z"}}}}},
	}
	var msgs []longshore.Message
	add := func(h longshore.Headers) {
		msgs = append(msgs, longshore.Message{Key: []byte("k"), Body: []byte("b"), Headers: h})
	}
	for _, h := range kinds {
		add(longshore.Headers{h})
	}
	// Other producers' words for the content type: longshore.ContentTypes looks for them.
	add(longshore.Headers{{Name: "contentType", Value: "application/json"}, {Name: "Content-Type", Value: "Application/JSON; charset=utf-8"}})
	add(kinds)
	e.trip("headers", msgs...)
}

func keepsHeaderOrder(e *env) {
	e.trip("order and repeats", longshore.Message{Key: []byte("k"), Body: []byte("b"), Headers: longshore.Headers{
		{Name: "b", Value: "1"}, {Name: "a", Value: "2"}, {Name: "b", Value: "3"}, {Name: "c", Value: "4"}, {Name: "b", Value: "1"},
	}})
}

// F-N20: no body and an empty one come out as they went in.
func tellsNilFromEmpty(e *env) {
	e.trip("nil and empty", longshore.Message{Key: []byte("k")}, longshore.Message{Key: []byte("k"), Body: []byte{}},
		longshore.Message{Body: []byte("no key")}, longshore.Message{Key: []byte{}, Body: []byte("empty key")})
}

func carriesAnyBody(e *env) {
	r := rand.New(rand.NewPCG(1, 2))
	var msgs []longshore.Message
	for _, size := range []int{1, 7, 255, 4096, 60000} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		msgs = append(msgs, longshore.Message{Key: body[:min(size, 100)], Body: body})
	}
	msgs = append(msgs, longshore.Message{Key: []byte{0, 255}, Body: []byte("\x00\xff\u2028 ]]> \ufffe")})
	e.trip("random bytes", msgs...)
}

func carriesProperties(e *env) {
	e.trip("properties", longshore.Message{
		ID: "id-1", Key: []byte("k"), Body: []byte("{}"), ContentType: "application/json", ContentEncoding: "identity", Type: "order.paid",
		CorrelationID: "corr", ReplyTo: "replies", AppID: "shop", UserID: e.h.UserID,
		Timestamp: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC), Expiration: time.Hour, Priority: 5, DeliveryMode: 2,
	})
}

// differences compares a received message with the expected one. Headers of our
// own, which publishers may add, do not count.
func differences(want, got longshore.Message) []string {
	var diffs []string
	add := func(what string, want, got any) {
		diffs = append(diffs, fmt.Sprintf("%s is %#v, want %#v", what, got, want))
	}
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"ID", want.ID, got.ID}, {"ContentType", want.ContentType, got.ContentType}, {"ContentEncoding", want.ContentEncoding, got.ContentEncoding},
		{"Type", want.Type, got.Type}, {"CorrelationID", want.CorrelationID, got.CorrelationID}, {"ReplyTo", want.ReplyTo, got.ReplyTo},
		{"AppID", want.AppID, got.AppID}, {"UserID", want.UserID, got.UserID}, {"Expiration", want.Expiration, got.Expiration},
		{"Priority", want.Priority, got.Priority},
	} {
		if f.want != f.got {
			add(f.name, f.want, f.got)
		}
	}
	if want.DeliveryMode != 0 && want.DeliveryMode != got.DeliveryMode {
		add("DeliveryMode", want.DeliveryMode, got.DeliveryMode)
	}
	if !want.Timestamp.IsZero() && !want.Timestamp.Equal(got.Timestamp) {
		add("Timestamp", want.Timestamp, got.Timestamp)
	}
	if !sameBytes(want.Key, got.Key) {
		add("Key", want.Key, got.Key)
	}
	if !sameBytes(want.Body, got.Body) {
		if len(want.Body) > 100 {
			diffs = append(diffs, fmt.Sprintf("Body of %d bytes differs (%d bytes)", len(want.Body), len(got.Body)))
		} else {
			add("Body", want.Body, got.Body)
		}
	}
	return append(diffs, headerDifferences(want.Headers, got.Headers)...)
}

func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
