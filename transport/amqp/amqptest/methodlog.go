package amqptest

import (
	"strings"
	"time"
)

// logSize is how many methods the log remembers.
const logSize = 8192

// MethodEvent is a method that the server received.
type MethodEvent struct {
	At      time.Time // of the server's clock
	Conn    uint64    // ConnInfo.ID
	Channel uint16
	Name    string // like "basic.publish"

	method method
	fields []byte
}

// Arg is a field of the method by its name in the specification, such as
// "queue", "delivery-tag" or "multiple": string, bool, uint64 or [Table]; nil
// when the method has no such field.
func (e MethodEvent) Arg(name string) any {
	d := decoder{b: e.fields}
	bit, flags := 0, uint8(0)
	_, fields := e.method.spec()
	for _, f := range strings.Fields(fields) {
		field, kind, _ := strings.Cut(f, ":")
		if kind == "b" {
			if bit%8 == 0 {
				flags = d.u8()
			}
			bit++
		} else {
			bit = 0
		}
		v := d.field(kind, flags, bit)
		if field == name && d.err == nil {
			return v
		}
	}
	return nil
}

func (d *decoder) field(kind string, flags uint8, bit int) any {
	switch kind {
	case "s":
		return d.shortstr()
	case "S":
		return string(d.longstr())
	case "t":
		return decodeTable(d)
	case "w":
		return uint64(d.u16())
	case "l":
		return uint64(d.u32())
	case "L":
		return d.u64()
	}
	return flags&(1<<((bit-1)%8)) != 0
}

// methodLog is a ring of the last methods. Slots keep their memory, so that
// logging costs no allocation.
type methodLog struct {
	ring  []MethodEvent
	count int // ever
}

func (l *methodLog) add(at time.Time, conn uint64, channel uint16, m method, fields []byte) {
	var e *MethodEvent
	if len(l.ring) < logSize {
		l.ring = append(l.ring, MethodEvent{})
		e = &l.ring[len(l.ring)-1]
	} else {
		e = &l.ring[l.count%logSize]
	}
	l.count++
	e.At, e.Conn, e.Channel, e.method = at, conn, channel, m
	if m == connectionStartOk || m == connectionUpdateSecret {
		fields = nil // credentials do not belong into a log
	}
	e.fields = append(e.fields[:0], fields...)
}

// Methods lists the methods received, oldest first: the last 8192 of them since
// the start or the last [Server.ResetMethods]. Credentials are left out.
func (s *Server) Methods() []MethodEvent {
	s.begin()
	defer s.end()
	l := &s.log
	out := make([]MethodEvent, 0, len(l.ring))
	start := 0
	if len(l.ring) == logSize {
		start = l.count % logSize
	}
	for i := range l.ring {
		e := l.ring[(start+i)%len(l.ring)]
		e.Name, e.fields = e.method.String(), append([]byte(nil), e.fields...)
		out = append(out, e)
	}
	return out
}

// ResetMethods forgets the methods received so far.
func (s *Server) ResetMethods() {
	s.begin()
	defer s.end()
	s.log = methodLog{}
}
