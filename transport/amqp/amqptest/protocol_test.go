package amqptest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// raw is a client made by hand, for what a good client never sends.
type raw struct {
	t  *testing.T
	nc net.Conn
	br *bufio.Reader
}

func rawDial(t *testing.T, s *Server) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &raw{t, nc, bufio.NewReader(nc)}
}

// rawOpen goes through the handshake, and opens channel 1.
func rawOpen(t *testing.T, s *Server, heartbeat uint16) *raw {
	t.Helper()
	c := rawDial(t, s)
	c.write([]byte(protocolHeader))
	c.want(connectionStart)
	c.method(0, connectionStartOk, func(b []byte) []byte {
		b = appendTable(b, Table{{"capabilities", Table{{"authentication_failure_close", true}}}})
		b = appendLongstr(appendShortstr(b, "PLAIN"), "\x00guest\x00guest")
		return appendShortstr(b, "en_US")
	})
	c.want(connectionTune)
	c.method(0, connectionTuneOk, func(b []byte) []byte {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, 0), 0)
		return binary.BigEndian.AppendUint16(b, heartbeat)
	})
	c.method(0, connectionOpen, func(b []byte) []byte { return append(appendShortstr(b, "/"), 0, 0) })
	c.want(connectionOpenOk)
	c.method(1, channelOpen, func(b []byte) []byte { return append(b, 0) })
	c.want(channelOpenOk)
	return c
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *raw) method(channel uint16, m method, fields func([]byte) []byte) {
	c.t.Helper()
	c.write(appendMethod(nil, channel, m, fields))
}

func (c *raw) frame(kind uint8, channel uint16, payload []byte) {
	c.t.Helper()
	b, start := beginFrame(nil, kind, channel)
	c.write(endFrame(append(b, payload...), start))
}

func (c *raw) want(m method) *decoder {
	c.t.Helper()
	f, err := readFrame(c.br, nil, 1<<20)
	if err != nil {
		c.t.Fatalf("waiting for method %d.%d: %v", m>>16, m&0xffff, err)
	}
	if got := method(binary.BigEndian.Uint32(f.payload)); f.kind != frameMethod || got != m {
		c.t.Fatalf("got frame type %d method %d.%d, want %d.%d", f.kind, got>>16, got&0xffff, m>>16, m&0xffff)
	}
	return &decoder{b: f.payload[4:]}
}

// closes reads the connection.close or channel.close and its code.
func (c *raw) closes(m method, code uint16) {
	c.t.Helper()
	d := c.want(m)
	if got, text := d.u16(), d.shortstr(); got != code {
		c.t.Errorf("closed with %d %s, want %d", got, text, code)
	}
}

func publishMethod(b []byte) []byte {
	return append(appendShortstr(appendShortstr(append(b, 0, 0), ""), "q"), 0)
}

func contentHeader(size uint64, props ...byte) []byte {
	b := binary.BigEndian.AppendUint64([]byte{0, 60, 0, 0}, size)
	return append(b, props...)
}

func TestForeignProtocolIsToldTheRightOne(t *testing.T) {
	c := rawDial(t, New(t))
	c.write([]byte("GET / HT"))
	got, _ := io.ReadAll(c.br)
	if string(got) != protocolHeader {
		t.Errorf("answered %q", got)
	}
}

