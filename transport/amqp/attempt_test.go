package amqp_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
)

// onVersions is onBrokers with an embedded broker of each kind.
func onVersions(t *testing.T, f func(t *testing.T, s *site)) {
	onBrokers(t, f)
	for _, like := range []amqptest.Flavor{amqptest.V4_0, amqptest.V4_3} {
		t.Run("embedded "+like.String(), func(t *testing.T) {
			t.Parallel()
			f(t, embeddedSite(t, amqptest.Config{Flavor: like}))
		})
	}
}

// lives is a queue with a dead-letter queue of the broker's own.
type lives struct {
	*site
	queue, dead string
	src         transport.Source
}

func newLives(t *testing.T, s *site, kind amqp.QueueType) *lives {
	t.Helper()
	l := &lives{site: s, dead: s.declare(t, kind, nil)}
	args := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": l.dead}
	l.queue = l.dead + ".source"
	s.declareNamed(t, l.queue, kind, args)
	l.src = amqp.New(s.url, amqp.Config{}).Queue(l.queue, amqp.QueueConfig{Declare: amqp.Declare{Type: kind, Arguments: args}})
	return l
}

// send publishes by hand, whatever the headers say.
func (l *lives) send(t *testing.T, queue, body string, headers amqp091.Table) {
	t.Helper()
	onChannel(t, l.direct, func(ch *amqp091.Channel) error {
		return ch.PublishWithContext(t.Context(), "", queue, true, false, amqp091.Publishing{Body: []byte(body), Headers: headers, DeliveryMode: 2})
	})
}

// get takes one message by hand once it is there, and gives it back if again is true.
func (l *lives) get(t *testing.T, queue string, again bool) (raw amqp091.Delivery) {
	t.Helper()
	onChannel(t, l.direct, func(ch *amqp091.Channel) error {
		var failed error
		eventually(t, "a message in "+queue, func() bool {
			var ok bool
			raw, ok, failed = ch.Get(queue, !again)
			return ok || failed != nil
		})
		if failed != nil || !again {
			return failed
		}
		return ch.Reject(raw.DeliveryTag, true)
	})
	return raw
}

// F-N03: what a message brings along, and what the broker counts besides failures, takes
// no attempt away.
func TestNothingBroughtAlongIsAnAttempt(t *testing.T) {
	onVersions(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			t.Run(string(kind), func(t *testing.T) {
				l := newLives(t, s, kind)
				l.send(t, l.queue, "billion", amqp091.Table{"longshore-attempt": int32(1_000_000_000)})
				l.send(t, l.queue, "third", amqp091.Table{"longshore-attempt": int64(3)})
				l.send(t, l.queue, "counted", amqp091.Table{"x-delivery-count": int64(6), "x-acquired-count": int64(7)})
				l.send(t, l.queue, "died elsewhere", amqp091.Table{"longshore-attempt": int32(4), "x-death": []any{
					amqp091.Table{"queue": "longshore.delay.other.1000", "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{"other"}}}})
				c := open(t, l.src, transport.OpenOptions{})
				for _, d := range c.take(4) {
					if d.Attempt != 1 {
						t.Errorf("%s: a first delivery is attempt %d", d.Body, d.Attempt)
					}
					c.ack(d)
				}
				c.must("Flush", c.Flush)
				c.close()
				l.send(t, l.queue, "looked at", nil)
				for range 3 {
					l.get(t, l.queue, true)
				}
				if d := open(t, l.src, transport.OpenOptions{}).take(1)[0]; d.Attempt != 1 || !d.Origin.Redelivered {
					t.Errorf("given back three times by others, it is attempt %d, redelivered %t", d.Attempt, d.Origin.Redelivered)
				}
			})
		}
	})
}

// F-N03: failures are counted in the queue in which they happen. The count ends with the
// message's stay there, whoever moves it.
func TestAttemptsEndWithTheStayInTheQueue(t *testing.T) {
	onVersions(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Classic, amqp.Quorum} {
			for _, delay := range []time.Duration{0, time.Second} {
				t.Run(fmt.Sprint(kind, delay), func(t *testing.T) {
					l := newLives(t, s, kind)
					l.send(t, l.queue, "poison", nil)
					l.fail(t, delay)
					l.moved(t)
				})
			}
		}
	})
}

// fail lets it fail twice and be given up by the broker's own dead-lettering.
func (l *lives) fail(t *testing.T, delay time.Duration) {
	t.Helper()
	c := open(t, l.src, transport.OpenOptions{})
	defer c.close()
	d := c.take(1)[0]
	for want := 2; want <= 3; want++ {
		if err := d.Nack(t.Context(), delay); err != nil {
			t.Fatal(err)
		}
		if d = c.take(1)[0]; d.Attempt != want {
			t.Errorf("after %d failures it is attempt %d", want-1, d.Attempt)
		}
	}
	// A return that does not count leaves the attempt as it is.
	if err := d.Apply(t.Context(), longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt}); err != nil {
		t.Fatal(err)
	}
	if d = c.take(1)[0]; d.Attempt != 3 {
		t.Errorf("after an uncounted return it is attempt %d, want 3", d.Attempt)
	}
	if err := d.Reject(t.Context(), errors.New("no such order")); err != nil {
		t.Fatal(err)
	}
}

// moved takes it out of the dead-letter queue and puts it back by hand, with all headers
// it has and with only those that are no broker's.
func (l *lives) moved(t *testing.T) {
	t.Helper()
	in := open(t, amqp.New(l.url, amqp.Config{}).Queue(l.dead, amqp.QueueConfig{}), transport.OpenOptions{})
	if d := in.take(1)[0]; d.Attempt != 1 {
		t.Errorf("in the dead-letter queue its first delivery is attempt %d", d.Attempt)
	}
	in.close()
	raw := l.get(t, l.dead, false)
	plain := maps.Clone(raw.Headers)
	for _, name := range []string{"x-death", "x-first-death-queue", "x-first-death-reason", "x-first-death-exchange", "x-last-death-queue",
		"x-last-death-reason", "x-last-death-exchange", "x-delivery-count", "x-acquired-count"} {
		delete(plain, name)
	}
	l.send(t, l.queue, "with all headers", raw.Headers)
	l.send(t, l.queue, "with its own headers", plain)
	c := open(t, l.src, transport.OpenOptions{})
	for _, d := range c.take(2) {
		if d.Attempt != 1 {
			t.Errorf("put back %s it is attempt %d", d.Body, d.Attempt)
		}
		c.ack(d)
	}
}

// A retry that an earlier version has sent is still counted: its header is plain, and it
// comes back through the delay queue.
func TestRetriesOfAnEarlierVersionCount(t *testing.T) {
	onVersions(t, func(t *testing.T, s *site) {
		l := newLives(t, s, amqp.Quorum)
		delayed := "longshore.delay." + l.queue + ".1000"
		s.declareNamed(t, delayed, amqp.Classic, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": l.queue,
			"x-message-ttl": int64(1000), "x-expires": int64(601_000)})
		l.send(t, delayed, "old", amqp091.Table{"longshore-attempt": int32(3)})
		if d := open(t, l.src, transport.OpenOptions{}).take(1)[0]; d.Attempt != 3 {
			t.Errorf("attempt %d, want 3", d.Attempt)
		}
	})
}
