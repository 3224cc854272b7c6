package interop_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// raw is a message as it lay in a broker, so that its bytes and types are Spring's own.
type raw struct {
	In         string            `json:"in"` // which queue or topic it was in
	Properties map[string]string `json:"properties,omitempty"`
	Key        *blob             `json:"key,omitempty"`
	Headers    []field           `json:"headers,omitempty"`
	Body       *blob             `json:"body,omitempty"`
}

// field is a header. Kind tells its type on the wire; Value is a JSON value that shows it.
type field struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	Value any    `json:"value"`
}

// blob are bytes: text where they are text.
type blob []byte

func (b blob) MarshalText() ([]byte, error) { return []byte(textOf(b)), nil }

func (b *blob) UnmarshalText(text []byte) (err error) {
	*b, err = bytesOf(string(text))
	return err
}

const base64Mark = "base64:"

func textOf(b []byte) string {
	if utf8.Valid(b) && !strings.ContainsFunc(string(b), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' }) {
		return string(b)
	}
	return base64Mark + base64.StdEncoding.EncodeToString(b)
}

func bytesOf(text string) ([]byte, error) {
	if packed, ok := strings.CutPrefix(text, base64Mark); ok {
		return base64.StdEncoding.DecodeString(packed)
	}
	return []byte(text), nil
}

func blobOf(b []byte) *blob {
	if b == nil {
		return nil
	}
	return (*blob)(&b)
}

func goldenFile(mode string) string { return filepath.Join("testdata", mode+".json") }

// golden is what the program wrote in a mode, when it last did.
func golden(t *testing.T, mode string) []raw {
	t.Helper()
	b, err := os.ReadFile(goldenFile(mode))
	if err != nil {
		t.Fatal(err)
	}
	var all []raw
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// keep writes it, where that is asked for.
func keep(t *testing.T, mode string, take func() []raw) {
	t.Helper()
	if os.Getenv("LONGSHORE_WRITE_GOLDEN") == "" {
		return
	}
	all := slices.DeleteFunc(take(), func(r raw) bool { // the trace that fills a frame
		return slices.ContainsFunc(r.Headers, func(f field) bool { text, _ := f.Value.(string); return len(text) > 50_000 })
	})
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile(mode), append(b, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fieldOf describes a value of an AMQP table.
func fieldOf(name string, v any) field {
	f := field{Name: name, Kind: fmt.Sprintf("%T", v), Value: v}
	switch v := v.(type) {
	case nil:
		f.Kind = "nil"
	case []byte:
		f.Value = textOf(v)
	case time.Time:
		f.Value = v.UTC().Format(time.RFC3339)
	case amqp091.Decimal:
		f.Kind, f.Value = "decimal", fmt.Sprintf("%d/%d", v.Value, v.Scale)
	case int8, int16, int32, int64, uint8, float32, float64:
		f.Value = fmt.Sprint(v)
	case []any:
		list := make([]field, len(v))
		for i := range v {
			list[i] = fieldOf("", v[i])
		}
		f.Kind, f.Value = "list", list
	case amqp091.Table:
		f.Kind, f.Value = "table", fieldsOf(v)
	}
	return f
}

// value is the way back.
func (f field) value(t *testing.T) any {
	t.Helper()
	text, _ := f.Value.(string)
	number := func(bits int) int64 {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch f.Kind {
	case "string", "bool":
		return f.Value
	case "nil":
		return nil
	case "[]uint8":
		b, err := bytesOf(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	case "time.Time":
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	case "int8":
		return int8(number(8))
	case "int16":
		return int16(number(16))
	case "int32":
		return int32(number(32))
	case "int64":
		return number(64)
	case "float32", "float64":
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind == "float32" {
			return float32(x)
		}
		return x
	case "decimal":
		var d amqp091.Decimal
		if _, err := fmt.Sscanf(text, "%d/%d", &d.Value, &d.Scale); err != nil {
			t.Fatal(err)
		}
		return d
	case "list":
		list := []any{}
		for _, x := range f.nested(t) {
			list = append(list, x.value(t))
		}
		return list
	case "table":
		return tableOf(t, f.nested(t))
	}
	t.Fatalf("a header of kind %q", f.Kind)
	return nil
}

func (f field) nested(t *testing.T) (fs []field) {
	t.Helper()
	b, err := json.Marshal(f.Value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &fs); err != nil {
		t.Fatal(err)
	}
	return fs
}
