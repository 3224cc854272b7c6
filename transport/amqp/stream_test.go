package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// streamSite is a RabbitMQ behind a proxy with a stream of the test's own.
func streamSite(t *testing.T) (s *site, stream string) {
	t.Helper()
	direct := brokertest.AMQP(t)
	p, through := proxied(t, direct)
	s = &site{direct: direct, url: through, proxy: p}
	stream = s.declare(t, "stream", nil)
	t.Cleanup(func() {
		onChannel(t, direct, func(ch *amqp091.Channel) error { _, err := ch.QueueDelete(stream, false, false, false); return err })
	})
	return s, stream
}

// cut ends the connection, and waits until the consumer has heard of it.
func (s *site) cut(t *testing.T, c *sub) {
	t.Helper()
	s.proxy.CutAll()
	eventually(t, "the consumer is down", func() bool { return c.down() != nil })
}

func bodies(ds []*longshore.Delivery) (all []string) {
	for _, d := range ds {
		all = append(all, string(d.Body))
	}
	return all
}

func from(offset any) amqp.QueueConfig {
	return amqp.QueueConfig{Arguments: amqp091.Table{"x-stream-offset": offset}}
}

// F-B02: a stream remembers nothing of who reads it. After a lost connection it is read
// on at the oldest message that is not done, what is done behind that is not repeated,
// and what was written meanwhile is not passed over, wherever it was to begin.
func TestStreamGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	for _, begin := range []any{"first", "next"} {
		t.Run(fmt.Sprint(begin), func(t *testing.T) {
			t.Parallel()
			s, stream := streamSite(t)
			src := amqp.New(s.url, amqp.Config{}).Queue(stream, from(begin))
			c := open(t, src, transport.OpenOptions{})
			s.publish(t, stream, numbered(5)...)
			ds := c.take(5)
			for i, d := range ds {
				if i != 2 {
					c.ack(d)
				}
			}
			c.must("Flush", c.Flush)
			s.cut(t, c)
			s.publish(t, stream, "later")
			again := reopen(t, src, transport.OpenOptions{})
			if got := bodies(again.take(2)); !slices.Equal(got, []string{"m0002", "later"}) {
				t.Errorf("reopened came %q", got)
			}
		})
	}
}

// Nothing had come when the connection was lost.
func TestStreamThatWasSilentIsReadOn(t *testing.T) {
	t.Parallel()
	s, stream := streamSite(t)
	src := amqp.New(s.url, amqp.Config{}).Queue(stream, from("next"))
	c := open(t, src, transport.OpenOptions{})
	s.cut(t, c)
	s.publish(t, stream, "later")
	if got := bodies(reopen(t, src, transport.OpenOptions{}).take(1)); got[0] != "later" {
		t.Errorf("reopened came %q", got)
	}
}

// A stream that is made anew is read from its first message: its offsets begin anew.
func TestStreamMadeAnew(t *testing.T) {
	t.Parallel()
	s, stream := streamSite(t)
	src := amqp.New(s.url, amqp.Config{}).Queue(stream, from("next"))
	c := open(t, src, transport.OpenOptions{})
	s.publish(t, stream, numbered(5)...)
	c.ack(c.take(5)...)
	onChannel(t, s.direct, func(ch *amqp091.Channel) error { _, err := ch.QueueDelete(stream, false, false, false); return err })
	eventually(t, "the consumer is down", func() bool { return errors.Is(c.down(), longshore.CodeCanceledBy) })
	s.declareNamed(t, stream, "stream", nil)
	s.publish(t, stream, "new")
	if got := bodies(reopen(t, src, transport.OpenOptions{}).take(1)); got[0] != "new" {
		t.Errorf("of the new stream came %q", got)
	}
}

// What is given back comes again, although no stream sends it again by itself; a copy
// that waits at the broker would come to everybody who reads it.
func TestStreamGivesBack(t *testing.T) {
	t.Parallel()
	s, stream := streamSite(t)
	src := amqp.New(s.url, amqp.Config{}).Queue(stream, from("first"))
	s.publish(t, stream, numbered(3)...)
	c := open(t, src, transport.OpenOptions{})
	ds := c.take(3)
	wants(t, "delay", ds[0].Nack(t.Context(), time.Second), longshore.CodeUnsupported, stream, "all who read")
	c.ack(ds[0], ds[2])
	if err := ds[1].Nack(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the consumer ends", func() bool { return errors.Is(c.down(), longshore.CodeState) })
	again := reopen(t, src, transport.OpenOptions{})
	if got := bodies(again.take(1)); got[0] != "m0001" {
		t.Errorf("given back came %q", got)
	}
}

// A queue of which nobody has said that it is a stream: with a second consumer on the
// channel each message would be handled twice.
func TestStreamThatNobodyNamedIsHandledOnce(t *testing.T) {
	t.Parallel()
	s, stream := streamSite(t)
	var handled, twice atomic.Int32
	var seen sync.Map
	c, err := container.New(amqp.New(s.url, amqp.Config{}).Queue(stream, amqp.QueueConfig{}),
		longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			<-time.After(2 * time.Millisecond)
			if _, known := seen.LoadOrStore(string(d.Body), true); known {
				twice.Add(1)
			}
			handled.Add(1)
			return nil
		}), container.Config{Logger: zap.NewNop(), Workers: container.Workers{Min: 40, Max: 40}})
	if err != nil {
		t.Fatal(err)
	}
	containertest.Start(t, c)
	all := numbered(400)
	s.publish(t, stream, all...)
	eventually(t, "all are handled", func() bool { return int(handled.Load()) >= len(all) })
	if n := twice.Load(); n > 0 {
		t.Errorf("%d were handled twice", n)
	}
}

// A queue into which somebody has forwarded messages of streams, with their offsets: none
// is taken for one that was done, although offsets of two streams are the same.
func TestMessagesThatWereForwardedFromStreams(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]amqp.Declare{"declared": {Type: amqp.Classic}, "not declared": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := embeddedSite(t, amqptest.Config{})
			queue := s.declare(t, amqp.Classic, nil)
			onChannel(t, s.direct, func(ch *amqp091.Channel) error {
				for i := range 60 {
					if err := ch.Publish("", queue, true, false, amqp091.Publishing{Body: fmt.Append(nil, i), Headers: amqp091.Table{"x-stream-offset": int64(i % 20)}}); err != nil {
						return err
					}
				}
				return nil
			})
			var handled atomic.Int32
			var seen sync.Map
			c, err := container.New(amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{Declare: d}),
				longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
					if _, known := seen.LoadOrStore(string(d.Body), true); !known {
						handled.Add(1)
					}
					return nil
				}), container.Config{Logger: zap.NewNop(), Reopen: container.Backoff{Initial: 10 * time.Millisecond}})
			if err != nil {
				t.Fatal(err)
			}
			containertest.Start(t, c)
			eventually(t, "all are handled", func() bool { return handled.Load() == 60 })
			eventually(t, "nothing is left", func() bool {
				q, _ := s.embedded.Queue("/", queue)
				return q.Ready+q.Unacked == 0
			})
			if n := c.Stats().Generation; d.Type == amqp.Classic && n != 1 {
				t.Errorf("opened %d times", n)
			}
		})
	}
}
