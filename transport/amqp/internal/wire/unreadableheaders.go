package wire

import "encoding/binary"

// RabbitMQ passes on the headers that a producer sent as they are. The client library
// takes some of them for a broken frame and ends the connection, and every consumer that
// gets the message afterwards does the same. They are changed in place, in the payload of
// the content header frame, before the client reads it:
//
//   - a number of type L (written by PHP and others) becomes type l, which it is;
//   - arrays and tables nested deeper than 30, or with more than 8192 entries, become
//     bytes with the same content.
//
// Affected: amqp091-go up to 1.16 (type L; the limits since 1.15, readFieldDepth), every
// RabbitMQ. Reference: https://github.com/rabbitmq/amqp091-go/issues/302 and
// https://github.com/rabbitmq/rabbitmq-server/issues/1093.

// Limits of what the client library reads. A message beyond them must not be sent either:
// it would end the connection of whoever receives it.
const (
	// MaxDepth is how deep arrays and tables may nest.
	MaxDepth = 30
	// MaxElements is how many entries an array or a table may have.
	MaxElements = 8192
)

// Properties of a content header are present if their flag is set, in the order of the
// flags; the headers come third.
const (
	flagContentType     = 1 << 15
	flagContentEncoding = 1 << 14
	flagHeaders         = 1 << 13
	fixedHeader         = 14 // class, weight, body size, flags
)

// repairHeader makes the headers in the payload of a content header frame readable.
func repairHeader(b []byte) {
	if len(b) < fixedHeader {
		return
	}
	flags := binary.BigEndian.Uint16(b[fixedHeader-2:])
	b = b[fixedHeader:]
	for _, flag := range []uint16{flagContentType, flagContentEncoding} {
		if flags&flag == 0 {
			continue
		}
		if len(b) == 0 || len(b) < 1+int(b[0]) {
			return
		}
		b = b[1+int(b[0]):]
	}
	if flags&flagHeaders == 0 {
		return
	}
	if table, _, ok := lengthed(b); ok {
		repairTable(table, 0)
	}
}

// lengthed splits off what a length of four bytes announces.
func lengthed(b []byte) (content, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n], b[4+n:], true
}

// repairTable makes a table readable. It returns false where it cannot read on.
func repairTable(b []byte, depth int) bool {
	for n := 0; len(b) > 0; n++ {
		name := 1 + int(b[0])
		if len(b) <= name {
			return false
		}
		if rest := b[name+1:]; n == MaxElements-1 && len(rest) >= 4 {
			b[name] = 'x' // all that follows
			binary.BigEndian.PutUint32(rest, uint32(len(rest)-4))
		}
		rest, ok := repairField(b[name:], depth)
		if !ok {
			return false
		}
		b = rest
	}
	return true
}

// repairArray returns false where it cannot read on.
func repairArray(b []byte, depth int) (ok bool) {
	ok = true
	for len(b) > 0 && ok {
		b, ok = repairField(b, depth)
	}
	return ok
}

// repairField repairs the field at the beginning of b, type first, and returns what
// comes after it.
func repairField(b []byte, depth int) (rest []byte, ok bool) {
	kind, v := b[0], b[1:]
	size := 0
	switch kind {
	case 'V':
	case 't', 'b', 'B':
		size = 1
	case 's', 'u':
		size = 2
	case 'I', 'i', 'f':
		size = 4
	case 'D':
		size = 5
	case 'L':
		b[0] = 'l'
		size = 8
	case 'l', 'd', 'T':
		size = 8
	case 'S', 'x', 'A', 'F':
		content, rest, ok := lengthed(v)
		if !ok {
			return nil, false
		}
		switch {
		case kind == 'S' || kind == 'x':
		case depth >= MaxDepth, kind == 'A' && fields(content) > MaxElements:
			b[0] = 'x'
		case kind == 'A':
			return rest, repairArray(content, depth+1)
		default:
			return rest, repairTable(content, depth+1)
		}
		return rest, true
	default:
		return nil, false
	}
	if len(v) < size {
		return nil, false
	}
	return v[size:], true
}

// fields counts the entries of an array without changing it.
func fields(b []byte) (n int) {
	if len(b) <= MaxElements { // an entry has one byte at least
		return 0
	}
	c := append([]byte(nil), b...)
	for ok := true; len(c) > 0 && ok; n++ {
		c, ok = repairField(c, MaxDepth)
	}
	return n
}
