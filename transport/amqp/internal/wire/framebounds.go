package wire

import "encoding/binary"

// frameBounds follows the client's outgoing bytes, so that a frame of ours can go between
// two of its frames and never into one.
type frameBounds struct {
	left int    // bytes of the current frame that are still to come
	head []byte // what has come of the next frame's head, which holds its size
}

// at reports whether the stream is between two frames.
func (b *frameBounds) at() bool { return b.left == 0 && len(b.head) == 0 }

// pass takes note of bytes that were written.
func (b *frameBounds) pass(p []byte) {
	for len(p) > 0 {
		if b.left > 0 {
			k := min(b.left, len(p))
			b.left -= k
			p = p[k:]
			continue
		}
		k := min(frameOverhead-1-len(b.head), len(p))
		b.head = append(b.head, p[:k]...)
		p = p[k:]
		if len(b.head) == frameOverhead-1 {
			b.left = int(binary.BigEndian.Uint32(b.head[3:])) + 1
			b.head = b.head[:0]
		}
	}
}
