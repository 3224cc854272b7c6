package longshore

import (
	"fmt"
	"strconv"
	"time"
)

// Header is one name with its value. These kinds of value travel on every
// transport, in the broker's own form where it has one:
//
//	string, []byte, bool
//	int8, int16, int32, int64, int, uint8, uint16, uint32, uint64, uint
//	float32, float64, [Decimal], [time.Time]
//	[]any (array) and [Headers] (table) of these, and nil
//
// Any other kind is refused when the message is published, for that message
// alone.
type Header struct {
	Name  string
	Value any
}

// Headers keeps the order in which headers were sent and repeated names.
// Look-ups are linear: messages have a handful of headers, and order matters.
type Headers []Header

// Decimal is a decimal number: Value × 10^-Scale, as AMQP knows it.
type Decimal struct {
	Scale uint8
	Value int32
}

// String returns the number in plain notation, for example "12.50".
func (d Decimal) String() string {
	sign, v := "", int64(d.Value)
	if v < 0 {
		sign, v = "-", -v
	}
	digits := strconv.FormatInt(v, 10)
	for len(digits) <= int(d.Scale) {
		digits = "0" + digits
	}
	if d.Scale == 0 {
		return sign + digits
	}
	cut := len(digits) - int(d.Scale)
	return sign + digits[:cut] + "." + digits[cut:]
}

// Get returns the value of the first header with the name.
func (h Headers) Get(name string) (any, bool) {
	for i := range h {
		if h[i].Name == name {
			return h[i].Value, true
		}
	}
	return nil, false
}

// Has reports whether a header with the name exists, whatever its value.
func (h Headers) Has(name string) bool {
	_, ok := h.Get(name)
	return ok
}

// Values returns the values of all headers with the name, in order.
func (h Headers) Values(name string) []any {
	var vs []any
	for i := range h {
		if h[i].Name == name {
			vs = append(vs, h[i].Value)
		}
	}
	return vs
}

// String returns the first value with the name as text: strings and bytes as
// they are, numbers, booleans and times in Go's usual notation (times in RFC
// 3339), "" for an absent header, a nil, an array or a table.
func (h Headers) String(name string) string {
	v, _ := h.Get(name)
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case nil, []any, Headers:
		return ""
	default:
		return fmt.Sprint(v)
	}
}

// Int returns the first value with the name as a number. Integers of any size
// and texts in decimal notation count; anything else is not ok.
func (h Headers) Int(name string) (n int64, ok bool) {
	v, _ := h.Get(name)
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint:
		return int64(v), v <= 1<<62
	case uint64:
		return int64(v), v <= 1<<62
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	case []byte:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Add appends a header, keeping others with the same name.
func (h *Headers) Add(name string, value any) {
	*h = append(*h, Header{Name: name, Value: value})
}

// Set leaves exactly one header with the name. It takes the place of the first
// one, or comes last. The slice it had before is not written to, so that a
// message which shares it is not changed.
func (h *Headers) Set(name string, value any) {
	out := make(Headers, 0, len(*h)+1)
	done := false
	for _, x := range *h {
		switch {
		case x.Name != name:
			out = append(out, x)
		case !done:
			out = append(out, Header{Name: name, Value: value})
			done = true
		}
	}
	if !done {
		out = append(out, Header{Name: name, Value: value})
	}
	*h = out
}

// Del removes all headers with the name, leaving the slice it had before alone.
func (h *Headers) Del(name string) {
	if !h.Has(name) {
		return
	}
	out := make(Headers, 0, len(*h))
	for _, x := range *h {
		if x.Name != name {
			out = append(out, x)
		}
	}
	*h = out
}

// Clone returns a deep copy: byte slices, arrays and tables are not shared.
func (h Headers) Clone() Headers {
	if h == nil {
		return nil
	}
	c := make(Headers, len(h))
	for i, x := range h {
		c[i] = Header{Name: x.Name, Value: cloneValue(x.Value)}
	}
	return c
}

func cloneValue(v any) any {
	switch v := v.(type) {
	case []byte:
		return cloneBytes(v)
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneValue(v[i])
		}
		return c
	case Headers:
		return v.Clone()
	}
	return v
}

// Check returns an error that names the first header whose value no transport
// can carry, or nil. Publishers call it; a message that fails is refused alone.
func (h Headers) Check() error {
	for _, x := range h {
		if err := checkValue(x.Value, 0); err != nil {
			return &Error{Code: CodeBadHeader, Op: fmt.Sprintf("header %q", x.Name), Err: err,
				Hint: "use a kind that longshore.Header lists, or encode the value as text"}
		}
	}
	return nil
}

// maxNesting bounds arrays and tables inside each other: a cyclic value would
// otherwise never end.
const maxNesting = 32

func checkValue(v any, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("nested deeper than %d", maxNesting)
	}
	switch v := v.(type) {
	case nil, string, []byte, bool, int, int8, int16, int32, int64,
		uint, uint8, uint16, uint32, uint64, float32, float64, Decimal, time.Time:
		return nil
	case []any:
		for i := range v {
			if err := checkValue(v[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	case Headers:
		for i := range v {
			if err := checkValue(v[i].Value, depth+1); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("a value of kind %T cannot be sent", v)
	}
}
