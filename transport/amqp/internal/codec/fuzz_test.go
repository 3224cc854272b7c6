package codec

import (
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
)

// Headers that went through a table once stay as they are from then on.
func FuzzHeaders(f *testing.F) {
	f.Add("a", "text", []byte{0, 255}, 1.5, uint64(1<<63))
	f.Add("", "\xff", []byte{}, 0.0, uint64(0))
	f.Fuzz(func(t *testing.T, name, text string, raw []byte, number float64, n uint64) {
		in := longshore.Headers{{Name: name, Value: text}, {Name: name + "b", Value: raw}, {Name: name + "c", Value: number}, {Name: name + "d", Value: n},
			{Name: name + "e", Value: []any{nil, text, longshore.Headers{{Name: name, Value: number}}}}}
		table := amqp091.Table{}
		if err := fillTable(table, in, 1); err != nil {
			if len(name) < MaxShort {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		out, again := fromTable(table), amqp091.Table{}
		if err := fillTable(again, out, 1); err != nil || !SameTable(table, again) || len(out) != len(in) || out.String(name) != text {
			t.Errorf("%v became %v, then %v, %v", in, table, again, err)
		}
	})
}
