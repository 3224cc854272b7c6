package codec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/wire"
)

// fromTable makes headers of a table, in the order of their names: the table is
// a map, and the order on the wire is lost in the client.
func fromTable(t amqp091.Table) longshore.Headers {
	if len(t) == 0 {
		return nil
	}
	h := make(longshore.Headers, 0, len(t))
	for name, v := range t {
		h = append(h, longshore.Header{Name: name, Value: fromField(v)})
	}
	if len(h) > 1 {
		slices.SortFunc(h, func(a, b longshore.Header) int { return strings.Compare(a.Name, b.Name) })
	}
	return h
}

func fromField(v any) any {
	switch v := v.(type) {
	case amqp091.Table:
		h := fromTable(v)
		if h == nil {
			h = longshore.Headers{}
		}
		return h
	case []any:
		a := make([]any, len(v))
		for i := range v {
			a[i] = fromField(v[i])
		}
		return a
	case amqp091.Decimal:
		return longshore.Decimal{Scale: v.Scale, Value: v.Value}
	}
	return v
}

// toField turns a value into one that AMQP has. What it has not goes as the next
// larger one that holds it: int and uint as int64, a uint64 above that as text. A
// float that is not a number goes as text too: RabbitMQ ends the connection over it.
func toField(v any, depth int) (any, error) {
	switch v.(type) {
	case []any, longshore.Headers: // depth counts tables and arrays, like repairHeader
		if depth > wire.MaxDepth {
			return nil, fmt.Errorf("nested deeper than %d", wire.MaxDepth)
		}
	}
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case uint:
		return unsigned(uint64(v)), nil
	case uint64:
		return unsigned(v), nil
	case float32:
		if !finite(float64(v)) {
			return fmt.Sprint(v), nil
		}
	case float64:
		if !finite(v) {
			return fmt.Sprint(v), nil
		}
	case longshore.Decimal:
		return amqp091.Decimal{Scale: v.Scale, Value: v.Value}, nil
	case time.Time:
		return v.Truncate(time.Second), nil
	case []any:
		if len(v) > wire.MaxElements {
			return nil, fmt.Errorf("an array of %d elements; %d are the most", len(v), wire.MaxElements)
		}
		a := make([]any, len(v))
		for i := range v {
			x, err := toField(v[i], depth+1)
			if err != nil {
				return nil, err
			}
			a[i] = x
		}
		return a, nil
	case longshore.Headers:
		t := make(amqp091.Table, len(v))
		return t, fillTable(t, v, depth+1)
	}
	return v, nil
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func unsigned(v uint64) any {
	if v <= math.MaxInt64 {
		return int64(v)
	}
	return fmt.Sprint(v)
}

// fillTable adds headers to a table. Of a name that occurs twice the last one
// stays.
func fillTable(t amqp091.Table, h longshore.Headers, depth int) error {
	if len(h) > wire.MaxElements {
		return fmt.Errorf("a table of %d entries; %d are the most", len(h), wire.MaxElements)
	}
	for _, x := range h {
		if len(x.Name) > MaxShort {
			return fmt.Errorf("the name %.32q… is %d bytes long; 255 are the most", x.Name, len(x.Name))
		}
		v, err := toField(x.Value, depth)
		if err != nil {
			return fmt.Errorf("%.64q is %w", x.Name, err)
		}
		t[x.Name] = v
	}
	return nil
}

// fieldSize is how many bytes a value takes on the wire, its type included.
func fieldSize(v any) int {
	switch v := v.(type) {
	case nil:
		return 1
	case bool, int8, uint8:
		return 2
	case int16, uint16:
		return 3
	case int32, uint32, float32:
		return 5
	case amqp091.Decimal:
		return 6
	case string:
		return 5 + len(v)
	case []byte:
		return 5 + len(v)
	case []any:
		n := 5
		for _, x := range v {
			n += fieldSize(x)
		}
		return n
	case amqp091.Table:
		return 1 + tableSize(v)
	}
	return 9
}

func tableSize(t amqp091.Table) int {
	n := 4
	for name, v := range t {
		n += 1 + len(name) + fieldSize(v)
	}
	return n
}

// sameField compares what was sent with what came back.
func sameField(a, b any) bool {
	switch a := a.(type) {
	case time.Time:
		t, ok := b.(time.Time)
		return ok && a.Unix() == t.Unix()
	case []byte:
		x, ok := b.([]byte)
		return ok && bytes.Equal(a, x)
	case []any:
		x, ok := b.([]any)
		if !ok || len(a) != len(x) {
			return false
		}
		for i := range a {
			if !sameField(a[i], x[i]) {
				return false
			}
		}
		return true
	case amqp091.Table:
		x, ok := b.(amqp091.Table)
		return ok && SameTable(a, x)
	}
	return reflect.DeepEqual(a, b)
}

// SameTable reports whether two tables of arguments mean the same to the broker.
func SameTable(a, b amqp091.Table) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		x, ok := b[name]
		if !ok || !sameField(v, x) {
			return false
		}
	}
	return true
}
