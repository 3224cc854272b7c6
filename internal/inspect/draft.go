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

// maxBody bounds what is read into memory as one body or line.
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
}

// Read returns the messages; with Lines none for an empty line, else one for the
// whole input. An empty input without Lines is a message with an empty body only
// if it is not the absence of one: see the command's rule for standard input.
func (d Draft) Read(r io.Reader) ([]*longshore.Message, error) {
	headers, err := parseHeaders(d.Headers)
	if err != nil {
		return nil, err
	}
	if err := addJSON(&headers, d.HeadersJSON); err != nil {
		return nil, err
	}
	build := func(body []byte, n int) *longshore.Message {
		m := &longshore.Message{ID: d.ID, Body: body, ContentType: d.ContentType, Headers: headers.Clone()}
		if d.HasKey {
			m.Key = []byte(d.Key)
		}
		if d.Lines && d.ID != "" {
			m.ID += "-" + strconv.Itoa(n)
		}
		return m
	}
	if !d.Lines {
		body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
		switch {
		case err != nil:
			return nil, err
		case len(body) > maxBody:
			return nil, fmt.Errorf("the input is larger than %d MiB", maxBody>>20)
		}
		return []*longshore.Message{build(body, 1)}, nil
	}
	var msgs []*longshore.Message
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxBody)
	for in.Scan() {
		if line := in.Bytes(); len(line) > 0 {
			msgs = append(msgs, build(bytes.Clone(line), len(msgs)+1))
		}
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d is longer than %d MiB", len(msgs)+1, maxBody>>20)
	}
	return msgs, in.Err()
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
