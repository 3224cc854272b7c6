package inspect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
)

// jsonLine is a message as a line of JSON: what peek --json and tail --json print, and what kcat -J
// prints. Fields that say where a message was (queue, partition, offset …) are read and not used.
type jsonLine struct {
	ID          string          `json:"id"`
	Key         *string         `json:"key"`
	KeyBase64   []byte          `json:"key_base64"`
	Body        json.RawMessage `json:"body"`
	Payload     json.RawMessage `json:"payload"` // kcat's name of the body
	BodyBase64  []byte          `json:"body_base64"`
	ContentType string          `json:"content_type"`
	Headers     json.RawMessage `json:"headers"`

	N, Queue, Topic, Partition, Position, Offset, Attempt, Time, Size, Broker json.RawMessage

	TSType json.RawMessage `json:"tstype"`
	TS     json.RawMessage `json:"ts"`
}

// mostMistakes is how many wrong lines are named before reading ends.
const mostMistakes = 10

// LineError is a mistake in a line of the input.
type LineError struct {
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

// ofJSON makes a message of a line; what the line does not say is as in like.
func ofJSON(line []byte, like *longshore.Message) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	var in jsonLine
	if err := dec.Decode(&in); err != nil {
		return readable(err)
	}
	if dec.More() {
		return errors.New("more than one JSON value")
	}
	if in.ID != "" {
		like.ID = in.ID
	}
	if in.ContentType != "" {
		like.ContentType = in.ContentType
	}
	switch {
	case in.Key != nil && in.KeyBase64 != nil:
		return errors.New("key and key_base64 exclude each other")
	case in.Key != nil:
		like.Key = []byte(*in.Key)
	case in.KeyBase64 != nil:
		like.Key = in.KeyBase64
	}
	if err := bodyOf(&in, like); err != nil {
		return err
	}
	headers, err := headersOf(in.Headers)
	if err != nil {
		return err
	}
	for _, h := range headers { // they win over those of the command line
		like.Headers = slices.DeleteFunc(like.Headers, func(x longshore.Header) bool { return x.Name == h.Name })
	}
	like.Headers = append(like.Headers, headers...)
	return nil
}

// readable is an error of encoding/json for people.
func readable(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var encoding base64.CorruptInputError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w at byte %d", syntax, syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("a JSON %s, want an object", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%q is a %s, want a %s", kind.Field, kind.Value, kind.Type)
	case errors.As(err, &encoding):
		return errors.New("a field that ends in _base64 is not base64")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: the line ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}

// bodyOf sets the body: a string is text, anything else is the body as it is written.
func bodyOf(in *jsonLine, m *longshore.Message) error {
	body := in.Body
	if body == nil {
		body = in.Payload
	}
	switch {
	case in.Body != nil && in.Payload != nil, body != nil && in.BodyBase64 != nil:
		return errors.New("body, payload and body_base64 exclude each other")
	case in.BodyBase64 != nil:
		m.Body = in.BodyBase64
		return nil
	case body == nil, string(body) == "null":
		m.Body = nil
		return nil
	case body[0] == '"':
		var text string
		if err := json.Unmarshal(body, &text); err != nil {
			return readable(err)
		}
		m.Body = []byte(text)
		return nil
	}
	m.Body = body
	if m.ContentType == "" {
		m.ContentType = "application/json"
	}
	return nil
}

// headersOf reads an object, a list of {"name", "value"} or kcat's list of names and values in turn.
func headersOf(raw json.RawMessage) (longshore.Headers, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, readable(err)
	}
	var pairs [][2]any
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, [2]any{name, v[name]})
		}
	case []any:
		for i := 0; i < len(v); i++ {
			if object, ok := v[i].(map[string]any); ok {
				pairs = append(pairs, [2]any{object["name"], object["value"]})
			} else if i+1 < len(v) {
				pairs = append(pairs, [2]any{v[i], v[i+1]})
				i++
			} else {
				return nil, errors.New("headers: the last name has no value")
			}
		}
	default:
		return nil, errors.New("headers are neither an object nor a list")
	}
	var hs longshore.Headers
	for _, p := range pairs {
		name, _ := p[0].(string)
		if name == "" {
			return nil, errors.New("a header has no name")
		}
		value, ok := headerValue(p[1])
		if !ok {
			return nil, fmt.Errorf("header %.64q is not a string, a number, true, false or null", name)
		}
		hs.Add(name, value)
	}
	return hs, nil
}

// headerValue is a value that a header can have.
func headerValue(v any) (any, bool) {
	switch v := v.(type) {
	case json.Number:
		n := numberOf(v)
		return n, n != nil
	case string, bool, nil:
		return v, true
	}
	return nil, false
}
