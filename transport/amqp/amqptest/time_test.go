package amqptest

import (
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func virtual(t *testing.T, f Flavor) *Server {
	t.Helper()
	return New(t, Config{VirtualClock: true, Flavor: f})
}

// toDead are the arguments of a queue that dead-letters into "dead".
func toDead(extra amqp091.Table) amqp091.Table {
	args := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
	for k, v := range extra {
		args[k] = v
	}
	return args
}

func TestMessagesExpireByTheVirtualClock(t *testing.T) {
	s := virtual(t, V3_10)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "dead", nil)
	declare(t, ch, "q", toDead(amqp091.Table{"x-message-ttl": int64(time.Hour / time.Millisecond)}))
	publish(t, ch, "", "q", text("hour"))
	until(t, "published", func() bool { return ready(s, "q") == 1 })
	s.Advance(time.Hour - time.Millisecond)
	if ready(s, "q") != 1 {
		t.Fatal("expired a millisecond early")
	}
	s.Advance(time.Millisecond)
	if ready(s, "q") != 0 || ready(s, "dead") != 1 {
		t.Fatal("not expired on time")
	}
	deaths := deathsOf(&message{headers: s.Messages("/", "dead")[0].Headers})
	if at, ok := deaths[0].Get("time").(time.Time); !ok || !at.Equal(s.Now().Truncate(time.Second)) {
		t.Errorf("died at %v, the clock says %v", at, s.Now())
	}
}

// F-G05: what is measured on RabbitMQ, both queue types.
func TestAShortTimeToLiveWaitsBehindALongOne(t *testing.T) {
	for _, kind := range []string{"classic", "quorum"} {
		s := virtual(t, V4_0)
		ch := open(t, dial(t, s.URL))
		declare(t, ch, "q", amqp091.Table{"x-queue-type": kind})
		publish(t, ch, "", "q", amqp091.Publishing{Expiration: "8000"})
		publish(t, ch, "", "q", amqp091.Publishing{Expiration: "500"})
		until(t, "published", func() bool { return ready(s, "q") == 2 })
		s.Advance(7 * time.Second)
		if ready(s, "q") != 2 {
			t.Errorf("%s: the short one left first", kind)
		}
		s.Advance(time.Second)
		if ready(s, "q") != 0 {
			t.Errorf("%s: %d left after 8 s", kind, ready(s, "q"))
		}
	}
}

func TestTimeToLiveZeroReachesAReadyConsumerOnly(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	now := amqp091.Publishing{Expiration: "0", Body: []byte("now")}
	publish(t, ch, "", "q", now)
	declare(t, ch, "q", nil)
	if ready(s, "q") != 0 {
		t.Error("kept although nobody consumes")
	}
	d := consume(t, ch, "q")
	publish(t, ch, "", "q", now)
	_ = next(t, d).Ack(false)
}

func TestUnusedQueueExpires(t *testing.T) {
	s := virtual(t, V3_10)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", amqp091.Table{"x-expires": int32(1000)})
	s.Advance(900 * time.Millisecond)
	declare(t, ch, "q", amqp091.Table{"x-expires": int32(1000)}) // using it postpones
	s.Advance(900 * time.Millisecond)
	if _, err := ch.Consume("q", "tag", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour)
	if _, ok := s.Queue("/", "q"); !ok {
		t.Fatal("expired while it was used")
	}
	if err := ch.Cancel("tag", false); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Second)
	if _, ok := s.Queue("/", "q"); ok {
		t.Error("an unused queue is still there")
	}
}

// F-B03
func TestConsumerTimeoutClosesTheChannel(t *testing.T) {
	for _, f := range []Flavor{V3_10, V4_0} {
		s := virtual(t, f)
		s.SetConsumerTimeout(5 * time.Second)
		conn := dial(t, s.URL)
		ch := open(t, conn)
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		declare(t, ch, "q", amqp091.Table{"x-queue-type": "quorum"})
		publish(t, ch, "", "q", text("m"))
		d := next(t, consume(t, ch, "q"))
		s.Advance(5*time.Second - 1)
		if unacked(s, "q") != 1 {
			t.Fatal("taken back early")
		}
		s.Advance(1)
		if e := next(t, closed); e.Code != 406 {
			t.Errorf("%v: closed with %v", f, e)
		}
		if conn.IsClosed() || ready(s, "q") != 1 {
			t.Errorf("%v: connection closed %t, ready %d", f, conn.IsClosed(), ready(s, "q"))
		}
		if err := d.Ack(false); code(err) != 504 {
			t.Errorf("%v: late ack gave %v", f, err)
		}
	}
}

// F-B03, as RabbitMQ 4.3.6 was measured.
func TestConsumerTimeoutCancelsOn43(t *testing.T) {
	s := virtual(t, V4_3)
	conn := dial(t, s.URL)
	ch := open(t, conn)
	cancelled := ch.NotifyCancel(make(chan string, 1))
	declare(t, ch, "q", amqp091.Table{"x-queue-type": "quorum", "x-single-active-consumer": true, "x-consumer-timeout": int32(1000)})
	publish(t, ch, "", "q", text("1"))
	publish(t, ch, "", "q", text("2"))
	ds := consume(t, ch, "q")
	one, two := next(t, ds), next(t, ds)
	s.Advance(time.Second)
	next(t, cancelled)
	if ready(s, "q") != 2 || unacked(s, "q") != 0 {
		t.Fatalf("ready %d unacked %d after the timeout", ready(s, "q"), unacked(s, "q"))
	}
	if err := one.Ack(false); err != nil {
		t.Error(err)
	}
	open(t, conn) // a synchronous call: the ack has been handled
	_ = ch.Qos(0, 0, false)
	if ready(s, "q") != 2 {
		t.Error("a late ack removed a message")
	}
	_ = two.Ack(false)
	_ = ch.Qos(0, 0, false)
	ch2 := open(t, conn)
	ds = consume(t, ch2, "q")
	none(t, ds, "late acks on the old channel did not freeze the queue")
	_ = ch.Close()
	if d := next(t, ds); !d.Redelivered || d.Headers["x-delivery-count"] != int64(1) {
		t.Errorf("after the old channel closed: redelivered %t, headers %v", d.Redelivered, d.Headers)
	}
}

func TestClassicQueuesHaveNoConsumerTimeoutOn43(t *testing.T) {
	s := virtual(t, V4_3)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	publish(t, ch, "", "q", text("m"))
	next(t, consume(t, ch, "q"))
	s.Advance(24 * time.Hour)
	if unacked(s, "q") != 1 {
		t.Error("taken back")
	}
	_, err := ch.QueueDeclare("c", true, false, false, false, amqp091.Table{"x-consumer-timeout": int32(1000)})
	if code(err) != 406 {
		t.Errorf("x-consumer-timeout on a classic queue: %v, want 406", err)
	}
}

func TestTimeoutOn43HandsOverToTheNextSingleActiveConsumer(t *testing.T) {
	s := virtual(t, V4_3)
	conn := dial(t, s.URL)
	old := open(t, conn)
	declare(t, old, "q", amqp091.Table{"x-queue-type": "quorum", "x-single-active-consumer": true})
	publish(t, old, "", "q", text("m"))
	next(t, consume(t, old, "q"))
	waiting := consume(t, open(t, conn), "q")
	s.Advance(30 * time.Minute) // the default
	d := next(t, waiting)
	if d.Headers["x-delivery-count"] != nil || d.Headers["x-acquired-count"] != int64(1) {
		t.Errorf("a timeout counts towards the limit: %v", d.Headers)
	}
}
