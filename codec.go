package longshore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Codec turns a message into a value and back. It sees the whole message, so
// that content types, headers and schema registries fit. Implementations are
// safe for concurrent use.
type Codec interface {
	// Decode reads m into v, a non-nil pointer. An error means that the message cannot
	// be read, unless it is a verdict: [Release] if what the codec needs is away.
	Decode(ctx context.Context, m *Message, v any) error
	// Encode writes v into m's body and sets the properties that describe it.
	Encode(ctx context.Context, v any, m *Message) error
}

// JSON is the codec for application/json. It does not look at the content type
// when decoding: many producers set none.
type JSON struct {
	// Strict refuses fields that the Go type does not have.
	Strict bool
}

// byteOrderMark is put before JSON by some producers, of .NET above all. RFC 8259 lets
// readers ignore it.
const byteOrderMark = "\xef\xbb\xbf"

// Decode reads exactly one JSON value, with or without a byte order mark before it.
func (j JSON) Decode(_ context.Context, m *Message, v any) error {
	if done, err := DecodeTombstone(m, v); done {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(m.Body, []byte(byteOrderMark))))
	if j.Strict {
		dec.DisallowUnknownFields()
	}
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the body is empty")
		}
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%w at byte %d", err, syntax.Offset)
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more than one JSON value, the second at byte %d", dec.InputOffset())
	}
	return nil
}

// Encode writes v and sets the content type.
func (JSON) Encode(_ context.Context, v any, m *Message) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	m.Body, m.ContentType = b, "application/json"
	return nil
}

// Raw is the codec for handlers of []byte or string: the body as it is.
type Raw struct{}

// Decode sets v, which must be *[]byte or *string.
func (Raw) Decode(_ context.Context, m *Message, v any) error {
	if done, err := DecodeTombstone(m, v); done {
		return err
	}
	switch v := v.(type) {
	case *[]byte:
		*v = m.Body
	case *string:
		*v = string(m.Body)
	default:
		return fmt.Errorf("longshore.Raw decodes []byte and string, not %T", v)
	}
	return nil
}

// Encode takes []byte or string.
func (Raw) Encode(_ context.Context, v any, m *Message) error {
	switch v := v.(type) {
	case []byte:
		m.Body = v
	case string:
		m.Body = []byte(v)
	default:
		return fmt.Errorf("longshore.Raw encodes []byte and string, not %T", v)
	}
	return nil
}

// Typed returns a handler that decodes the body before it calls f. A body that
// does not decode is rejected ([CodeUndecodable]) and f does not run; a verdict of the
// codec's own stands. A message without a body does not get to the codec: see [Tombstone].
func Typed[T any](codec Codec, f func(ctx context.Context, v T, d *Delivery) error, options ...TypedOption) Handler {
	var o typedOptions
	for _, option := range options {
		option.typed(&o)
	}
	return HandlerFunc(func(ctx context.Context, d *Delivery) error {
		v, skip, err := decodeOne[T](ctx, codec, o, d)
		if err != nil || skip {
			return err
		}
		return f(ctx, v, d)
	})
}

func undecodable(d *Delivery, as string, err error) error {
	if d.ContentType != "" {
		err = fmt.Errorf("%w (content-type %.64q)", err, d.ContentType)
	}
	return &Error{Code: CodeUndecodable, Op: fmt.Sprintf("decode %q message %.64q as %s", d.Origin.Source(), Identity(d), as),
		Source: d.Origin.Source(), Err: err}
}
