package amqptest

import (
	"encoding/binary"
	"strconv"
)

// Indexes of the basic properties; the flag bit of index i is 15-i.
const (
	propContentType = iota
	propContentEncoding
	propHeaders
	propDeliveryMode
	propPriority
	propCorrelationID
	propReplyTo
	propExpiration
	propMessageID
	propTimestamp
	propType
	propUserID
	propAppID
	propClusterID
	propCount
)

// properties are the basic properties split but not decoded: each present one
// is its bytes on the wire, so that unchanged data stays identical.
type properties struct {
	field [propCount][]byte
}

func splitProperties(raw []byte) (p properties, err error) {
	d := decoder{b: raw}
	flags := d.u16()
	for i := range propCount {
		if flags&(1<<(15-i)) == 0 {
			continue
		}
		before := d.b
		switch i {
		case propHeaders:
			d.longstr()
		case propDeliveryMode, propPriority:
			d.u8()
		case propTimestamp:
			d.u64()
		default:
			d.take(int(d.u8()))
		}
		if d.err != nil {
			return p, d.err
		}
		n := len(before) - len(d.b)
		p.field[i] = before[:n:n]
	}
	return p, d.err
}

func (p *properties) encode() []byte {
	var flags uint16
	size := 2
	for i, f := range p.field {
		if f != nil {
			flags |= 1 << (15 - i)
			size += len(f)
		}
	}
	b := binary.BigEndian.AppendUint16(make([]byte, 0, size), flags)
	for _, f := range p.field {
		b = append(b, f...)
	}
	return b
}

// text is a short-string property; "" when absent.
func (p *properties) text(i int) string {
	d := decoder{b: p.field[i]}
	if len(d.b) == 0 {
		return ""
	}
	return d.shortstr()
}

func (p *properties) setText(i int, s string) { p.field[i] = appendShortstr(nil, s) }

func (p *properties) octet(i int) uint8 {
	if len(p.field[i]) == 1 {
		return p.field[i][0]
	}
	return 0
}

func (p *properties) headers() (Table, error) {
	if p.field[propHeaders] == nil {
		return nil, nil
	}
	d := decoder{b: p.field[propHeaders]}
	t := decodeTable(&d)
	return t, d.err
}

func (p *properties) setHeaders(t Table) { p.field[propHeaders] = appendTable(nil, t) }

// expiration in milliseconds; set reports whether the property is there.
func (p *properties) expiration() (ms int64, set bool, err error) {
	if p.field[propExpiration] == nil {
		return 0, false, nil
	}
	ms, err = strconv.ParseInt(p.text(propExpiration), 10, 64)
	return ms, true, err
}
