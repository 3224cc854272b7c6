package amqptest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"
)

// What is read as a frame is written as the same bytes; anything else is the end of
// the input, or an error that the client is told.
func FuzzFrame(f *testing.F) {
	f.Add(appendMethod(nil, 1, connectionCloseOk, nil))
	f.Add([]byte{frameBody, 0, 1, 0, 0, 0, 1, 'a', frameEnd})
	f.Add([]byte{frameBody, 0, 1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		var buf [64]byte
		got, err := readFrame(bufio.NewReader(bytes.NewReader(b)), buf[:], frameMinSize)
		if err != nil {
			if asReply(err) == nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%x: %v", b, err)
			}
			return
		}
		again, start := beginFrame(nil, got.kind, got.channel)
		again = endFrame(append(again, got.payload...), start)
		if len(again) > frameMinSize || !bytes.HasPrefix(b, again) {
			t.Errorf("%x was read as %x", b, again)
		}
	})
}
