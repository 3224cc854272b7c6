package offsets

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"strings"
)

// The metadata of a commit describes the records done above the committed offset, so that a
// crash with a stuck record does not repeat everything after it:
//
//	"ls2." + base64(crc32c 4 | kind 1 | topic 4 | place 4 | uvarint base | varint epoch | attempts | body)
//
// attempts: uvarint count, then pairs of uvarint (offset − base, attempt) of records that
// were given back and counted.
// kind 1: pairs of uvarint (not done, done), as distances of offsets from base.
// kind 2: one bit for each offset from base.
// kind 3: the offsets that are not done; see openlist.go. Earlier versions do not know
// it and repeat what it covers, so it is written only where the others do not suffice.
//
// A reader checks all of it and ignores what does not fit, so that records are repeated
// rather than skipped: the base, because mirroring copies the text along with a translated
// offset; the topic, because a topic can be recreated under its name; the epoch, because
// offsets are given out again after an unclean election.
//
// The text is written even when nothing is done above the offset: topic and place let the
// next owner tell a position in a deleted topic from one in the topic that has its name now.
const prefix = "ls2."

const (
	kindRuns   = 1
	kindBitmap = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // a constant table

// header is everything before the attempts and the body.
type header struct {
	kind  byte  // format of the body
	mark  Mark  // the log that the text belongs to
	base  int64 // the committed offset that it was written for
	epoch int32 // highest leader epoch of the records that it describes

	// undone yields the offsets of the records that are not done, in ascending order. It
	// is used only where the runs take too much room.
	undone iter.Seq[int64]
}

// Mark distinguishes logs that had the same name.
type Mark struct {
	topic uint32 // hash of the topic's identity
	place uint32 // hash of cluster and name; 0 on brokers that give topics no identity
}

// retried is a record that is not done and was given back.
type retried struct {
	offset  int64 // of a record that has been tried and is not done
	attempt int   // of its next delivery
}

// DefaultBudget stays below the broker's default limit of 4096 UTF-16 units.
const DefaultBudget = 4000

// MaxRetried bounds how many attempts are saved: what is done comes first.
const MaxRetried = 64

// encode writes as many of the runs, from the first on, as fit into budget
// characters, and returns how many records that covers; "" if nothing fits, or there is
// nothing to say.
func encode(runs []span, attempts []retried, h header, budget int) (text string, covered int) {
	head := make([]byte, 0, 64)
	head = binary.LittleEndian.AppendUint32(append(head, kindRuns), h.mark.topic)
	head = binary.LittleEndian.AppendUint32(head, h.mark.place)
	head = binary.AppendUvarint(head, uint64(h.base)) //nolint:gosec // offsets are not negative
	head = binary.AppendVarint(head, int64(h.epoch))
	room := (budget-len(prefix))*3/4 - 4 - len(head) - 1 // bytes without the checksum and the count of attempts
	if room < 0 {
		return "", 0
	}
	var body []byte
	head[0], body, covered = bestBody(runs, h.undone, h.base, room)
	head = appendAttempts(head, attempts, h.base, room-len(body)) // what is done comes first
	if covered == 0 && len(attempts) == 0 && h.mark.place == 0 {
		return "", 0
	}
	raw := make([]byte, 4, 4+len(head)+len(body))
	raw = append(append(raw, head...), body...)
	binary.LittleEndian.PutUint32(raw, crc32.Checksum(raw[4:], castagnoli))
	return prefix + base64.RawURLEncoding.EncodeToString(raw), covered
}

// bestBody is the shortest of those that cover the most. Many short runs are smaller as
// a bitmap, a few open records in a large span as a list of these.
func bestBody(runs []span, undone iter.Seq[int64], base int64, room int) (kind byte, body []byte, covered int) {
	body, covered = runsBody(runs, base, room)
	kind = kindRuns
	if len(runs) == 0 || room == 0 {
		return kind, body, covered
	}
	all := count(runs)
	if bytes := int(min((runs[len(runs)-1].to-base+7)/8, int64(room))); len(body) > bytes || covered < all {
		if bitmap, n := bitmapBody(runs, base, bytes); n > covered || n == covered && len(bitmap) < len(body) {
			kind, body, covered = kindBitmap, bitmap, n
		}
	}
	if covered < all {
		if list, n := undoneBody(runs, undone, base, room); n > covered {
			kind, body, covered = kindUndone, list, n
		}
	}
	return kind, body, covered
}

// appendAttempts writes as many as fit.
func appendAttempts(head []byte, attempts []retried, base int64, room int) []byte {
	attempts = attempts[:min(len(attempts), MaxRetried)]
	var list []byte
	n := 0
	for _, a := range attempts {
		next := binary.AppendUvarint(list, uint64(a.offset-base)) //nolint:gosec // not below the watermark
		next = binary.AppendUvarint(next, uint64(a.attempt))      //nolint:gosec // at least 1
		if len(next) > room {
			break
		}
		list, n = next, n+1
	}
	return append(binary.AppendUvarint(head, uint64(n)), list...) //nolint:gosec // at most MaxRetried
}

func count(runs []span) int {
	n := 0
	for _, r := range runs {
		n += r.n
	}
	return n
}

func runsBody(runs []span, base int64, room int) (body []byte, covered int) {
	at := base
	for _, r := range runs {
		next := binary.AppendUvarint(body, uint64(r.from-at))  //nolint:gosec // ascending
		next = binary.AppendUvarint(next, uint64(r.to-r.from)) //nolint:gosec // ascending
		if len(next) > room {
			break
		}
		body, at, covered = next, r.to, covered+r.n
	}
	return body, covered
}

// bitmapBody sets one bit per offset of each run that fits whole: a run cut in two
// would cover a number of records that is not known here.
func bitmapBody(runs []span, base int64, bytes int) (body []byte, covered int) {
	body = make([]byte, bytes)
	last := 0
	for _, r := range runs {
		from, to := r.from-base, r.to-base
		if to > int64(bytes)*8 {
			break
		}
		for i := from; i < to; i++ {
			body[i/8] |= 1 << (i % 8)
		}
		last, covered = int((to+7)/8), covered+r.n
	}
	return body[:last], covered
}

// Saved is what an earlier owner had done above the committed offset. The zero value knows
// of nothing.
type Saved struct {
	runs     []span        // ascending; nil when all of them are passed
	epoch    int32         // records of a later leader epoch are other records
	next     int           // index of the run that the next question is about: they ascend
	attempts map[int64]int // by offset, of records that are not done
}

// Attempt is the attempt that the earlier owner left a record at; 1 if it left none.
func (s *Saved) Attempt(offset int64, leaderEpoch int32) int {
	if n := s.attempts[offset]; n > 1 && leaderEpoch <= s.epoch {
		return n
	}
	return 1
}

// Has reports whether a record was done before. Records are asked for in ascending order.
func (s *Saved) Has(offset int64, leaderEpoch int32) bool {
	if s.runs == nil {
		return false
	}
	for s.next < len(s.runs) && s.runs[s.next].to <= offset {
		s.next++
	}
	if s.next == len(s.runs) {
		s.runs, s.next = nil, 0
		return false
	}
	return s.runs[s.next].from <= offset && leaderEpoch <= s.epoch
}

// end is the offset after the last record that is done.
func (s *Saved) end() int64 {
	if n := len(s.runs); n > 0 {
		return s.runs[n-1].to
	}
	return 0
}

// Cut forgets everything from an offset on.
func (s *Saved) Cut(from int64) {
	maps.DeleteFunc(s.attempts, func(offset int64, _ int) bool { return offset >= from })
	s.runs = slices.DeleteFunc(s.runs, func(r span) bool { return r.from >= from })
	if n := len(s.runs); n > 0 {
		s.runs[n-1].to = min(s.runs[n-1].to, from)
	}
}

// Decode reads what encode wrote for this log and this offset. Any other text, whoever
// wrote it, is not an error: ok is false and nothing is skipped.
func Decode(text string, mark Mark, base int64) (s Saved, ok bool) {
	h, b, ok := decodeHead(text)
	if !ok || h.mark.topic != mark.topic || h.base != base {
		return s, false
	}
	s.epoch = h.epoch
	if b, ok = s.readAttempts(b, base); !ok {
		return Saved{}, false
	}
	switch ok = false; h.kind {
	case kindRuns:
		s.runs, ok = readRuns(b, base)
	case kindBitmap:
		s.runs, ok = readBitmap(b, base), true
	case kindUndone:
		s.runs, ok = readUndone(b, base)
	}
	if !ok {
		return Saved{}, false
	}
	return s, true
}

// decodeHead reads what is before the attempts.
func decodeHead(text string) (h header, rest []byte, ok bool) {
	text, found := strings.CutPrefix(text, prefix)
	if !found {
		return h, nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < 13 || crc32.Checksum(raw[4:], castagnoli) != binary.LittleEndian.Uint32(raw) {
		return h, nil, false
	}
	h.mark = Mark{topic: binary.LittleEndian.Uint32(raw[5:]), place: binary.LittleEndian.Uint32(raw[9:])}
	b := raw[13:]
	base, n := binary.Uvarint(b)
	if n <= 0 || base > 1<<63-1 {
		return h, nil, false
	}
	b = b[n:]
	epoch, n := binary.Varint(b)
	if n <= 0 || epoch < -1 || epoch > 1<<31-1 {
		return h, nil, false
	}
	h.kind, h.base, h.epoch = raw[4], int64(base), int32(epoch)
	return h, b[n:], true
}

// FromDeletedTopic reports whether an offset was committed in a deleted topic that had the
// name of this one. Only text that was written for this very offset counts: whoever moves a
// position by hand means the topic that exists.
func FromDeletedTopic(text string, mark Mark, offset int64) bool {
	h, _, ok := decodeHead(text)
	return ok && h.base == offset && mark.place != 0 && h.mark.place == mark.place && h.mark.topic != mark.topic
}

// readAttempts returns what follows the attempts.
func (s *Saved) readAttempts(b []byte, base int64) (rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > MaxRetried {
		return nil, false
	}
	for b = b[n:]; count > 0; count-- {
		distance, n := binary.Uvarint(b)
		if n <= 0 || distance > 1<<62 {
			return nil, false
		}
		attempt, k := binary.Uvarint(b[n:])
		if k <= 0 || attempt == 0 || attempt > 1<<30 {
			return nil, false
		}
		b = b[n+k:]
		if s.attempts == nil {
			s.attempts = map[int64]int{}
		}
		s.attempts[base+int64(distance)] = int(attempt)
	}
	return b, true
}

func readRuns(b []byte, at int64) (runs []span, ok bool) {
	const limit = 1 << 62
	for len(b) > 0 {
		skip, n := binary.Uvarint(b)
		if n <= 0 || skip > limit || at > limit-int64(skip) {
			return nil, false
		}
		b = b[n:]
		length, n := binary.Uvarint(b) // 0 too for text that is cut, or a number beyond 64 bits
		if length == 0 || length > limit || at+int64(skip) > limit-int64(length) {
			return nil, false
		}
		b = b[n:]
		from := at + int64(skip)
		at = from + int64(length)
		runs = append(runs, span{from: from, to: at})
	}
	return runs, true
}

func readBitmap(b []byte, base int64) (runs []span) {
	for i := range int64(len(b)) * 8 {
		if b[i/8]&(1<<(i%8)) == 0 {
			continue
		}
		if k := len(runs) - 1; k >= 0 && runs[k].to == base+i {
			runs[k].to++
		} else {
			runs = append(runs, span{from: base + i, to: base + i + 1})
		}
	}
	return runs
}

// MarkOf returns the mark of a topic. Brokers before 2.8 give topics no identity.
func MarkOf(clusterID string, id [16]byte, topic string) Mark {
	if id == [16]byte{} {
		return Mark{topic: crc32.Checksum([]byte(topic), castagnoli)}
	}
	m := Mark{topic: crc32.Checksum(id[:], castagnoli)}
	if clusterID != "" {
		m.place = crc32.Checksum([]byte(clusterID+"/"+topic), castagnoli)
	}
	return m
}

// Range is a run of offsets, the last one not included.
type Range struct{ From, To int64 }

// Done returns the runs of records that were done when the text was written.
func (s *Saved) Done() []Range {
	done := make([]Range, len(s.runs))
	for i, r := range s.runs {
		done[i] = Range{r.from, r.to}
	}
	return done
}