func TestBrokenFramesCloseTheConnection(t *testing.T) {
	header := func(c *raw) { c.method(1, basicPublish, publishMethod) }
	for _, test := range []struct {
		name string
		code uint16
		send func(c *raw)
	}{
		{"frame end missing", codeFrameError, func(c *raw) { c.write([]byte{frameMethod, 0, 1, 0, 0, 0, 4, 0, 60, 0, 10, 0}) }},
		{"frame larger than negotiated", codeFrameError, func(c *raw) { c.write([]byte{frameHeader, 0, 1, 0, 3, 0, 0}) }},
		{"channel not open", codeChannelError, func(c *raw) { c.method(7, basicQos, nil) }},
		{"channel opened twice", codeChannelError, func(c *raw) { c.method(1, channelOpen, func(b []byte) []byte { return append(b, 0) }) }},
		{"unknown method", codeCommandInvalid, func(c *raw) { c.method(1, 60<<16|99, nil) }},
		{"method without its fields", codeSyntaxError, func(c *raw) { c.method(1, queueDeclare, nil) }},
		{"content without a method", codeUnexpectedFrame, func(c *raw) { c.frame(frameHeader, 1, contentHeader(0, 0, 0)) }},
		{"body before its header", codeUnexpectedFrame, func(c *raw) { header(c); c.frame(frameBody, 1, []byte("x")) }},
		{"method instead of a header", codeUnexpectedFrame, func(c *raw) { header(c); c.method(1, basicQos, nil) }},
		{"body too long", codeFrameError, func(c *raw) {
			header(c)
			c.frame(frameHeader, 1, contentHeader(1, 0, 0))
			c.frame(frameBody, 1, []byte("too long"))
		}},
		{"malformed header table", codeSyntaxError, func(c *raw) {
			header(c)
			c.frame(frameHeader, 1, contentHeader(0, 0x20, 0, 0, 0, 0, 3, 1, 'a', '?'))
		}},
		{"properties cut short", codeSyntaxError, func(c *raw) {
			header(c)
			c.frame(frameHeader, 1, contentHeader(0, 0x80, 0, 9, 'x'))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := rawOpen(t, New(t), 0)
			test.send(c)
			c.closes(connectionClose, test.code)
			c.method(0, connectionCloseOk, nil)
			if _, err := c.br.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after close-ok: %v, want the end", err)
			}
		})
	}
}

// F-G04: measured on RabbitMQ, both versions. The client must get to read why,
// although it has sent much that nobody reads.
func TestHeadersAboveTheFrameSizeEndTheConnection(t *testing.T) {
	c := rawOpen(t, New(t), 0)
	c.method(1, basicPublish, publishMethod)
	huge := appendTable(nil, Table{{"stack", strings.Repeat("x", 2_000_000)}})
	c.frame(frameHeader, 1, contentHeader(0, append([]byte{0x20, 0}, huge...)...))
	c.closes(connectionClose, codeFrameError)
	c.method(0, connectionCloseOk, nil)
	if _, err := c.br.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after close-ok: %v, want the end", err)
	}
}

func TestSilentClientIsDroppedAndHeartbeatsAreSent(t *testing.T) {
	c := rawOpen(t, New(t), 1)
	start := time.Now()
	beats := 0
	for {
		f, err := readFrame(c.br, nil, 4096)
		if err != nil {
			break
		}
		if f.kind == frameHeartbeat {
			beats++
		}
	}
	if took := time.Since(start); beats == 0 || took < time.Second || took > 4*time.Second {
		t.Errorf("%d heartbeats, dropped after %v", beats, took)
	}
}

func TestEveryFieldTypeSurvivesByteForByte(t *testing.T) {
	all := Table{
		{"t", true}, {"f", false}, {"b", int8(-1)}, {"B", uint8(200)}, {"s", int16(-300)}, {"u", uint16(60000)},
		{"I", int32(-70000)}, {"i", uint32(1 << 31)}, {"l", int64(math.MinInt64)}, {"f", float32(1.5)}, {"d", 2.25},
		{"D", Decimal{2, 12345}}, {"S", "text \x00\xff"}, {"x", []byte{0, 1}}, {"T", time.Unix(1<<40, 0)},
		{"F", Table{{"n", nil}, {"n", "twice"}}}, {"A", []any{int32(1), "a", nil, []any{}}}, {"V", nil}, {"", ""},
	}
	b := appendTable(nil, all)
	d := &decoder{b: b}
	got := decodeTable(d)
	if d.err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("decoded %v, %v", got, d.err)
	}
	if !bytes.Equal(appendTable(nil, got), b) {
		t.Error("encodes to other bytes")
	}
}

func FuzzTable(f *testing.F) {
	f.Add(appendTable(nil, Table{{"a", int32(1)}, {"b", []any{Table{{"c", nil}}}}}))
	f.Add([]byte{0, 0, 0, 9, 1, 'a', 'A', 255, 255, 255, 255, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		d := &decoder{b: b}
		got := decodeTable(d)
		if d.err != nil {
			return
		}
		again := &decoder{b: appendTable(nil, got)}
		if decodeTable(again); again.err != nil {
			t.Errorf("what was decoded does not encode: %v", again.err)
		}
	})
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte{0xff, 0xfc})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := splitProperties(b)
		if err != nil {
			return
		}
		if _, err := splitProperties(p.encode()); err != nil {
			t.Errorf("what was split does not encode: %v", err)
		}
	})
}

