package amqptest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"
)

// Table is an AMQP field table: ordered, and a name may occur twice, as on the
// wire. A decoded table encodes to the same bytes again.
//
// Values are bool, int8, uint8, int16, uint16, int32, uint32, int64, float32,
// float64, [Decimal], string, []byte, time.Time (whole seconds), Table, []any
// and nil.
type Table []Field

// Field is one entry of a [Table].
type Field struct {
	Name  string
	Value any
}

// Decimal is the AMQP decimal: Value / 10^Scale.
type Decimal struct {
	Scale uint8
	Value uint32
}

// Get returns the first value called name, nil when there is none.
func (t Table) Get(name string) any {
	v, _ := t.lookup(name)
	return v
}

func (t Table) lookup(name string) (any, bool) {
	for i := range t {
		if t[i].Name == name {
			return t[i].Value, true
		}
	}
	return nil, false
}

// with returns a copy in which name has this value: in place, or at the front,
// where RabbitMQ puts what it adds.
func (t Table) with(name string, value any) Table {
	out := make(Table, 0, len(t)+1)
	found := false
	for _, f := range t {
		if f.Name == name {
			if found {
				continue
			}
			f.Value, found = value, true
		}
		out = append(out, f)
	}
	if !found {
		out = append(Table{{name, value}}, out...)
	}
	return out
}

func (t Table) without(name string) Table {
	out := make(Table, 0, len(t))
	for _, f := range t {
		if f.Name != name {
			out = append(out, f)
		}
	}
	return out
}

func decodeTable(d *decoder) Table {
	in := decoder{b: d.longstr()}
	t := Table{}
	for len(in.b) > 0 && in.err == nil {
		t = append(t, Field{in.shortstr(), in.value(0)})
	}
	if in.err != nil {
		d.fail(in.err)
	}
	return t
}

// finite reports whether v holds no float that is infinite or no number.
func finite(v any) bool {
	switch v := v.(type) {
	case float32:
		return finite(float64(v))
	case float64:
		return !math.IsInf(v, 0) && !math.IsNaN(v)
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !finite(e) })
	case Table:
		return !slices.ContainsFunc(v, func(f Field) bool { return !finite(f.Value) })
	}
	return true
}

// maxDepth bounds the nesting of tables and arrays, so that a hostile header
// cannot exhaust the stack.
const maxDepth = 512

func (d *decoder) value(depth int) any {
	kind := d.u8()
	if depth > maxDepth {
		d.fail(errMalformed)
	}
	if d.err != nil {
		return nil
	}
	switch kind {
	case 't':
		return d.u8() != 0
	case 'b':
		return int8(d.u8())
	case 'B':
		return d.u8()
	case 's':
		return int16(d.u16())
	case 'u':
		return d.u16()
	case 'I':
		return int32(d.u32())
	case 'i':
		return d.u32()
	case 'l', 'L':
		return int64(d.u64())
	case 'f':
		return math.Float32frombits(d.u32())
	case 'd':
		return math.Float64frombits(d.u64())
	case 'D':
		return Decimal{d.u8(), d.u32()}
	case 'S':
		return string(d.longstr())
	case 'x':
		return append([]byte{}, d.longstr()...)
	case 'T':
		return time.Unix(int64(d.u64()), 0)
	case 'V':
		return nil
	case 'F':
		in, t := decoder{b: d.longstr()}, Table{}
		for len(in.b) > 0 && in.err == nil {
			t = append(t, Field{in.shortstr(), in.value(depth + 1)})
		}
		d.fail(in.err)
		return t
	case 'A':
		in, a := decoder{b: d.longstr()}, []any{}
		for len(in.b) > 0 && in.err == nil {
			a = append(a, in.value(depth+1))
		}
		d.fail(in.err)
		return a
	}
	d.fail(fmt.Errorf("%w: field type %q", errMalformed, kind))
	return nil
}

func appendTable(b []byte, t Table) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, f := range t {
		b = appendValue(appendShortstr(b, f.Name), f.Value)
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func appendValue(b []byte, v any) []byte {
	be := binary.BigEndian
	switch v := v.(type) {
	case bool:
		if v {
			return append(b, 't', 1)
		}
		return append(b, 't', 0)
	case int8:
		return append(b, 'b', byte(v))
	case uint8:
		return append(b, 'B', v)
	case int16:
		return be.AppendUint16(append(b, 's'), uint16(v))
	case uint16:
		return be.AppendUint16(append(b, 'u'), v)
	case int32:
		return be.AppendUint32(append(b, 'I'), uint32(v))
	case uint32:
		return be.AppendUint32(append(b, 'i'), v)
	case int64:
		return be.AppendUint64(append(b, 'l'), uint64(v))
	case float32:
		return be.AppendUint32(append(b, 'f'), math.Float32bits(v))
	case float64:
		return be.AppendUint64(append(b, 'd'), math.Float64bits(v))
	case Decimal:
		return be.AppendUint32(append(b, 'D', v.Scale), v.Value)
	case string:
		return appendLongstr(append(b, 'S'), v)
	case []byte:
		return appendLongstr(append(b, 'x'), string(v))
	case time.Time:
		return be.AppendUint64(append(b, 'T'), uint64(v.Unix()))
	case Table:
		return appendTable(append(b, 'F'), v)
	case []any:
		b = append(b, 'A')
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		for _, e := range v {
			b = appendValue(b, e)
		}
		be.PutUint32(b[at:], uint32(len(b)-at-4))
		return b
	}
	return append(b, 'V') // nil, and nothing else: decode makes no other type
}
