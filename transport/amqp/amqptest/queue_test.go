package amqptest

import (
	"context"
	"fmt"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

var quorum = amqp091.Table{"x-queue-type": "quorum"}

// F-G01, as measured: which returns count, by version.
func TestWhatCountsTowardsTheDeliveryLimit(t *testing.T) {
	for _, c := range []struct {
		flavor Flavor
		how    string
		counts bool
	}{
		{V3_10, "nack", true}, {V3_10, "reject", true}, {V3_10, "close", true}, {V3_10, "recover", true},
		{V4_0, "nack", true}, {V4_0, "reject", true}, {V4_0, "close", true},
		{V4_3, "nack", false}, {V4_3, "reject", true}, {V4_3, "close", true},
	} {
		s := New(t, Config{Flavor: c.flavor})
		conn := dial(t, s.URL)
		ch := open(t, conn)
		declare(t, ch, "dead", nil)
		declare(t, ch, "q", toDead(amqp091.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(3)}))
		for i := range 10 {
			publish(t, ch, "", "q", text(fmt.Sprint(i)))
		}
		for range 4 {
			ch := open(t, conn)
			ds := consume(t, ch, "q")
			var d amqp091.Delivery
			for range 10 {
				d = next(t, ds)
				if c.how == "reject" {
					_ = ch.Cancel(d.ConsumerTag, false)
					_ = d.Reject(true)
				}
			}
			_ = ch.Cancel(d.ConsumerTag, false)
			switch c.how {
			case "nack":
				_ = d.Nack(true, true)
			case "recover":
				_ = ch.Recover(true) //nolint:staticcheck // deprecated, and still there
			}
			_ = ch.Close()
			until(t, "all back", func() bool { return unacked(s, "q") == 0 })
		}
		want := 0
		if c.counts {
			want = 10
		}
		if got := ready(s, "dead"); got != want {
			t.Errorf("%v, %s: %d dead-lettered after four returns with a limit of 3, want %d", c.flavor, c.how, got, want)
		}
	}
}

func TestDefaultDeliveryLimitOfVersion4(t *testing.T) {
	for _, f := range []Flavor{V3_10, V4_0, V4_3} {
		s := New(t, Config{Flavor: f})
		ch := open(t, dial(t, s.URL))
		declare(t, ch, "q", quorum)
		publish(t, ch, "", "q", text("m"))
		ds := consume(t, ch, "q")
		for range 21 {
			_ = next(t, ds).Reject(true)
		}
		_ = ch.Qos(0, 0, false)
		left := ready(s, "q") + unacked(s, "q")
		if want := map[Flavor]int{V3_10: 1}[f]; left != want {
			t.Errorf("%v: %d messages left after 21 returns, want %d", f, left, want)
		}
	}
}

