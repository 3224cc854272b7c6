package envelope_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// values are one of each kind that a header can have.
func values() []any {
	return []any{nil, true, false, "", "text", "zw\u00f6lf \U0001F600", "\xc3\x28", []byte{}, []byte{0, 255},
		int8(-8), int16(-16), int32(-32), int64(math.MinInt64), uint8(200), uint16(60000), uint32(4e9), uint64(math.MaxUint64),
		float32(1.5), -2.25, math.Inf(1), math.SmallestNonzeroFloat64,
		longshore.Decimal{Scale: 2, Value: 1250}, longshore.Decimal{Scale: 3, Value: -5}, longshore.Decimal{Value: 7},
		time.Unix(1709208000, 123456789).UTC(), time.Unix(-62135596800, 0).UTC(),
		[]any{"a", int64(1), nil, []any{true, longshore.Headers{}}}, []any{}, longshore.Headers{},
		longshore.Headers{{Name: "x", Value: int64(1)}, {Name: "x", Value: "again"}, {Name: "\xff", Value: longshore.Headers{{Name: "y"}}}}}
}

func TestEveryHeaderValueComesBackAsItWas(t *testing.T) { // F-I01
	for _, v := range values() {
		e := envelope.Envelope{HasHeaders: true, Headers: []envelope.Entry{{Header: longshore.Header{Name: "h", Value: v}}}}
		got, ok := envelope.Decode(e.Encode())
		if !ok || !reflect.DeepEqual(got.Headers, e.Headers) {
			t.Errorf("%#v came back as %#v (%t)", v, got.Headers, ok)
		}
	}
}

func TestEverythingElseComesBackAsItWas(t *testing.T) {
	for _, e := range []envelope.Envelope{
		{ID: "id"}, {Via: "a,b"}, {Time: 1709208000123456789}, {Time: -5}, {HasKey: true, Key: []byte{}}, {HasKey: true, Key: []byte{0, 255}},
		{NoKey: true}, {Body: envelope.Base64}, {HasHeaders: true}, {Properties: map[string]string{"type": "\u00e9\x7f\u2028<&>"}},
		{Broker: map[string]string{"exchange": "shop"}},
		{ID: "all", Via: "v", Time: 1, NoKey: true, Body: envelope.Nil, Properties: map[string]string{"a": "b"}, HasHeaders: true,
			Headers: []envelope.Entry{{Header: longshore.Header{Name: "n"}, Native: true}, {Header: longshore.Header{Name: "\xff"}, Native: true}}},
	} {
		text := e.Encode()
		for i := range len(text) {
			if text[i] < 0x20 || text[i] >= 0x7f {
				t.Errorf("%q is not plain ASCII", text)
				break
			}
		}
		got, ok := envelope.Decode(text)
		if !ok || !reflect.DeepEqual(got, e) {
			t.Errorf("%+v came back as %+v (%t) by %s", e, got, ok, text)
		}
	}
}

func TestEmptyEnvelopeIsNoText(t *testing.T) {
	var e envelope.Envelope
	e.Set("type", "")
	if !e.IsEmpty() || e.Encode() != "" {
		t.Errorf("%q", e.Encode())
	}
}

// A reader without this package: cut the prefix, read JSON.
func TestTextIsReadByHand(t *testing.T) {
	e := envelope.Envelope{HasKey: true, Key: []byte("c-91"), HasHeaders: true,
		Headers: []envelope.Entry{{Header: longshore.Header{Name: "n", Value: int64(7)}}}}
	text := e.Encode()
	var got map[string]any
	if err := json.Unmarshal([]byte(text[len("1.0000."):]), &got); err != nil || !strings.HasPrefix(text, "1.") {
		t.Fatalf("%s: %v", text, err)
	}
	if got["k"] != "Yy05MQ==" || fmt.Sprint(got["h"]) != "[[n i64 7]]" {
		t.Errorf("%v", got)
	}
}

