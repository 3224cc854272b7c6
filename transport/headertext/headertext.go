package headertext

import (
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/envelope"
)

// maxDepth is how deep arrays and tables may nest.
const maxDepth = 30

// ErrNotHeaders is the error of Decode for a text that Encode has not written, or that was
// changed on its way.
var ErrNotHeaders = errors.New("longshore/headertext: not the text of headers, or changed on the way")

// Encode writes headers as text. It fails for a value of a type that no header can have:
// those it takes are nil, bool, string, []byte, the integers, float32 and float64,
// [longshore.Decimal], time.Time, []any and [longshore.Headers].
func Encode(h longshore.Headers) (string, error) {
	e := envelope.Envelope{HasHeaders: true}
	for _, one := range h {
		if err := check(one.Value, maxDepth); err != nil {
			return "", fmt.Errorf("longshore/headertext: header %q: %w", one.Name, err)
		}
		e.Headers = append(e.Headers, envelope.Entry{Header: one})
	}
	return e.Encode(), nil
}

// Decode reads what Encode has written. Integers keep their size, with int as int64 and uint
// as uint64; times keep their nanoseconds and become UTC.
func Decode(text string) (longshore.Headers, error) {
	e, ok := envelope.Decode(text)
	if !ok || !e.HasHeaders {
		return nil, ErrNotHeaders
	}
	return e.Merge(nil), nil
}

func check(v any, depth int) error {
	if depth == 0 {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case nil, time.Time:
		return nil
	case []any:
		for _, x := range v {
			if err := check(x, depth-1); err != nil {
				return err
			}
		}
		return nil
	case longshore.Headers:
		for _, x := range v {
			if err := check(x.Value, depth-1); err != nil {
				return err
			}
		}
		return nil
	}
	if _, _, ok := envelope.Text(v); !ok {
		return fmt.Errorf("a header cannot be a %T", v)
	}
	return nil
}
