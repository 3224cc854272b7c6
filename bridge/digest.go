package bridge

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
)

// digest sums up what an application put into a message: key, body, headers and the
// properties that every transport carries. What bridges, brokers and Longshore itself add is
// left out, so a message has one digest on both sides of a bridge.
func digest(m *longshore.Message) [16]byte {
	h := sha256.New()
	part(h, 'k', m.Key)
	part(h, 'b', m.Body)
	for _, text := range []string{m.ContentType, m.ContentEncoding, m.Type, m.CorrelationID, m.ReplyTo, m.AppID} {
		part(h, 'p', []byte(text))
	}
	for _, header := range m.Headers {
		if !added(header.Name) {
			part(h, 'n', []byte(header.Name))
			value(h, header.Value)
		}
	}
	return [16]byte(h.Sum(nil)[:16])
}

// added tells whether a header is not the application's.
func added(name string) bool {
	return strings.HasPrefix(name, "longshore-") || strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-") ||
		name == "x-death" || name == "x-delivery-count" || name == "x-acquired-count"
}

// part writes one tagged value; nil and empty differ.
func part(h hash.Hash, tag byte, b []byte) {
	n := int64(len(b))
	if b == nil {
		n = -1
	}
	var head [9]byte
	head[0] = tag
	binary.BigEndian.PutUint64(head[1:], uint64(n)) //nolint:gosec // −1 is a length of its own
	h.Write(head[:])
	h.Write(b)
}

// value writes a header's value. Text and bytes are alike, and integers of all sizes, since
// not every broker keeps the difference.
func value(h hash.Hash, v any) {
	switch v := v.(type) {
	case nil:
		part(h, '0', nil)
	case string:
		part(h, 's', []byte(v))
	case []byte:
		part(h, 's', append([]byte{}, v...))
	case bool:
		part(h, 't', strconv.AppendBool(nil, v))
	case float32:
		part(h, 'f', binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(v))))
	case float64:
		part(h, 'f', binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
	case longshore.Decimal:
		part(h, 'd', []byte(v.String()))
	case time.Time:
		part(h, 'T', strconv.AppendInt(nil, v.Unix(), 10))
	case []any:
		part(h, 'a', strconv.AppendInt(nil, int64(len(v)), 10))
		for _, e := range v {
			value(h, e)
		}
	case longshore.Headers:
		part(h, 'm', strconv.AppendInt(nil, int64(len(v)), 10))
		for _, e := range v {
			part(h, 'n', []byte(e.Name))
			value(h, e.Value)
		}
	default:
		part(h, 'i', []byte(longshore.Headers{{Value: v}}.String("")))
	}
}

// keyHash is what the ledger keeps of an ordering key; 0 is "no key".
func keyHash(key []byte) uint64 {
	if key == nil {
		return 0
	}
	h := fnv.New64a()
	h.Write(key)
	return max(h.Sum64(), 1)
}
