package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"strings"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// header is the payload of a content header with a content type and these headers.
func header(table []byte) []byte {
	b := make([]byte, 12, 64)
	binary.BigEndian.PutUint16(b, 60)
	b = binary.BigEndian.AppendUint16(b, flagContentType|flagHeaders)
	b = append(b, "\x0atext/plain"...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(table)))
	return append(b, table...)
}

func field(name string, kind byte, value []byte) []byte {
	return append(append([]byte{byte(len(name))}, name...), append([]byte{kind}, value...)...)
}

func long(kind byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content))), content...)
}

// nested is so many arrays in each other, the innermost empty.
func nested(depth int) []byte {
	b := long('A', nil)
	for range depth - 1 {
		b = long('A', b)
	}
	return b
}

// received reads one delivery with these headers through the client library.
func received(t *testing.T, table []byte) (amqp091.Table, error) {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	payload := header(table)
	go func() {
		_, _ = server.Write(frame(frameHeader, 1, payload))
		_ = server.Close()
	}()
	c := New(client)
	defer c.Close()
	var got bytes.Buffer
	_, _ = got.ReadFrom(c)
	return readTable(t, got.Bytes()[frameHead:got.Len()-1])
}

// readTable decodes the headers of a payload as the client library does. It knows the
// types that the library knows, and no more.
func readTable(t *testing.T, payload []byte) (amqp091.Table, error) {
	t.Helper()
	b := payload[fixedHeader:]
	b = b[1+int(b[0]):]
	table, rest, ok := lengthed(b)
	if !ok || len(rest) > 0 {
		t.Fatalf("the header frame is broken: %x", payload)
	}
	return decodeTable(table, 0)
}

func decodeTable(b []byte, depth int) (amqp091.Table, error) {
	out := amqp091.Table{}
	if depth > 32 {
		return nil, amqp091.ErrSyntax
	}
	for n := 0; len(b) > 0; n++ {
		name := string(b[1 : 1+b[0]])
		v, rest, err := decodeField(b[1+b[0]:], depth)
		if err != nil || n >= 8192 {
			return nil, amqp091.ErrSyntax
		}
		out[name], b = v, rest
	}
	return out, nil
}

func decodeField(b []byte, depth int) (any, []byte, error) {
	kind, b := b[0], b[1:]
	switch kind {
	case 'V':
		return nil, b, nil
	case 't', 'b', 'B':
		return b[0], b[1:], nil
	case 's', 'u':
		return int64(binary.BigEndian.Uint16(b)), b[2:], nil
	case 'I', 'i', 'f':
		return int64(binary.BigEndian.Uint32(b)), b[4:], nil
	case 'D':
		return b[:5], b[5:], nil
	case 'l', 'd', 'T':
		return int64(binary.BigEndian.Uint64(b)), b[8:], nil
	}
	content, rest, ok := lengthed(b)
	switch {
	case !ok:
		return nil, nil, amqp091.ErrSyntax
	case kind == 'S' || kind == 'x':
		return content, rest, nil
	case kind == 'F':
		t, err := decodeTable(content, depth+1)
		return t, rest, err
	case kind == 'A' && depth < 32:
		var all []any
		for len(content) > 0 {
			v, more, err := decodeField(content, depth+1)
			if err != nil || len(all) >= 8192 {
				return nil, nil, amqp091.ErrSyntax
			}
			all, content = append(all, v), more
		}
		return all, rest, nil
	}
	return nil, nil, amqp091.ErrSyntax
}

