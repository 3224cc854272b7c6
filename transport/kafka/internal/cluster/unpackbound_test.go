package cluster

import (
	"bytes"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// F-N23: no more is unpacked than the limit and one batch, until that is polled.
func TestUnpackingWaitsForThePoll(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	u, err := NewUnpacker(nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	pack := func(n int) []byte {
		c, _ := kgo.DefaultCompressor(kgo.ZstdCompression())
		b, _ := c.Compress(&bytes.Buffer{}, make([]byte, n))
		return bytes.Clone(b)
	}
	batch, bomb := pack(limit/2+1), pack(100*limit)
	for i, want := range []error{nil, nil, ErrUnpackLater, ErrUnpackLater} {
		if _, err := u.Decompress(batch, kgo.CodecZstd); !errors.Is(err, want) {
			t.Errorf("batch %d: %v, want %v", i, err, want)
		}
	}
	u.Polled()
	if _, err := u.Decompress(bomb, kgo.CodecZstd); !errors.Is(err, kgo.ErrMaxDecompress) {
		t.Errorf("a bomb: %v", err)
	}
	if out, err := u.Decompress(batch, kgo.CodecZstd); err != nil || len(out) != limit/2+1 {
		t.Errorf("after the poll: %d bytes, %v", len(out), err)
	}
	if out, err := u.Decompress([]byte("plain"), kgo.CodecNone); err != nil || string(out) != "plain" {
		t.Errorf("plain: %q, %v", out, err)
	}
}
