package amqptest

import (
	"bufio"
	"encoding/binary"
	"io"
)

const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
	frameEnd       = 0xCE

	frameOverhead = 8 // type, channel, size, end
	frameMinSize  = 4096
)

type frame struct {
	kind    uint8
	channel uint16
	payload []byte
}

// readFrame reads into buf where the payload fits there; a body frame gets
// memory of its own, because the message keeps it.
func readFrame(r *bufio.Reader, buf []byte, max int) (frame, error) {
	var head [7]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[0], channel: binary.BigEndian.Uint16(head[1:])}
	size := int(binary.BigEndian.Uint32(head[3:]))
	if size > max-frameOverhead {
		return f, hardErr(codeFrameError, "type %d, all octets = <<>>: {frame_too_large,%d,%d}", f.kind, size, max-frameOverhead)
	}
	if f.kind == frameBody || size > cap(buf) {
		f.payload = make([]byte, size)
	} else {
		f.payload = buf[:size]
	}
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return f, err
	}
	end, err := r.ReadByte()
	if err == nil && end != frameEnd {
		err = hardErr(codeFrameError, "type %d, first 16 octets = invalid: {invalid_frame_end_marker,%d}", f.kind, end)
	}
	return f, err
}

// beginFrame and endFrame bracket a payload that is written in place.
func beginFrame(b []byte, kind uint8, channel uint16) ([]byte, int) {
	b = append(b, kind, byte(channel>>8), byte(channel), 0, 0, 0, 0)
	return b, len(b)
}

func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
	return append(b, frameEnd)
}

// appendMethod writes a method frame; fields may be nil for a method without any.
func appendMethod(b []byte, channel uint16, m method, fields func([]byte) []byte) []byte {
	b, start := beginFrame(b, frameMethod, channel)
	b = binary.BigEndian.AppendUint32(b, uint32(m))
	if fields != nil {
		b = fields(b)
	}
	return endFrame(b, start)
}

// appendContent writes the header frame and as many body frames as the
// negotiated frame size asks for.
func appendContent(b []byte, channel uint16, props, body []byte, frameMax int) []byte {
	b, start := beginFrame(b, frameHeader, channel)
	b = append(b, 0, 60, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(len(body)))
	b = endFrame(append(b, props...), start)
	for len(body) > 0 {
		n := min(len(body), frameMax-frameOverhead)
		b, start = beginFrame(b, frameBody, channel)
		b = endFrame(append(b, body[:n]...), start)
		body = body[n:]
	}
	return b
}
