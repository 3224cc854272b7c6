package cluster

import (
	"errors"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// MaxDecompressBatchBytes of franz-go v1.22 (https://github.com/twmb/franz-go/pull/1461)
// bounds one batch. A fetch of a MiB may hold hundreds of batches, each within the limit,
// and the client unpacks all of them. So the batches of one fetch are bounded together:
// what does not fit waits in the log until the rest was polled.

// ErrUnpackLater leaves a batch in the log for the next fetch. The client hands out what
// was unpacked before it.
var ErrUnpackLater = errors.New("enough is unpacked for now")

// Unpacker is a decompressor that stops when enough is unpacked and not yet polled. Fetches
// of several brokers are unpacked side by side, so each broker can add about one limit.
type Unpacker struct {
	inner kgo.Decompressor // the client's own, or the user's
	limit int64            // bytes
	held  atomic.Int64     // bytes unpacked since the last poll
}

// NewUnpacker bounds the decompressor that a client with the user's options has. It makes
// no connection.
func NewUnpacker(given []kgo.Opt, limit int) (*Unpacker, error) {
	bounded := kgo.MaxDecompressBatchBytes(limit)
	cl, err := kgo.NewClient(append([]kgo.Opt{bounded, kgo.DisableClientMetrics()}, given...)...)
	if err != nil { // some options are accepted only with others
		cl, err = kgo.NewClient(bounded)
	}
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	inner, ok := cl.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("the client has no decompressor")
	}
	return &Unpacker{inner: inner, limit: int64(limit)}, nil
}

// Decompress implements [kgo.Decompressor].
func (u *Unpacker) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	if codec == kgo.CodecNone {
		return src, nil
	}
	if u.held.Load() >= u.limit {
		return nil, ErrUnpackLater
	}
	out, err := u.inner.Decompress(src, codec)
	u.held.Add(int64(len(out)))
	return out, err
}

// Polled says that what was unpacked was polled and is counted elsewhere.
func (u *Unpacker) Polled() { u.held.Store(0) }
