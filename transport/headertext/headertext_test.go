package headertext_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/headertext"
)

func every() longshore.Headers {
	return longshore.Headers{
		{Name: "tenant", Value: "blue"}, {Name: "tenant", Value: "twice"}, {Name: "", Value: ""}, {Name: "umlaut ü", Value: "\u2028 ß 😀"}, {Name: "broken \xff", Value: "\xfe"},
		{Name: "null", Value: nil}, {Name: "bool", Value: true}, {Name: "bytes", Value: []byte{0, 255}}, {Name: "empty", Value: []byte{}},
		{Name: "i8", Value: int8(-128)}, {Name: "i16", Value: int16(math.MinInt16)}, {Name: "i32", Value: int32(math.MaxInt32)}, {Name: "i64", Value: int64(math.MinInt64)},
		{Name: "u8", Value: uint8(255)}, {Name: "u16", Value: uint16(1)}, {Name: "u32", Value: uint32(math.MaxUint32)}, {Name: "u64", Value: uint64(math.MaxUint64)},
		{Name: "f32", Value: float32(0.1)}, {Name: "f64", Value: math.SmallestNonzeroFloat64}, {Name: "inf", Value: math.Inf(-1)}, {Name: "dec", Value: longshore.Decimal{Scale: 2, Value: -314}},
		{Name: "at", Value: time.Unix(1, 2).UTC()}, {Name: "arr", Value: []any{int8(1), "a", []any{nil}}}, {Name: "table", Value: longshore.Headers{{Name: "x", Value: int16(1)}, {Name: "x", Value: "again"}}},
	}
}

func TestEveryTypeComesBack(t *testing.T) {
	in := every()
	text, err := headertext.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			t.Fatalf("%q is not printable ASCII", text)
		}
	}
	out, err := headertext.Decode(text)
	if err != nil || len(out) != len(in) {
		t.Fatalf("%v, %v", out, err)
	}
	for i := range in {
		if !reflect.DeepEqual(in[i], out[i]) {
			t.Errorf("%#v became %#v", in[i], out[i])
		}
	}
	if changed, err := headertext.Decode(strings.Replace(text, "blue", "blur", 1)); err == nil {
		t.Errorf("a changed text is %v", changed)
	}
	if none, err := headertext.Encode(nil); err != nil {
		t.Error(err)
	} else if out, err := headertext.Decode(none); err != nil || len(out) != 0 {
		t.Errorf("no headers: %v, %v", out, err)
	}
}

func TestValuesThatNoHeaderCanHave(t *testing.T) {
	deep := any("x")
	for range 50 {
		deep = []any{deep}
	}
	for _, v := range []any{struct{}{}, map[string]any{}, []string{"a"}, deep, longshore.Headers{{Name: "x", Value: make(chan int)}}} {
		if text, err := headertext.Encode(longshore.Headers{{Name: "h", Value: v}}); err == nil || !strings.Contains(err.Error(), `"h"`) {
			t.Errorf("%T: %q, %v", v, text, err)
		}
	}
}

// Whatever is read is written again as something that reads the same.
func FuzzDecode(f *testing.F) {
	text, err := headertext.Encode(every())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("1.0000.{}")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := headertext.Decode(text)
		if err != nil {
			return
		}
		again, err := headertext.Encode(h)
		if err != nil {
			return // nested deeper than Encode writes
		}
		if back, err := headertext.Decode(again); err != nil || fmt.Sprintf("%#v", back) != fmt.Sprintf("%#v", h) {
			t.Errorf("%q: %v, %#v, %#v", text, err, h, back)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("tenant", "blue", int64(1), []byte{1})
	f.Fuzz(func(t *testing.T, name, text string, n int64, b []byte) {
		in := longshore.Headers{{Name: name, Value: text}, {Name: name, Value: n}, {Name: text, Value: append([]byte{}, b...)}, {Name: "t", Value: longshore.Headers{{Name: name, Value: int32(n)}}}} //nolint:gosec // any number
		s, err := headertext.Encode(in)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := headertext.Decode(s); err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%#v became %#v, %v", in, out, err)
		}
	})
}

func Example() {
	text, err := headertext.Encode(longshore.Headers{{Name: "tenant", Value: "blue"}, {Name: "retries", Value: int32(3)}})
	if err != nil {
		panic(err)
	}
	fmt.Println(text)
	headers, err := headertext.Decode(text)
	fmt.Println(headers.String("tenant"), err)
	// Output:
	// 1.42a8.{"h":[["tenant","str","blue"],["retries","i32","3"]]}
	// blue <nil>
}
