package mutex

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"
)

// newID is a UUID of version 7: it begins with the time, which keeps an index small.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16|uint64(b[6])<<8|uint64(b[7]))
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[:8], b[:4])
	hex.Encode(s[9:13], b[4:6])
	hex.Encode(s[14:18], b[6:8])
	hex.Encode(s[19:23], b[8:10])
	hex.Encode(s[24:], b[10:])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// NumericID makes ids of at most 18 digits, for an existing numeric column: 59 random
// bits, so that no number comes back while an old copy waits in a dead-letter queue.
// For [OutboxConfig.NewID].
func NumericID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strconv.FormatUint(binary.BigEndian.Uint64(b[:])>>5, 10)
}
