package amqp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// F-I01: a foreign client uses every wire type, nested and at its limits. All of
// it is received, and survives a retry.
func TestForeignHeadersOfEveryType(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		nested := any(amqp091.Table{"end": nil})
		for range 12 {
			nested = amqp091.Table{"in": []any{nested, "x"}}
		}
		at := time.Unix(1700000000, 0)
		table := amqp091.Table{"t": true, "b": int8(-1), "B": byte(255), "s": int16(-2), "u": uint16(65535), "I": int32(math.MinInt32), "i": uint32(math.MaxUint32),
			"l": int64(math.MinInt64), "f": float32(1.5), "d": -math.MaxFloat64, "D": amqp091.Decimal{Scale: 255, Value: -1}, "S": "\xc3\x28 \x00 <script>", "x": []byte{0xff, 0},
			"T": at, "V": nil, "A": []any{int32(1), "two", nil, []any{}}, "F": amqp091.Table{}, "nested": nested, "": "no name", "longshore-env": "1.0000.{}"}
		onChannel(t, s.direct, func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(t.Context(), "", queue, true, false, amqp091.Publishing{Headers: table, Expiration: "3600000", Body: []byte("b")})
		})
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
		d := c.take(1)[0]
		for round := range 2 {
			for name, want := range map[string]any{"t": true, "b": int8(-1), "B": byte(255), "s": int16(-2), "u": uint16(65535), "I": int32(math.MinInt32),
				"i": uint32(math.MaxUint32), "l": int64(math.MinInt64), "f": float32(1.5), "d": -math.MaxFloat64, "D": longshore.Decimal{Scale: 255, Value: -1},
				"S": "\xc3\x28 \x00 <script>", "V": nil, "": "no name", "longshore-env": "1.0000.{}"} {
				if got, ok := d.Headers.Get(name); !ok || got != want {
					t.Errorf("round %d: %q is %T %v, want %T %v", round, name, got, got, want, want)
				}
			}
			if got, _ := d.Headers.Get("T"); !at.Equal(as[time.Time](t, got)) {
				t.Errorf("round %d: T is %v", round, got)
			}
			if err := d.Headers.Check(); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			if round == 0 {
				if err := d.Nack(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
				d = c.take(1)[0]
			}
		}
		// And on to a dead-letter destination, as a container does it.
		if err := publish(publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{}), queue, d.Received()); err != nil {
			t.Errorf("publish what was received: %v", err)
		}
		c.ack(d)
		c.ack(c.take(1)...)
		if c.down() != nil {
			t.Errorf("down: %v", c.down())
		}
	})
}

// F-I01: what RabbitMQ passes on and the client would end the connection for. Every
// consumer that gets such a message would end in turn.
func TestHeadersThatTheClientCannotRead(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		deep := []byte{'V'}
		for range 45 {
			deep = append(binary.BigEndian.AppendUint32([]byte{'A'}, uint32(len(deep))), deep...)
		}
		var wide []byte
		for range 9000 {
			wide = append(wide, 't', 1)
		}
		wide = append(binary.BigEndian.AppendUint32([]byte{'A'}, uint32(len(wide))), wide...)
		var many []byte
		for i := range 9000 {
			many = append(many, 4)
			many = append(many, fmt.Sprintf("%04d", i)...)
			many = append(many, 't', 1)
		}
		table := []byte("\x01LL\x00\x00\x00\x00\x00\x00\x00\x07")
		table = append(append(table, "\x04deep"...), deep...)
		table = append(append(table, "\x04wide"...), wide...)
		table = append(table, "\x03endS\x00\x00\x00\x02ok"...)
		publishRaw(t, s.direct, queue, table)
		publishRaw(t, s.direct, queue, many)
		s.publish(t, queue, "neighbour")
		c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
		ds := c.take(3)
		if n, _ := ds[0].Headers.Int("L"); n != 7 || ds[0].Headers.String("end") != "ok" || !ds[0].Headers.Has("deep") || len(ds[0].Headers.String("wide")) != 18000 {
			t.Errorf("received %d headers, L is %d", len(ds[0].Headers), n)
		}
		if n := len(ds[1].Headers); n != 8192 {
			t.Errorf("received %d of 9000 headers, the last ones as bytes", n)
		}
		c.ack(ds...)
		c.must("Flush", c.Flush)
		if c.down() != nil {
			t.Errorf("down: %v", c.down())
		}
	})
}

// rewriter swaps a placeholder in the client's header frames for a table.
type rewriter struct {
	net.Conn
	table []byte
}

var placeholder = []byte("\x00\x00\x00\x0c\x05PLACES\x00\x00\x00\x01x")

