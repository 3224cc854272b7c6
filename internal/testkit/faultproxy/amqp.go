package faultproxy

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	frameMethod     = 1
	frameHeaderSize = 7 // type, channel, payload size
	classConnection = 10
	protocolHeader  = 8 // "AMQP" and the version, once per connection
)

// MethodCut says where to end AMQP connections.
type MethodCut struct {
	// N is the number of the client's method, from 1, at which the connection ends.
	// Methods of the handshake (class connection) are not counted, so that 1 is
	// channel.open. 0 disarms.
	N int
	// Forward sends the method to the server before the cut: it happened there, and
	// the answer is lost. Else the server never sees it.
	Forward bool
	// Connections bounds how many connections accepted from now on are cut; later
	// ones are healthy. 0 means all of them.
	Connections int
	// Reset ends with a RST instead of a FIN.
	Reset bool
}

// Method names an AMQP method by class and number.
type Method struct{ Class, ID uint16 }

// CutAtMethod arms the cut for connections accepted from now on; live ones keep
// what they were accepted with. The client must speak plain AMQP, not TLS.
func (p *Proxy) CutAtMethod(cut MethodCut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.arm = cut
}

// CutAtClientMethod is CutAtMethod with a FIN at the n-th method of every
// connection accepted from now on; 0 ends it.
func (p *Proxy) CutAtClientMethod(n int) { p.CutAtMethod(MethodCut{N: n}) }

// Cuts counts the connections that were cut at a method, or are this moment.
func (p *Proxy) Cuts() int { return len(p.CutMethods()) }

// CutMethods lists the methods at which connections were cut, in order.
func (p *Proxy) CutMethods() []Method {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Method(nil), p.cutAt...)
}

// takeArm hands the armed cut to a new connection; callers hold p.mu.
func (p *Proxy) takeArm() MethodCut {
	arm := p.arm
	if p.arm.Connections > 0 {
		if p.arm.Connections--; p.arm.Connections == 0 {
			p.arm = MethodCut{}
		}
	}
	return arm
}

// frameReader returns one whole frame per call, and at the armed method the end
// of the stream with the cut as its last act: what was sent before still arrives.
func (l *link) frameReader(r *bufio.Reader) func() (chunk, error) {
	seen, greeted := 0, false
	return func() (chunk, error) {
		if !greeted {
			greeted = true
			data, err := readN(r, nil, protocolHeader)
			return chunk{data: data}, err
		}
		frame, err := readFrame(r)
		if err != nil {
			return chunk{data: frame}, err
		}
		method, ok := methodOf(frame)
		if !ok || method.Class == classConnection {
			return chunk{data: frame}, nil
		}
		if seen++; seen < l.arm.N {
			return chunk{data: frame}, nil
		}
		l.noteCut(method) // before the answer can be there: who has it may ask
		last := chunk{then: l.cutNow}
		if l.arm.Forward {
			last.data = frame
		}
		return last, io.EOF
	}
}

func (l *link) noteCut(method Method) {
	l.proxy.mu.Lock()
	l.proxy.cutAt = append(l.proxy.cutAt, method)
	l.proxy.mu.Unlock()
}

func (l *link) cutNow() {
	if l.arm.Reset {
		l.reset()
	} else {
		l.finish()
	}
}

func readFrame(r *bufio.Reader) ([]byte, error) {
	frame, err := readN(r, nil, frameHeaderSize)
	if err != nil {
		return frame, err
	}
	size := binary.BigEndian.Uint32(frame[3:])
	return readN(r, frame, int(size)+1) // payload and the end octet
}

func readN(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	start := len(buf)
	buf = append(buf, make([]byte, n)...)
	got, err := io.ReadFull(r, buf[start:])
	return buf[:start+got], err
}

func methodOf(frame []byte) (Method, bool) {
	if frame[0] != frameMethod || len(frame) < frameHeaderSize+4 {
		return Method{}, false
	}
	payload := frame[frameHeaderSize:]
	return Method{binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:])}, true
}

// String is the name in the AMQP reference for the methods that clients send,
// else the two numbers.
func (m Method) String() string {
	switch m {
	case Method{20, 10}:
		return "channel.open"
	case Method{20, 40}:
		return "channel.close"
	case Method{40, 10}:
		return "exchange.declare"
	case Method{50, 10}:
		return "queue.declare"
	case Method{50, 20}:
		return "queue.bind"
	case Method{60, 10}:
		return "basic.qos"
	case Method{60, 20}:
		return "basic.consume"
	case Method{60, 30}:
		return "basic.cancel"
	case Method{60, 40}:
		return "basic.publish"
	case Method{60, 70}:
		return "basic.get"
	case Method{60, 80}:
		return "basic.ack"
	case Method{60, 90}:
		return "basic.reject"
	case Method{60, 120}:
		return "basic.nack"
	case Method{85, 10}:
		return "confirm.select"
	}
	return fmt.Sprintf("%d.%d", m.Class, m.ID)
}
