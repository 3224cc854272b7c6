package sqstest

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// An answer arrives whatever the sizes of its parts are: a full buffer that was the
// end goes when the server reads on, or closes.
func TestHeldPartsOfAnAnswerArrive(t *testing.T) {
	full, rest := bytes.Repeat([]byte{'a'}, httpBuffer), []byte("rest")
	for name, parts := range map[string][][]byte{
		"small": {rest}, "full": {full}, "full and rest": {full, rest}, "larger": {full, append(full, rest...)}, "two full": {full, full},
	} {
		for _, closes := range []bool{false, true} {
			ours, theirs := net.Pipe()
			c := &wholeConn{Conn: ours}
			done := make(chan error, 1)
			go func() {
				for _, p := range parts {
					if _, err := c.Write(p); err != nil {
						done <- err
						return
					}
				}
				if closes {
					done <- c.Close()
					return
				}
				_, err := c.Read(make([]byte, 1))
				done <- err
			}()
			want := bytes.Join(parts, nil)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(theirs, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s, closes %t: %d bytes arrived of %d: %v", name, closes, len(got), len(want), err)
			}
			if !closes {
				if _, err := theirs.Write([]byte{1}); err != nil {
					t.Error(err)
				}
			}
			if err := <-done; err != nil {
				t.Errorf("%s, closes %t: %v", name, closes, err)
			}
			_ = theirs.Close()
			_ = ours.Close()
		}
	}
}
