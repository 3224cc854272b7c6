package offsets

import (
	"encoding/binary"
	"iter"
	"math"
	mathbits "math/bits"
)

// The third format lists the offsets that are NOT done, as Golomb–Rice codes of their
// distances. A few records that wait for a retry among tens of thousands of done ones take
// about as many bits as their positions hold information:
// 3,600 of 65,536 fit into 2,800 bytes, where runs take 7,200 and a bitmap 8,192.
//
//	uvarint (end − base) | shift 1 | uvarint count | count × (unary distance>>shift, shift low bits)
//
// A distance is that to the previous offset, less one; the first is from base. Bits fill
// each byte from the lowest. Every other offset below end is done.
const kindUndone = 3

const (
	// undoneHead is the most that comes before the codes.
	undoneHead = 9 + 1 + 5
	// maxShift is more than the distance between two offsets of a log can need.
	maxShift = 62
)

// undoneBits is the most that the codes of open offsets within a span take with the
// best shift, however they are spread. It does not grow while any of them is done, or
// while the span shrinks.
func undoneBits(open int, span int64) (bits int64, shift int) {
	bits = math.MaxInt64
	// One more bit of shift costs a bit for each and saves half of span>>shift: the best
	// is about where the two are equal.
	about := mathbits.Len64(uint64(span / int64(max(open, 1)))) //nolint:gosec // not negative
	for s := max(about-3, 0); s <= min(about+1, maxShift-1); s++ {
		if n := int64(open)*int64(1+s) + span>>s; n < bits { // of two that are equal either will do: the text names its shift
			bits, shift = n, s
		}
	}
	return bits, shift
}

// undoneBody lists the offsets that are not done, up to the end of the last run, and stops
// before what does not fit into room bytes.
func undoneBody(runs []span, undone iter.Seq[int64], base int64, room int) (body []byte, covered int) {
	if len(runs) == 0 || undone == nil || room <= undoneHead {
		return nil, 0
	}
	end := runs[len(runs)-1].to
	open := 0
	for o := range undone {
		if o >= end || open > room*8 { // each takes a bit at least
			break
		}
		open++
	}
	_, shift := undoneBits(open, end-base)
	w := bitWriter{room: (room - undoneHead) * 8}
	count, last := 0, base-1
	for o := range undone {
		if o >= end {
			break
		}
		if !w.rice(uint64(o-last-1), shift) { //nolint:gosec // ascending
			end = o
			break
		}
		count, last = count+1, o
	}
	for _, r := range runs {
		if r.to <= end {
			covered += r.n
		}
	}
	body = binary.AppendUvarint(body, uint64(end-base)) //nolint:gosec // not below base
	body = append(body, byte(shift))
	body = binary.AppendUvarint(body, uint64(count)) //nolint:gosec // not negative
	return append(body, w.bytes...), covered
}

// readUndone is the inverse: the runs between the offsets that are listed.
func readUndone(b []byte, base int64) (runs []span, ok bool) {
	const limit = 1 << 62
	length, n := binary.Uvarint(b)
	if n <= 0 || length > limit || base > limit-int64(length) || len(b) == n || b[n] >= maxShift {
		return nil, false
	}
	shift := int(b[n])
	b = b[n+1:]
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)-n)*8 { // each takes a bit at least
		return nil, false
	}
	r := bitReader{bytes: b[n:]}
	at, end := base, base+int64(length)
	for ; count > 0; count-- {
		distance, ok := r.rice(shift)
		if !ok || distance > uint64(end-at) { //nolint:gosec // at is not above end
			return nil, false
		}
		open := at + int64(distance) //nolint:gosec // within the span
		if open >= end {
			return nil, false
		}
		if open > at {
			runs = append(runs, span{from: at, to: open})
		}
		at = open + 1
	}
	if at < end {
		runs = append(runs, span{from: at, to: end})
	}
	return runs, true
}

// bitWriter appends bits, as many as there is room for.
type bitWriter struct {
	bytes []byte // what is written
	n     int    // bits written
	room  int    // bits in all
}

// rice writes a number whole, or nothing.
func (w *bitWriter) rice(v uint64, shift int) bool {
	unary := v >> shift
	if left := w.room - w.n - 1 - shift; left < 0 || unary > uint64(left) {
		return false
	}
	for ; unary > 0; unary-- {
		w.bit(1)
	}
	w.bit(0)
	for i := range shift {
		w.bit(byte(v >> i & 1))
	}
	return true
}

func (w *bitWriter) bit(b byte) {
	if w.n%8 == 0 {
		w.bytes = append(w.bytes, 0)
	}
	w.bytes[w.n/8] |= b << (w.n % 8)
	w.n++
}

// bitReader reads them back.
type bitReader struct {
	bytes []byte // what is read
	n     int    // bits read
}

func (r *bitReader) rice(shift int) (v uint64, ok bool) {
	var unary uint64
	for {
		b, ok := r.bit()
		if !ok {
			return 0, false
		}
		if b == 0 {
			break
		}
		unary++
	}
	if unary > math.MaxUint64>>1>>shift {
		return 0, false
	}
	v = unary << shift
	for i := range shift {
		b, ok := r.bit()
		if !ok {
			return 0, false
		}
		v |= uint64(b) << i
	}
	return v, true
}

func (r *bitReader) bit() (byte, bool) {
	if r.n/8 >= len(r.bytes) {
		return 0, false
	}
	b := r.bytes[r.n/8] >> (r.n % 8) & 1
	r.n++
	return b, true
}