func TestLargeBodiesAreSplitIntoFrames(t *testing.T) {
	s := New(t, Config{FrameMax: 4096})
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	body := bytes.Repeat([]byte("0123456789"), 100_000)
	publish(t, ch, "", "q", amqp091.Publishing{Body: body, ContentType: "text/plain"})
	d := next(t, consume(t, ch, "q"))
	if !bytes.Equal(d.Body, body) || d.ContentType != "text/plain" {
		t.Errorf("%d bytes of %q came back", len(d.Body), d.ContentType)
	}
}

func TestConsumerThatDoesNotReadIsNotFed(t *testing.T) {
	s := New(t)
	c := rawOpen(t, s, 0)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	body := make([]byte, 100_000)
	for range 200 {
		publish(t, ch, "", "q", amqp091.Publishing{Body: body})
	}
	_ = ch.Qos(0, 0, false)
	c.method(1, basicConsume, func(b []byte) []byte {
		b = appendShortstr(appendShortstr(append(b, 0, 0), "q"), "tag")
		return appendTable(append(b, 2), nil) // no-ack
	})
	until(t, "deliveries began", func() bool { return ready(s, "q") < 200 })
	if ready(s, "q") == 0 {
		t.Fatal("20 MB were buffered for a consumer that does not read")
	}
	go func() { _, _ = io.Copy(io.Discard, c.br) }()
	until(t, "all delivered once it reads", func() bool { return ready(s, "q") == 0 })
	_ = c.nc.Close()
}

// burst publishes n empty messages in one write.
func (c *raw) burst(n int) {
	c.t.Helper()
	var b []byte
	for range n {
		b = appendMethod(b, 1, basicPublish, publishMethod)
		b = appendContent(b, 1, []byte{0, 0}, nil, 4096)
	}
	c.write(b)
}

func (c *raw) confirm(m method) string {
	c.t.Helper()
	d := c.want(m)
	return strings.Join([]string{itoa(int(d.u64())), itoa(int(d.u8()))}, "/")
}

func TestABurstOfPublishesIsConfirmedByOneAck(t *testing.T) {
	s := New(t)
	c := rawOpen(t, s, 0)
	c.method(1, confirmSelect, func(b []byte) []byte { return append(b, 0) })
	c.want(confirmSelectOk)
	c.burst(5)
	if got := c.confirm(basicAck); got != "5/1" {
		t.Errorf("acked %s, want 5 multiple", got)
	}
	s.NackConfirms(2)
	c.burst(3)
	if got := c.confirm(basicNack) + " " + c.confirm(basicAck); got != "7/1 8/0" {
		t.Errorf("confirmed %s", got)
	}
	s.LoseConfirms(1)
	c.burst(3)
	if got := c.confirm(basicAck) + " " + c.confirm(basicAck); got != "10/0 11/0" {
		t.Errorf("acked %s: multiple would cover the lost one", got)
	}
}

// TestGarbageNeverBringsTheServerDown sends frames with right types and methods
// and random contents: whatever the answer, other connections live on.
func TestGarbageNeverBringsTheServerDown(t *testing.T) {
	s := New(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	bystander := open(t, dial(t, s.URL))
	methods := []method{exchangeDeclare, exchangeDelete, queueDeclare, queueBind, queueUnbind, queuePurge, queueDelete, basicQos,
		basicConsume, basicCancel, basicPublish, basicGet, basicAck, basicReject, basicNack, basicRecover, confirmSelect, channelFlow}
	for range 200 {
		c := rawOpen(t, s, 0)
		for range 20 {
			b := make([]byte, rnd.IntN(40))
			for i := range b {
				b[i] = byte(rnd.IntN(4)) // small numbers: short strings, flags and tags that exist
			}
			var err error
			switch rnd.IntN(8) {
			case 0:
				_, err = c.nc.Write(appendContent(nil, 1, b, b, 4096))
			default:
				m := methods[rnd.IntN(len(methods))]
				_, err = c.nc.Write(appendMethod(nil, 1, m, func(out []byte) []byte { return append(out, b...) }))
			}
			if err != nil {
				break
			}
		}
		_ = c.nc.Close()
	}
	declare(t, bystander, "q", nil)
	until(t, "the others are gone", func() bool { return len(s.Connections()) == 1 })
}
