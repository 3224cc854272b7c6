package codec

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/longshore-go/longshore"
)

// Body, key and headers come back from body, group and attributes as they were.
func FuzzHeaders(f *testing.F) {
	f.Add("a", "text", []byte{0, 255}, int64(5), false)
	f.Add("content-type", "\xff", []byte("text"), int64(-1), true)
	f.Add("AWSTraceHeader", "~", []byte{}, int64(0), true)
	f.Fuzz(func(t *testing.T, name, text string, bin []byte, n int64, fifo bool) {
		if name == headerTypes || text == headerTypes {
			return // is about the others
		}
		in := &longshore.Message{Key: []byte(text), Body: append([]byte{}, bin...), Headers: longshore.Headers{{Name: name, Value: text},
			{Name: name, Value: append([]byte{}, bin...)}, {Name: "n", Value: n}, {Name: text, Value: nil}}}
		e, err := Encode(in, Options{FIFO: fifo})
		if err != nil {
			if typed := (*longshore.Error)(nil); !errors.As(err, &typed) {
				t.Errorf("not typed: %v", err)
			}
			return
		}
		var out longshore.Message
		decode(&out, &raw{body: []byte(e.Body), attrs: e.attrs, system: map[string]string{"MessageGroupId": e.Group, HeaderTrace: e.trace}})
		if !bytes.Equal(out.Body, in.Body) || !bytes.Equal(out.Key, in.Key) || !reflect.DeepEqual(out.Headers, in.Headers) {
			t.Errorf("%+v came back as %+v", in, out)
		}
	})
}
