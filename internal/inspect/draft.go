package inspect

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
)

// maxBody bounds the data read into memory as one body or line.
const maxBody = 128 << 20

// Draft is what the messages made of an input have in common.
type Draft struct {
	ID          string
	Key         string
	HasKey      bool     // an empty Key is a key
	Headers     []string // name=value
	HeadersJSON string   // an object, for any name and for numbers and booleans
	ContentType string
	Lines       bool // one message a line
	// JSONLines: each line is a JSON object with key, headers and body, which win over the fields
	// above.
	JSONLines bool
	// KeySeparator divides each line into key and body; "" leaves lines whole.
	KeySeparator string
}

// Read returns the messages; with Lines none for an empty line, else one for the
// whole input. An empty input without Lines is a message with an empty body only
// if it is not the absence of one: see the command's rule for standard input.
func (d Draft) Read(r io.Reader) ([]*longshore.Message, error) {
	msgs, _, err := d.ReadNumbered(r)
	return msgs, err
}

// ReadNumbered is Read that also returns the line of each message; nil if they are not lines. Lines
// that cannot be read are reported together, up to ten of them, as joined *LineErrors.
func (d Draft) ReadNumbered(r io.Reader) (msgs []*longshore.Message, lines []int, err error) {
	headers, err := parseHeaders(d.Headers)
	if err != nil {
		return nil, nil, err
	}
	if err := addJSON(&headers, d.HeadersJSON); err != nil {
		return nil, nil, err
	}
	if d.Lines || d.JSONLines {
		return d.lines(r, headers)
	}
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	switch {
	case err != nil:
		return nil, nil, err
	case len(body) > maxBody:
		return nil, nil, fmt.Errorf("the input is larger than %d MiB", maxBody>>20)
	}
	m := d.message(headers)
	m.Body = body
	return []*longshore.Message{m}, nil, nil
}

// message is what all messages have in common.
func (d *Draft) message(headers longshore.Headers) *longshore.Message {
	m := &longshore.Message{ID: d.ID, ContentType: d.ContentType, Headers: headers.Clone()}
	if d.HasKey {
		m.Key = []byte(d.Key)
	}
	return m
}

// lines reads a message from each line that is not empty.
func (d *Draft) lines(r io.Reader, headers longshore.Headers) (msgs []*longshore.Message, lines []int, err error) {
	var wrong []error
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxBody)
	n := 0
	for in.Scan() && len(wrong) < mostMistakes {
		n++
		line := in.Bytes()
		if len(bytes.TrimSpace(line)) == 0 && (d.JSONLines || len(line) == 0) {
			continue
		}
		m := d.message(headers)
		if d.ID != "" {
			m.ID += "-" + strconv.Itoa(len(msgs)+1)
		}
		if err := d.fill(m, line); err != nil {
			wrong = append(wrong, &LineError{Line: n, Err: err})
		}
		msgs, lines = append(msgs, m), append(lines, n)
	}
	switch {
	case len(wrong) > 0:
		return nil, nil, errors.Join(wrong...)
	case errors.Is(in.Err(), bufio.ErrTooLong):
		return nil, nil, &LineError{Line: n + 1, Err: fmt.Errorf("longer than %d MiB", maxBody>>20)}
	}
	return msgs, lines, in.Err()
}

// fill sets what a line says.
func (d *Draft) fill(m *longshore.Message, line []byte) error {
	if d.JSONLines {
		return ofJSON(line, m)
	}
	if d.KeySeparator == "" {
		m.Body = bytes.Clone(line)
		return nil
	}
	key, body, found := bytes.Cut(line, []byte(d.KeySeparator))
	if !found {
		return fmt.Errorf("no key: %q does not occur", d.KeySeparator)
	}
	m.Key, m.Body = bytes.Clone(key), bytes.Clone(body)
	return nil
}

func parseHeaders(pairs []string) (longshore.Headers, error) {
	var hs longshore.Headers
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("header %.64q is not name=value", p)
		}
		hs.Add(name, value)
	}
	return hs, nil
}

// addJSON adds the headers of a JSON object, sorted by name.
func addJSON(hs *longshore.Headers, text string) error {
	if text == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil || object == nil || dec.More() {
		return errors.New("--headers-json is not a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if n, ok := value.(json.Number); ok {
			value = numberOf(n)
		}
		switch value.(type) {
		case string, bool, int64, float64:
		default:
			return fmt.Errorf("header %.64q in --headers-json is not a string, a number, true or false", name)
		}
		if name == "" {
			return errors.New("a header in --headers-json has no name")
		}
		hs.Add(name, value)
	}
	return nil
}

// numberOf is a whole number if it is one that fits; nil if it fits no number.
func numberOf(n json.Number) any {
	if i, err := n.Int64(); err == nil {
		return i
	}
	if f, err := n.Float64(); err == nil {
		return f
	}
	return nil
}
