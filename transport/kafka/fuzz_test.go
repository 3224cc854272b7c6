package kafka

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
)

// Headers of any name and kind come back from a record as they were.
func FuzzHeaders(f *testing.F) {
	f.Add("a", "text", []byte{0, 255}, int64(5))
	f.Add("content-type", "\xff", []byte("text"), int64(-1))
	f.Add("longshore-p-id", "", []byte{}, int64(0))
	f.Fuzz(func(t *testing.T, name, text string, raw []byte, n int64) {
		in := &longshore.Message{Body: raw, Headers: longshore.Headers{{Name: name, Value: text}, {Name: name, Value: append([]byte{}, raw...)},
			{Name: longshore.HeaderID, Value: "id"}, {Name: "n", Value: n}, {Name: text, Value: nil}, {Name: "l", Value: []any{text, longshore.Headers{{Name: name, Value: n}}}}}}
		r, err := encode(in, time.Unix(1, 0))
		if err != nil {
			if typed := (*longshore.Error)(nil); !errors.As(err, &typed) {
				t.Errorf("not typed: %v", err)
			}
			return
		}
		var out longshore.Message
		decode(&out, r)
		if !bytes.Equal(out.Body, in.Body) || !reflect.DeepEqual(out.Headers, in.Headers) {
			t.Errorf("%+v came back as %+v", in, out)
		}
	})
}
