package sqstest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

type state uint8

const (
	visible  state = iota
	inFlight       // with a consumer
	delayed
	gone // deleted, purged, expired or moved
)

// message is one stored message. A copy handed out by mistake (see
// [Fault.SecondReceipt]) is a message of its own with the same id.
type message struct {
	serial        uint64
	id            string
	body          string
	bodyMD5       string
	attrs         map[string]attribute
	trace         *attribute // AWSTraceHeader
	sent          time.Time
	firstReceived time.Time
	receives      int
	group         string
	dedup         string
	sequence      string
	from          string // ARN of the queue it was moved from
	state         state
	due           time.Time // in flight or delayed: until then
	taken         time.Time // in flight: since then
	index         int       // in the heap of due ones, plus 1
	order         uint64    // place in its FIFO queue
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], rand.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
	return string(out[:])
}

// A receipt names the stored message and the receive it comes from, with a
// check that also ties it to its queue.
func receiptOf(queue string, serial uint64, receives int) string {
	var b [receiptLength]byte
	binary.BigEndian.PutUint64(b[:], serial)
	binary.BigEndian.PutUint32(b[8:], uint32(receives)) //nolint:gosec // small
	binary.BigEndian.PutUint32(b[12:], check(queue, b[:12]))
	return base64.StdEncoding.EncodeToString(b[:])
}

const receiptLength = 16

func readReceipt(queue, receipt string) (serial uint64, receives int, ok bool) {
	var b [receiptLength + 2]byte // as much as a receipt's text can decode to
	if base64.StdEncoding.DecodedLen(len(receipt)) != len(b) {
		return 0, 0, false
	}
	n, err := base64.StdEncoding.Decode(b[:], []byte(receipt))
	if err != nil || n != receiptLength || binary.BigEndian.Uint32(b[12:]) != check(queue, b[:12]) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(b[:]), int(binary.BigEndian.Uint32(b[8:])), true
}

// check is FNV-1a.
func check(queue string, b []byte) uint32 {
	const offset, prime = 2166136261, 16777619
	h := uint32(offset)
	for i := range len(queue) {
		h = (h ^ uint32(queue[i])) * prime
	}
	for _, c := range b {
		h = (h ^ uint32(c)) * prime
	}
	return h
}

// dueHeap orders messages that are in flight or delayed by the end of that.
type dueHeap []*message

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].serial < h[j].serial
	}
	return h[i].due.Before(h[j].due)
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *dueHeap) Push(x any) {
	m, _ := x.(*message)
	*h = append(*h, m)
	m.index = len(*h)
}

func (h *dueHeap) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	m.index = 0
	return m
}
