package bridge_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-M04: what a target cannot take is parked at the source with the reason, and its neighbours
// arrive; what only looks as if it could not be sent arrives as it was. On real brokers.
func TestUnsendableMessagesOnEachBroker(t *testing.T) {
	rabbit, kafkas, queues := brokertest.AMQP(t), brokertest.Kafka(t), brokertest.SQS(t)
	onRabbit := func(t *testing.T) string { return queueOn(t, rabbit) }
	onKafka := func(t *testing.T) string { return topicOn(t, kafkas) }
	onSQS := func(t *testing.T) string { return sqsOn(queues, brokertest.Name(t, "bridge")) }
	huge := strings.Repeat("x", 1_200_000)
	long := longshore.Headers{{Name: "big", Value: huge[:200_000]}}
	for name, like := range map[string]struct {
		from, to func(t *testing.T) string
		bad      *longshore.Message
		code     longshore.Code // "" = it arrives
	}{
		"1.2 MB from RabbitMQ to SQS": {onRabbit, onSQS, &longshore.Message{Body: []byte(huge)}, longshore.CodeTooLarge},
		"1.2 MB from Kafka to SQS":    {onKafka, onSQS, &longshore.Message{Body: []byte(huge)}, longshore.CodeTooLarge},
		"illegal characters from RabbitMQ to SQS": {onRabbit, onSQS,
			&longshore.Message{Body: []byte("a\x00\uFFFE"), Headers: longshore.Headers{{Name: "no name, ümlaut", Value: "\x00"}}}, ""},
		"headers above the frame from Kafka to RabbitMQ": {onKafka, onRabbit, &longshore.Message{Body: []byte("b"), Headers: long}, longshore.CodeTooLarge},
		"headers above the frame from SQS to RabbitMQ":   {onSQS, onRabbit, &longshore.Message{Body: []byte("b"), Headers: long}, longshore.CodeTooLarge},
		"no key from RabbitMQ to a compacted topic":      {onRabbit, compacted, &longshore.Message{Body: []byte("b")}, longshore.CodeRefused},
		"no key from SQS to a compacted topic":           {onSQS, compacted, &longshore.Message{Body: []byte("b")}, longshore.CodeRefused},
		"expired on Kafka":                               {onKafka, onRabbit, expired(), longshore.CodeExpired},
		"expired on SQS":                                 {onSQS, onKafka, expired(), longshore.CodeExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := like.from(t), like.to(t)
			dir := t.TempDir()
			from := declared(t, a)
			declared(t, parkedOf(a))
			like.bad.ID = "bad"
			put(t, from, append([]*longshore.Message{like.bad}, number(10, "k")...)...)
			r := run(t, bridge.Config{From: from, To: declared(t, b), Ledger: openLedger(t, dir),
				Container: container.Config{Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}}}})
			want := 10
			if like.code == "" {
				want++
			}
			until(t, "all are moved or parked", func() bool { s := r.Stats(); return int(s.Forwarded) >= want && s.Forwarded+s.Parked >= 11 })
			came := map[string]string{}
			take(t, b, func(d *longshore.Delivery) { came[d.ID] = string(d.Body) }, func() bool { return len(came) == want })
			if body, ok := came["bad"]; ok != (like.code == "") || ok && body != string(like.bad.Body) {
				t.Errorf("it arrived: %v, %q", ok, body)
			}
			stop(t, r)
			if v := verified(t, dir, nil); !v.OK() || v.Confirmed != want || v.Parked != 11-want {
				t.Errorf("%v; missing %v", v, v.Missing)
			}
			if like.code == "" {
				return
			}
			reasons := map[string]string{}
			take(t, parkedOf(a), func(d *longshore.Delivery) { reasons[d.ID] = d.Headers.String(container.HeaderDeadReason) }, func() bool { return len(reasons) > 0 })
			if len(reasons) != 1 || reasons["bad"] != string(like.code) {
				t.Errorf("parked, and why: %v, want %q", reasons, like.code)
			}
		})
	}
}

// expired is a message whose time was over an hour ago; its key is that of others.
func expired() *longshore.Message {
	return &longshore.Message{Body: []byte("e"), Key: []byte("k0"), Timestamp: time.Now().Add(-2 * time.Hour), Expiration: time.Hour}
}

// parkedOf is the parking place of a place.
func parkedOf(raw string) string {
	at, group, log := strings.Cut(raw, "?group=")
	switch name, rest, _ := strings.Cut(raw, "?"); {
	case strings.HasPrefix(raw, "sqs:"):
		return name + "-parked?" + rest
	case log:
		return at + ".parked?group=" + group
	}
	return raw + ".parked"
}

// compacted makes a topic that takes no record without a key.
func compacted(t *testing.T) string {
	t.Helper()
	addrs, name := brokertest.Kafka(t), brokertest.Name(t, "bridge")
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	policy, adm := "compact", kadm.NewClient(cl)
	if resp, err := adm.CreateTopics(t.Context(), 1, 1, map[string]*string{"cleanup.policy": &policy}, name); err != nil || resp.Error() != nil {
		t.Fatal(err, resp.Error())
	}
	until(t, "the topic is known", func() bool {
		topics, err := adm.ListTopics(t.Context(), name)
		return err == nil && topics.Error() == nil && len(topics) == 1
	})
	return "kafka://" + strings.Join(addrs, ",") + "/" + name + "?group=" + name
}

