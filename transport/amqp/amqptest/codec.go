package amqptest

import (
	"encoding/binary"
	"errors"
)

var errMalformed = errors.New("malformed field")

// decoder reads AMQP fields off a payload. After the first error every read
// returns zero, so that a caller checks once.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n > len(d.b) {
		d.fail(errMalformed)
		return nil
	}
	out := d.b[:n:n]
	d.b = d.b[n:]
	return out
}

func (d *decoder) u8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u16() uint16 {
	if b := d.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) shortstr() string { return string(d.take(int(d.u8()))) }
func (d *decoder) longstr() []byte  { return d.take(int(d.u32())) }

func appendShortstr(b []byte, s string) []byte {
	if len(s) > 255 { // only texts of our own can be longer: cut, never corrupt the frame
		s = s[:255]
	}
	return append(append(b, byte(len(s))), s...)
}

func appendLongstr(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}