func TestPrefetchPerConsumerAndPerChannel(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	for range 200 {
		publish(t, ch, "", "q", text("m"))
	}
	_ = ch.Qos(10, 0, false)
	if _, err := ch.Consume("q", "ten", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	_ = ch.Cancel("ten", false)
	_ = ch.Qos(100, 0, false)
	if _, err := ch.Consume("q", "hundred", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "110 unacked: the old ten do not count", func() bool { return unacked(s, "q") == 110 })
	_ = ch.Qos(120, 0, true) // for the channel: the smaller of both holds
	if _, err := ch.Consume("q", "more", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	_ = ch.Qos(120, 0, true)
	if got := unacked(s, "q"); got != 120 {
		t.Errorf("%d unacked with a channel prefetch of 120", got)
	}
	if err := ch.Ack(20, true); err != nil {
		t.Fatal(err)
	}
	until(t, "refilled", func() bool { return unacked(s, "q") == 120 && ready(s, "q") == 60 })
}

func TestSingleActiveConsumerIsFollowedByTheNext(t *testing.T) {
	s := New(t)
	conn := dial(t, s.URL)
	a, b := open(t, conn), open(t, conn)
	declare(t, a, "q", amqp091.Table{"x-single-active-consumer": true})
	first, second := consume(t, a, "q"), consume(t, b, "q")
	publish(t, a, "", "q", text("1"))
	next(t, first)
	none(t, second, "the second consumer got a message")
	q, _ := s.Queue("/", "q")
	if !q.Consumers[0].Active || q.Consumers[1].Active {
		t.Errorf("active: %v", q.Consumers)
	}
	_ = a.Close()
	if d := next(t, second); string(d.Body) != "1" || !d.Redelivered {
		t.Errorf("after the change: %s redelivered %t", d.Body, d.Redelivered)
	}
}

func TestConsumersOfHigherPriorityFirstAndTurnsAmongEquals(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	declare(t, ch, "q", nil)
	_ = ch.Qos(1, 0, false)
	low := consume(t, ch, "q")
	high, err := ch.Consume("q", "", false, false, false, false, amqp091.Table{"x-priority": int32(5)})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, ch, "", "q", text("1"))
	publish(t, ch, "", "q", text("2"))
	if d := next(t, high); string(d.Body) != "1" {
		t.Errorf("high got %s", d.Body)
	}
	if d := next(t, low); string(d.Body) != "2" {
		t.Errorf("low got %s", d.Body)
	}
	ch2 := open(t, dial(t, s.URL))
	declare(t, ch2, "turns", nil)
	a, b := consume(t, ch2, "turns"), consume(t, ch2, "turns")
	for range 4 {
		publish(t, ch2, "", "turns", text("m"))
	}
	for range 2 {
		next(t, a)
		next(t, b)
	}
}

func TestOverflow(t *testing.T) {
	for _, policy := range []string{"reject-publish", "reject-publish-dlx"} {
		s := New(t)
		ch := open(t, dial(t, s.URL))
		_ = ch.Confirm(false)
		declare(t, ch, "dead", nil)
		declare(t, ch, "q", toDead(amqp091.Table{"x-max-length-bytes": int32(5), "x-overflow": policy}))
		var acks []bool
		for _, body := range []string{"abc", "def", "gh"} {
			dc, err := ch.PublishWithDeferredConfirmWithContext(context.Background(), "", "q", false, false, text(body))
			if err != nil {
				t.Fatal(err)
			}
			acks = append(acks, dc.Wait())
		}
		if fmt.Sprint(acks) != "[true false true]" {
			t.Errorf("%s: confirms %v", policy, acks)
		}
		if want := map[string]int{"reject-publish-dlx": 1}[policy]; ready(s, "dead") != want {
			t.Errorf("%s: %d dead-lettered, want %d", policy, ready(s, "dead"), want)
		}
	}
}

func TestExchangesRouteAsTheirTypeSays(t *testing.T) {
	s := New(t)
	ch := open(t, dial(t, s.URL))
	bind := func(queue, key, exchange string, args amqp091.Table) {
		t.Helper()
		declare(t, ch, queue, nil)
		if err := ch.QueueBind(queue, key, exchange, false, args); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"a.b", "a.*", "a.#", "#", "*.b", "*", "#.b", "a.#.c", ""} {
		bind("t "+key, key, "amq.topic", nil)
	}
	bind("d x", "x", "amq.direct", nil)
	bind("f", "", "amq.fanout", nil)
	two := amqp091.Table{"a": int32(1), "b": "x", "x-ignored": true}
	for _, mode := range []string{"all", "any", "all-with-x"} {
		two["x-match"] = mode
		bind("h "+mode, "", "amq.headers", two)
	}
	bind("h there", "", "amq.headers", amqp091.Table{"a": nil})
	for _, c := range []struct {
		exchange, key string
		headers       amqp091.Table
		want          string
	}{
		{"amq.topic", "a.b", nil, "[t # t #.b t *.b t a.# t a.* t a.b]"},
		{"amq.topic", "a", nil, "[t # t * t a.#]"},
		{"amq.topic", "", nil, "[t  t #]"},
		{"amq.topic", "a.x.c", nil, "[t # t a.# t a.#.c]"},
		{"amq.direct", "x", nil, "[d x]"},
		{"amq.direct", "y", nil, "[]"},
		{"amq.fanout", "whatever", nil, "[f]"},
		{"amq.headers", "", amqp091.Table{"a": int64(1), "b": "x"}, "[h all h any h there]"},
		{"amq.headers", "", amqp091.Table{"a": "1", "c": "x"}, "[h there]"},
		{"amq.headers", "", amqp091.Table{"b": "x"}, "[h any]"},
		{"", "f", nil, "[f]"},
	} {
		publish(t, ch, c.exchange, c.key, amqp091.Publishing{Headers: c.headers})
		_ = ch.Qos(0, 0, false)
		got := []string{}
		for _, q := range s.Queues("/") {
			if q.Ready > 0 {
				got = append(got, q.Name)
				s.PurgeQueue("/", q.Name)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s %q %v went to %v, want %s", c.exchange, c.key, c.headers, got, c.want)
		}
	}
}

func TestQueuesThatEndByThemselves(t *testing.T) {
	s := New(t)
	conn, other := dial(t, s.URL), dial(t, s.URL)
	ch := open(t, conn)
	if _, err := ch.QueueDeclare("auto", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	mine, err := ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare("x", "fanout", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(mine.Name, "", "x", false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume("auto", "tag", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	_ = ch.Cancel("tag", false)
	if _, ok := s.Queue("/", "auto"); ok {
		t.Error("the auto-delete queue outlived its last consumer")
	}
	_ = conn.Close()
	if _, ok := s.Queue("/", mine.Name); ok {
		t.Error("the exclusive queue outlived its connection")
	}
	err = open(t, other).ExchangeDeclarePassive("x", "fanout", false, true, false, false, nil)
	if code(err) != 404 {
		t.Errorf("the auto-delete exchange outlived its last binding: %v", err)
	}
}