// Identities from a header of other producers: text, bytes and numbers are read, a message
// without one is counted, and messages that share one with other content are told apart.
func TestIdentitiesFromAHeader(t *testing.T) {
	addr := amqptest.New(t).URL
	url := queueOn(t, addr)
	_, queue, _ := strings.Cut(url, "?queue=")
	onQueue(t, addr, func(ch *amqp091.Channel) error {
		for i, id := range []any{"text", []byte("bytes"), int32(7), int64(1 << 40), nil, "constant", "constant", "constant"} {
			headers := amqp091.Table{"x-id": id}
			if id == nil {
				headers = nil
			}
			if err := ch.PublishWithContext(t.Context(), "", queue, true, false, amqp091.Publishing{Headers: headers, Body: fmt.Append(nil, i)}); err != nil {
				return err
			}
		}
		return nil
	})
	to := memory.New(memory.Config{Name: "target"}).Queue("orders", memory.QueueConfig{})
	dir := t.TempDir()
	r := run(t, bridge.Config{From: source(t, url), To: to, Ledger: openLedger(t, dir), Identity: bridge.ByHeader("x-id")})
	until(t, "all are moved", func() bool { return r.Stats().Forwarded == 8 })
	ids := map[string]string{}
	for _, d := range look(t, to) {
		id := d.Received().Headers.String(longshore.HeaderID)
		if other, twice := ids[id]; twice {
			t.Errorf("%s and %s are both %q", d.Body, other, id)
		}
		ids[id] = string(d.Body)
	}
	for id, body := range map[string]string{"text": "0", "bytes": "1", "7": "2", "1099511627776": "3", "": "4", "constant": "5"} {
		if ids[id] != body {
			t.Errorf("%q is the identity of %q: %v", id, ids[id], slices.Sorted(maps.Keys(ids)))
		}
	}
	if s := r.Stats(); s.Anonymous != 1 || s.Renamed != 2 {
		t.Errorf("%+v", s)
	}
	if v := verified(t, dir, to); !v.OK() || v.Anonymous != 1 {
		t.Errorf("%v", v)
	}
}

// F-M01: a chain over queues of one node passes, a ring ends after one lap with each drop listed
// by verify, queues of one name in two vhosts are two places, and a new message with the headers
// of one that came round is not dropped.
func TestChainsRingsAndVhostsOnRabbitMQ(t *testing.T) {
	t.Parallel()
	one, other := brokertest.AMQP(t), brokertest.AMQP(t)
	urls := []string{queueOn(t, one), queueOn(t, one), queueOn(t, one)}
	_, name, _ := strings.Cut(urls[2], "?queue=")
	onQueue(t, other, func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, nil)
		_, parked := ch.QueueDeclare(name+".parked", true, false, false, false, nil)
		return errors.Join(err, parked)
	})
	urls = append(urls, other+"?queue="+name) // the last of the chain has the name of the one before
	dir := t.TempDir()
	l := openLedger(t, dir)
	ring := make([]*bridge.Route, 0, 4)
	for i := range urls {
		ring = append(ring, run(t, bridge.Config{Name: fmt.Sprint("leg-", i), From: source(t, urls[i]), To: source(t, urls[(i+1)%4]), Ledger: l, Identity: bridge.ByMessageID}))
	}
	put(t, source(t, urls[0]), number(20, "k")...)
	until(t, "the ring is quiet after a lap", func() bool { return ring[3].Stats().Looped == 20 })
	for i, r := range ring[:3] {
		if s := r.Stats(); s.Forwarded != 20 || s.Looped+s.Parked != 0 {
			t.Errorf("leg %d: %+v", i, s)
		}
	}
	if v := verified(t, dir, nil); !v.OK() || len(v.Round) != 20 || v.Round[0] != "k-0" {
		t.Errorf("%v: %v", v, v.Round)
	}
	copied := longshore.Headers{{Name: longshore.HeaderID, Value: "k-3"}, {Name: longshore.HeaderVia, Value: "00112233445566778899aabbccddeeff " + strings.Join([]string{"a", "b"}, " ")}}
	put(t, source(t, urls[3]), &longshore.Message{ID: "k-3", Body: []byte("an answer with copied headers"), Headers: copied})
	until(t, "the answer goes one lap", func() bool { return ring[2].Stats().Looped == 1 })
	if s := ring[3].Stats(); s.Forwarded != 1 {
		t.Errorf("%+v", s)
	}
}

// The parking place of a FIFO queue is a FIFO queue, and keeps the order of its groups.
func TestAFIFOQueueParksInAFIFOQueue(t *testing.T) {
	srv := sqstest.New(t)
	srv.CreateQueue(t, "orders.fifo", nil)
	srv.CreateQueue(t, "orders-parked.fifo", nil)
	b := sqs.New(srv.Config())
	from, to := b.Queue("orders.fifo", sqs.QueueConfig{}), memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{})
	put(t, from, number(20, "k")...) // keys k0 to k4
	r := run(t, bridge.Config{From: from, To: &refusing{Source: to, body: "7"}, Ledger: openLedger(t, t.TempDir())})
	until(t, "all are moved or parked", func() bool { return r.Stats().Forwarded == 17 && r.Stats().Parked == 3 })
	stop(t, r)
	var parked []string
	c, err := b.Queue("orders-parked.fifo", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{Window: 10})
	if err != nil {
		t.Fatal(err)
	}
	for len(parked) < 3 {
		ds, err := c.Receive(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		parked = append(parked, texts(ds)...)
	}
	if !slices.Equal(parked, []string{"7", "12", "17"}) {
		t.Errorf("parked: %v", parked)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, like := range [][3]string{{"rabbitmq", "a.b", "a.b.parked"}, {"kafka", "orders.fifo", "orders.fifo.parked"},
		{"aws_sqs", "orders", "orders-parked"}, {"aws_sqs", "orders.fifo", "orders-parked.fifo"}} {
		if got := bridge.Beside(transport.Description{Transport: like[0], Name: like[1]}, "parked"); got != like[2] {
			t.Errorf("next to %q on %s: %q, want %q", like[1], like[0], got, like[2])
		}
	}
}