// F-I01: headers that the client library cannot read come through: a number of type L as
// that number, what is nested too deep or has too many entries as bytes.
func TestUnreadableHeadersBecomeReadable(t *testing.T) {
	many := bytes.Repeat([]byte{'V'}, MaxElements+1)
	var crowd []byte
	for range MaxElements + 5 {
		crowd = append(crowd, field("n", 'V', nil)...)
	}
	inner := append([]byte{}, field("l", 'L', binary.BigEndian.AppendUint64(nil, 7))...)
	kinds := append(field("V", 'V', nil), field("t", 't', []byte{1})...)
	kinds = append(kinds, field("b", 'b', []byte{1})...)
	kinds = append(kinds, field("B", 'B', []byte{1})...)
	kinds = append(kinds, field("s", 's', []byte{0, 1})...)
	kinds = append(kinds, field("u", 'u', []byte{0, 1})...)
	kinds = append(kinds, field("I", 'I', []byte{0, 0, 0, 1})...)
	kinds = append(kinds, field("i", 'i', []byte{0, 0, 0, 1})...)
	kinds = append(kinds, field("f", 'f', []byte{0, 0, 0, 1})...)
	kinds = append(kinds, field("D", 'D', []byte{2, 0, 0, 0, 1})...)
	kinds = append(kinds, field("d", 'd', make([]byte, 8))...)
	kinds = append(kinds, field("T", 'T', make([]byte, 8))...)
	kinds = append(kinds, field("S", 'S', long('S', []byte("text"))[1:])...)
	kinds = append(kinds, field("L", 'L', binary.BigEndian.AppendUint64(nil, 9))...)
	for name, c := range map[string]struct {
		table []byte
		want  func(amqp091.Table) bool
	}{
		"type L":        {field("n", 'L', binary.BigEndian.AppendUint64(nil, 5)), func(t amqp091.Table) bool { return t["n"] == int64(5) }},
		"behind others": {kinds, func(t amqp091.Table) bool { return t["L"] == int64(9) && len(t) == 14 }},
		"in a table": {field("in", 'F', long('F', inner)[1:]), func(t amqp091.Table) bool {
			in, ok := t["in"].(amqp091.Table)
			return ok && in["l"] == int64(7)
		}},
		"as deep as allowed": {append([]byte{1, 'a'}, nested(MaxDepth)...), func(t amqp091.Table) bool {
			_, ok := t["a"].([]any)
			return ok
		}},
		"a crowded table":  {crowd, func(t amqp091.Table) bool { _, ok := t["n"].([]byte); return ok }},
		"too deep":         {append([]byte{1, 'a'}, nested(40)...), func(t amqp091.Table) bool { return deepest(t["a"]) <= 32 }},
		"a long array":     {field("a", 'A', long('A', many)[1:]), func(t amqp091.Table) bool { b, ok := t["a"].([]byte); return ok && len(b) == len(many) }},
		"an array in size": {field("a", 'A', long('A', many[1:])[1:]), func(t amqp091.Table) bool { a, ok := t["a"].([]any); return ok && len(a) == MaxElements }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := received(t, c.table)
			if err != nil || !c.want(got) {
				t.Errorf("the client reads %.200v, %v", got, err)
			}
		})
	}
}

func deepest(v any) int {
	a, ok := v.([]any)
	if !ok || len(a) == 0 {
		return 1
	}
	return 1 + deepest(a[0])
}

// What cannot be read is passed on as it is, whatever it is; nothing is read beyond its end.
func TestBrokenHeadersPass(t *testing.T) {
	whole := header(field("name", 'F', long('F', field("l", 'L', make([]byte, 8)))[1:]))
	for n := range len(whole) {
		repairHeader(append([]byte{}, whole[:n]...))
	}
	for kind := range 256 {
		for _, rest := range []string{"", "\x00", "\xff\xff\xff\xff", strings.Repeat("\x00", 9)} {
			repairHeader(header(field("k", byte(kind), []byte(rest))))
		}
	}
}

func FuzzMendHeader(f *testing.F) {
	f.Add(header(field("n", 'L', make([]byte, 8))))
	f.Add(header(append([]byte{1, 'a'}, nested(40)...)))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := len(b)
		repairHeader(b)
		again := append([]byte{}, b...)
		repairHeader(again)
		if len(b) != n || !bytes.Equal(b, again) {
			t.Errorf("repairing twice changes %x to %x", b, again)
		}
	})
}
