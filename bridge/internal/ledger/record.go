package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
)

// Kind says what a record is about.
type Kind uint8

// The kinds. Their numbers are written to disk and never change.
const (
	Taken     Kind = 1 // received from the source, about to be published
	Confirmed Kind = 2 // the target has confirmed it
	Parked    Kind = 3 // set aside on the source's broker
	Looped    Kind = 4 // dropped: it came from the target in the first place
	Released  Kind = 5 // the key's messages are no longer parked behind an earlier one
	Returned  Kind = 6 // confirmed by the place that it came from: the move was taken back
)

// maxID is the length up to which an identity is kept as it is.
const maxID = 255

// Record is one step of one message.
type Record struct {
	Kind   Kind
	Digest [16]byte // of content, which mapping from one broker to another does not change
	From   uint64   // hash of the place it was taken from
	To     uint64   // hash of the place it is for
	Pos    uint64   // position in a partitioned log, which only one message has; 0 = unknown
	Key    uint64   // hash of the ordering key; 0 = none
	Seq    uint64   // of this process, from 1: the order in which messages were taken
	At     int64    // Unix time in nanoseconds
	ID     string   // identity; of one longer than 255 bytes a prefix and its hash
}

// lane is a key on the way from one place to another: routes that share a ledger have keys of
// their own.
type lane struct{ from, to, key uint64 }

func laneOf(r *Record) lane { return lane{r.From, r.To, r.Key} }

// head is the length of a record without its identity: kind, length of the identity, digest,
// from, to, position, key, seq, time.
const head = 1 + 1 + 16 + 6*8

// castagnoli's polynomial is computed by the processor.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// ShortID is the identity as a record keeps it.
func ShortID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return id[:maxID-2*8] + hex16(sum[:8])
}

func hex16(b []byte) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return string(out)
}

// append adds the record's bytes to b: head, identity, checksum.
func (r *Record) append(b []byte) []byte {
	id := ShortID(r.ID)
	from := len(b)
	b = append(b, byte(r.Kind), byte(len(id)))
	b = append(b, r.Digest[:]...)
	b = binary.BigEndian.AppendUint64(b, r.From)
	b = binary.BigEndian.AppendUint64(b, r.To)
	b = binary.BigEndian.AppendUint64(b, r.Pos)
	b = binary.BigEndian.AppendUint64(b, r.Key)
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(r.At)) //nolint:gosec // read back as signed
	b = append(b, id...)
	return binary.BigEndian.AppendUint32(b, checksum(b[from:]))
}

// parse reads the first record of b and returns its length; 0 if b ends in the middle of one
// or its checksum is wrong.
func parse(b []byte) (r Record, n int) {
	if len(b) < head {
		return r, 0
	}
	n = head + int(b[1])
	if len(b) < n+4 || checksum(b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return r, 0
	}
	r.Kind = Kind(b[0])
	copy(r.Digest[:], b[2:18])
	r.From = binary.BigEndian.Uint64(b[18:])
	r.To = binary.BigEndian.Uint64(b[26:])
	r.Pos = binary.BigEndian.Uint64(b[34:])
	r.Key = binary.BigEndian.Uint64(b[42:])
	r.Seq = binary.BigEndian.Uint64(b[50:])
	r.At = int64(binary.BigEndian.Uint64(b[58:])) //nolint:gosec // written from a signed one
	r.ID = string(b[head:n])
	return r, n + 4
}