func (r rewriter) Write(p []byte) (int, error) {
	i := bytes.Index(p, placeholder)
	if i < 0 {
		return r.Conn.Write(p)
	}
	// The header frame begins at the last type byte 2 whose size reaches the end mark.
	frame := bytes.LastIndex(p[:i], []byte{2, 0, 1})
	out := append([]byte(nil), p[:frame+3]...)
	payload := append([]byte(nil), p[frame+7:i]...)
	payload = append(binary.BigEndian.AppendUint32(payload, uint32(len(r.table))), r.table...)
	size := int(binary.BigEndian.Uint32(p[frame+3:]))
	payload = append(payload, p[i+len(placeholder):frame+7+size]...)
	out = append(binary.BigEndian.AppendUint32(out, uint32(len(payload))), payload...)
	out = append(out, p[frame+7+size:]...)
	if _, err := r.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// publishRaw publishes a message with a header table that the client cannot write.
func publishRaw(t *testing.T, amqpURL, queue string, table []byte) {
	t.Helper()
	conn, err := amqp091.DialConfig(amqpURL, amqp091.Config{Dial: func(network, addr string) (net.Conn, error) {
		c, err := net.Dial(network, addr)
		return rewriter{c, table}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	dc, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp091.Publishing{Headers: amqp091.Table{"PLACE": "x"}, Body: []byte("raw")})
	if err != nil || !dc.Wait() {
		t.Fatalf("publish a raw table: %v", err)
	}
}

// F-I01: every Go kind goes in a documented form or is refused for that message.
func TestEveryGoKindAsHeader(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		b := amqp.New(s.url, amqp.Config{})
		p := publisher(t, b, amqp.PublisherConfig{})
		c := open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
		type named string
		at := time.Date(2024, 1, 2, 3, 4, 5, 678901234, time.UTC)
		for _, v := range []any{math.Inf(1), math.Inf(-1), math.NaN(), float32(math.Inf(1)), uint64(math.MaxUint64), uint(math.MaxUint64), math.MaxInt, at, []any{at, uint64(math.MaxUint64), longshore.Headers{{Name: "b", Value: 1}, {Name: "a", Value: nil}, {Name: "b", Value: "x"}}}} {
			if err := publish(p, queue, &longshore.Message{Headers: longshore.Headers{{Name: "v", Value: v}}}); err != nil {
				t.Errorf("%T: %v", v, err)
				continue
			}
			d := c.take(1)[0]
			got, _ := d.Headers.Get("v")
			if fmt.Sprint(plain(got)) != fmt.Sprint(plain(v)) {
				t.Errorf("%T %v came back as %T %v", v, v, got, got)
			}
			c.ack(d)
		}
		for _, v := range []any{named("x"), struct{}{}, map[string]any{}, make(chan int), &at, complex(1, 1), []string{"x"}, map[string]string{}, func() {}} {
			wants(t, fmt.Sprintf("%T", v), errorOf(publish(p, queue, &longshore.Message{Headers: longshore.Headers{{Name: "v", Value: v}}})), longshore.CodeBadHeader)
		}
		if err := publish(p, queue, body("still open")); err != nil {
			t.Error(err)
		}
	})
}

// plain makes times comparable.
func plain(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case uint64:
		if v <= math.MaxInt64 { // travels as int64
			return int64(v)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

// F-I04, F-I05, F-I07: nil is not empty, names repeat, order holds, bytes are any, a time
// keeps its nanoseconds; through
// a delayed retry, a second publish of what was received, and back.
func TestContentSurvivesEveryHop(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		queue := s.declare(t, amqp.Classic, nil)
		b := amqp.New(s.url, amqp.Config{})
		p := publisher(t, b, amqp.PublisherConfig{})
		c := open(t, b.Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
		r := rand.New(rand.NewPCG(3, 4))
		for i := range 30 {
			m := randomMessage(r, i)
			want := show(m)
			for hop := range 3 {
				if err := publish(p, queue, m); err != nil {
					t.Fatalf("%s: %v", want, err)
				}
				d := c.take(1)[0]
				if got := show(d.Received()); got != want {
					t.Fatalf("hop %d:\n got %s\nwant %s", hop, got, want)
				}
				m = d.Received()
				c.ack(d)
			}
		}
	})
}

func randomMessage(r *rand.Rand, i int) *longshore.Message {
	m := &longshore.Message{ID: fmt.Sprint(i), Timestamp: time.Unix(int64(r.IntN(1<<30)), int64(r.IntN(2)*r.IntN(1e9)))}
	random := func() []byte {
		switch r.IntN(4) {
		case 0:
			return nil
		case 1:
			return []byte{}
		}
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	m.Body, m.Key = random(), random()
	for range r.IntN(6) {
		name := string(rune('a' + r.IntN(4)))
		if r.IntN(8) == 0 {
			name = string(random())
		}
		values := []any{string(random()), random(), nil, r.Int64(), r.Uint64(), r.Float64(), true, time.Unix(int64(r.IntN(1e9)), int64(r.IntN(1e9)))}
		v := values[r.IntN(len(values))]
		if b, ok := v.([]byte); ok && b == nil {
			v = []byte{}
		}
		m.Headers.Add(name, v)
	}
	return m
}

func show(m *longshore.Message) string {
	s := fmt.Sprintf("%s %#v %#v %s", m.ID, m.Key, m.Body, m.Timestamp.UTC().Format(time.RFC3339Nano))
	for _, h := range m.Headers {
		s += fmt.Sprintf(" %q=%T %v", h.Name, plain(h.Value), plain(h.Value))
	}
	return s
}

// What was received can be published again, also what was repaired because it was
// nested too deep for the client: else such a message could never be dead-lettered.
func TestMendedHeadersCanBePublished(t *testing.T) {
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []byte{'A', 'F'} {
			queue := s.declare(t, amqp.Classic, nil)
			deep := []byte{'V'}
			for range 45 {
				if kind == 'F' {
					deep = append([]byte("\x01n"), deep...)
				}
				deep = append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(deep))), deep...)
			}
			publishRaw(t, s.direct, queue, append([]byte("\x04deep"), deep...))
			c := open(t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{}), transport.OpenOptions{})
			d := c.take(1)[0]
			p := publisher(t, amqp.New(s.url, amqp.Config{}), amqp.PublisherConfig{})
			if err := publish(p, queue, d.Received().Clone()); err != nil {
				t.Errorf("%c: publish: %v", kind, err)
				continue
			}
			c.ack(d)
			again := c.take(1)[0]
			if !again.Headers.Has("deep") {
				t.Errorf("%c: headers %v", kind, again.Headers)
			}
			c.ack(again)
		}
	})
}