func TestForeignOrChangedTextIsNotOurs(t *testing.T) {
	good := (&envelope.Envelope{ID: "id"}).Encode()
	for _, text := range []string{"", "1.", "1.0000.", "1.0000.{}", "2" + good[1:], good + " ", good[:len(good)-1], strings.ToUpper(good),
		strings.Replace(good, "id", "ie", 1), "plain text", sealed(`{"h":[[]]}`), sealed(`{"h":[["a","i8","300"]]}`), sealed(`{"b":"zip"}`), sealed(`[]`),
		sealed(`{"h":[["a","arr",` + strings.Repeat(`[["arr",`, 60) + `[]` + strings.Repeat(`]]`, 60) + `]]}`)} {
		if _, ok := envelope.Decode(text); ok {
			t.Errorf("%q was taken for ours", text)
		}
	}
	if _, ok := envelope.Decode(sealed(`{"id":"x"}`)); !ok {
		t.Error("sealed does not seal")
	}
}

// sealed makes a text with a right checksum.
func sealed(content string) string { return "1." + sum(content) + "." + content }

func TestMergeKeepsOrderAndWhatOthersDid(t *testing.T) {
	h := func(name string, v any) longshore.Header { return longshore.Header{Name: name, Value: v} }
	e := envelope.Envelope{HasHeaders: true, Headers: []envelope.Entry{
		{Header: h("b", nil), Native: true}, {Header: h("a", "packed")}, {Header: h("gone", nil), Native: true}, {Header: h("b", "1")}}}
	got := e.Merge(longshore.Headers{h("added", "x"), h("b", "changed")})
	if want := (longshore.Headers{h("b", "changed"), h("a", "packed"), h("b", "1"), h("added", "x")}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	plain := longshore.Headers{h("z", "1"), h("a", "2")}
	if got := (&envelope.Envelope{}).Merge(plain); !reflect.DeepEqual(got, plain) {
		t.Errorf("without headers: %v", got)
	}
}

func TestNamesThatLookLikeOursComeBack(t *testing.T) {
	ours := func(name string) bool { return name == envelope.Header }
	for _, name := range []string{"a", envelope.Header, envelope.UserPrefix, envelope.UserPrefix + envelope.Header, "longshore-id"} {
		sent := envelope.Escape(name, ours)
		if sent == envelope.Header || envelope.Unescape(sent) != name {
			t.Errorf("%s is sent as %s and comes back as %s", name, sent, envelope.Unescape(sent))
		}
	}
}

func TestAnyBodyIsALegalTextAndComesBack(t *testing.T) { // F-I03, F-I04
	r := rand.New(rand.NewPCG(3, 4))
	all := [][]byte{nil, {}, []byte("{}"), []byte("-"), []byte(" \t\r\n"), []byte("AAAA"), []byte("\ufffe"), []byte("\uffff"), []byte("\xed\xa0\x80"), {0}, []byte("a\x0bb"), []byte("\ufffd")}
	for range 10_000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32()) //nolint:gosec // any byte
		}
		all = append(all, b)
	}
	for _, body := range all {
		text, form := envelope.PackBody(body)
		if text == "" || !envelope.LegalText(text) {
			t.Errorf("%q is packed as the illegal text %q", body, text)
		}
		got, ok := envelope.UnpackBody(text, form)
		if !ok || !bytes.Equal(got, body) || (got == nil) != (body == nil) {
			t.Errorf("%q came back as %q", body, got)
		}
	}
	if text, form := envelope.PackBody([]byte(`{"a":1}`)); text != `{"a":1}` || form != envelope.Plain {
		t.Errorf("JSON is sent as %q", text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"id":"x"}`)
	f.Add(`{"h":[["a","i64","1"],["b"],["c","tbl",[["x","str","y"]]]],"k":"AA==","b":"64"}`)
	f.Fuzz(func(t *testing.T, content string) {
		e, ok := envelope.Decode("1." + sum(content) + "." + content)
		if !ok {
			return
		}
		again, ok := envelope.Decode(e.Encode())
		if e.IsEmpty() {
			return
		}
		if !ok || !reflect.DeepEqual(again.Headers, e.Headers) && !strings.Contains(content, "f") {
			t.Errorf("%+v came back as %+v", e, again)
		}
	})
}
