package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

func frame(kind byte, channel uint16, payload []byte) []byte {
	f := make([]byte, 7, len(payload)+8)
	f[0] = kind
	binary.BigEndian.PutUint16(f[1:], channel)
	binary.BigEndian.PutUint32(f[3:], uint32(len(payload)))
	return append(append(f, payload...), 0xCE)
}

func methodFrame(channel uint16, id uint32, rest string) []byte {
	return frame(frameMethod, channel, append(binary.BigEndian.AppendUint32(nil, id), rest...))
}

// F-A06: what the broker sends after its answer to a cancel reaches the client
// before that answer.
func TestDeliveriesBehindCancelOkComeBeforeIt(t *testing.T) {
	client, server := net.Pipe()
	c := New(client)
	defer c.Close()
	cancel := methodFrame(3, cancelOk, "\x03tag")
	deliver := append(append(methodFrame(3, 60<<16|60, "\x03tag…"), frame(2, 3, []byte("header"))...), frame(3, 3, bytes.Repeat([]byte("x"), 5000))...)
	other := methodFrame(4, 60<<16|21, "consume-ok of another channel")

	asked := make(chan []byte, 1)
	go func() {
		_, _ = io.ReadFull(server, make([]byte, 8+3)) // the protocol header and the first part of a frame
		_, _ = server.Write(append(append([]byte{}, cancel...), deliver...))
		rest := make([]byte, len(methodFrame(3, 1, "ack"))-3) // the client completes its frame
		_, _ = io.ReadFull(server, rest)
		flow := make([]byte, len(flowFrame(3)))
		_, _ = io.ReadFull(server, flow)
		asked <- flow
		_, _ = server.Write(append(append([]byte{}, methodFrame(3, flowOk, "\x01")...), other...))
		_ = server.Close()
	}()
	ack := methodFrame(3, 1, "ack")
	if _, err := c.Write(append([]byte("AMQP\x00\x00\x09\x01"), ack[:3]...)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(deliver))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(ack[3:]); err != nil { // only now a method may be put in
		t.Fatal(err)
	}
	rest, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	if flow := <-asked; !bytes.Equal(flow, flowFrame(3)) {
		t.Errorf("the broker was asked % x", flow)
	}
	want := append(append(append([]byte{}, deliver...), cancel...), other...)
	if all := append(got, rest...); !bytes.Equal(all, want) {
		t.Errorf("the client read %d bytes in another order than deliver, cancel-ok, others (%d bytes)", len(all), len(want))
	}
}
