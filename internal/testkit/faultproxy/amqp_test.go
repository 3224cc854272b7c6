package faultproxy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"syscall"
	"testing"

	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
)

// frame builds one AMQP frame.
func frame(kind byte, payload []byte) []byte {
	f := []byte{kind, 0, 1}
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xCE)
}

func method(class, id uint16) []byte {
	payload := binary.BigEndian.AppendUint16(nil, class)
	return frame(1, append(binary.BigEndian.AppendUint16(payload, id), "arguments"...))
}

// session is what a client sends: header, start-ok, tune-ok, open, then a
// heartbeat, channel.open, publish with header and body, queue.declare.
func session() [][]byte {
	return [][]byte{
		[]byte("AMQP\x00\x00\x09\x01"),
		method(10, 11), method(10, 31), method(10, 40),
		frame(8, nil),
		method(20, 10),
		method(60, 40), frame(2, make([]byte, 20)), frame(3, bytes.Repeat([]byte{1}, 100)),
		method(50, 10),
	}
}

func TestCutsAtTheNthMethodAfterTheHandshake(t *testing.T) {
	frames := session()
	for _, tc := range []struct {
		name   string
		cut    faultproxy.MethodCut
		passed int // frames that the server receives
		at     string
		end    error
	}{
		{"first", faultproxy.MethodCut{N: 1}, 5, "channel.open", io.EOF},
		{"second", faultproxy.MethodCut{N: 2}, 6, "basic.publish", io.EOF},
		{"third, content frames are no methods", faultproxy.MethodCut{N: 3}, 9, "queue.declare", io.EOF},
		{"forwarded, only the answer is lost", faultproxy.MethodCut{N: 3, Forward: true}, 10, "queue.declare", io.EOF},
		{"reset", faultproxy.MethodCut{N: 1, Reset: true}, 5, "channel.open", syscall.ECONNRESET},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := newEchoServer(t)
			proxy := faultproxy.New(t, server.addr())
			tc.cut.Connections = 1
			proxy.CutAtMethod(tc.cut)
			conn := dial(t, proxy.Addr())
			// In odd pieces: frames do not arrive at the borders of reads.
			var ended error // a write that fails has used up the socket's error
			for piece := range slices.Chunk(bytes.Join(frames, nil), 7) {
				if _, ended = conn.Write(piece); ended != nil {
					break // the cut came before the last piece
				}
			}
			if ended == nil {
				ended = readEnd(t, conn)
			}
			if !errors.Is(ended, tc.end) && !errors.Is(ended, syscall.EPIPE) {
				t.Fatalf("client saw %v, want %v", ended, tc.end)
			}
			_ = server.awaitEnd(t)
			want := bytes.Join(frames[:tc.passed], nil)
			if got := server.received(); !tc.cut.Reset && !bytes.Equal(got, want) {
				t.Fatalf("server received %d bytes, want %d", len(got), len(want))
			}
			if cuts := proxy.CutMethods(); len(cuts) != 1 || cuts[0].String() != tc.at {
				t.Fatalf("cut at %v, want %s", cuts, tc.at)
			}
			say(t, dial(t, proxy.Addr()), "the next connection is healthy and raw")
		})
	}
}

func TestCutEveryConnectionUntilDisarmed(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	proxy.CutAtMethod(faultproxy.MethodCut{N: 1})
	for range 3 {
		conn := dial(t, proxy.Addr())
		send(t, conn, bytes.Join(session()[:6], nil))
		if err := readEnd(t, conn); !errors.Is(err, io.EOF) {
			t.Fatalf("client saw %v, want EOF", err)
		}
	}
	proxy.CutAtClientMethod(0)
	say(t, dial(t, proxy.Addr()), "healthy")
	if n := proxy.Cuts(); n != 3 {
		t.Fatalf("%d cuts, want 3", n)
	}
}

func TestShortStreamIsForwardedAsFarAsItCame(t *testing.T) {
	server := newEchoServer(t)
	proxy := faultproxy.New(t, server.addr())
	proxy.CutAtMethod(faultproxy.MethodCut{N: 1})
	conn := dial(t, proxy.Addr())
	stream := append([]byte("AMQP\x00\x00\x09\x01"), method(10, 11)[:9]...)
	send(t, conn, stream)
	_ = conn.Close()
	_ = server.awaitEnd(t)
	if got := server.received(); !bytes.Equal(got, stream) {
		t.Fatalf("server received %q, want %q", got, stream)
	}
}
