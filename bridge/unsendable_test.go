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
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// F-M04: what a target cannot take is parked at the source with the reason, and its neighbours
// arrive; what only looks as if it could not be sent arrives as it was.
func TestUnsendableMessagesOnEachBroker(t *testing.T) {
	huge := strings.Repeat("x", 1_200_000)
	for name, like := range map[string]struct {
		target func(t *testing.T) string
		bad    *longshore.Message
		code   longshore.Code // "" = it arrives
	}{
		"1.2 MB to SQS": {func(t *testing.T) string { return sqsOn(sqstest.New(t).URL, "orders") }, &longshore.Message{Body: []byte(huge)}, longshore.CodeTooLarge},
		"illegal characters to SQS": {func(t *testing.T) string { return sqsOn(sqstest.New(t).URL, "orders") },
			&longshore.Message{Body: []byte("a\x00\uFFFE"), Headers: longshore.Headers{{Name: "no name, ümlaut", Value: "\x00"}}}, ""},
		"headers above the frame to RabbitMQ": {func(t *testing.T) string { return queueOn(t, brokertest.AMQP(t)) },
			&longshore.Message{Body: []byte("b"), Headers: longshore.Headers{{Name: "big", Value: huge[:200_000]}}}, longshore.CodeTooLarge},
		"a negative expiration to RabbitMQ": {func(t *testing.T) string { return queueOn(t, amqptest.New(t).URL) },
			&longshore.Message{Body: []byte("b"), Expiration: -time.Second}, longshore.CodeRefused},
		"no key to a compacted topic": {func(t *testing.T) string { return compacted(t) }, &longshore.Message{Body: []byte("b")}, longshore.CodeRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := like.target(t)
			src := memory.New(memory.Config{Name: "source"})
			from := src.Queue("orders", memory.QueueConfig{})
			src.Declare("orders.parked")
			dir := t.TempDir()
			r := run(t, bridge.Config{From: from, To: declared(t, raw), Ledger: openLedger(t, dir), Identity: bridge.ByMessageID,
				Container: container.Config{Redelivery: container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: time.Millisecond}}}})
			like.bad.ID = "bad"
			put(t, from, append(number(10, "k"), like.bad)...)
			want := 10
			if like.code == "" {
				want++
			}
			parked := src.Queue("orders.parked", memory.QueueConfig{})
			until(t, "all are moved or parked", func() bool { s := r.Stats(); return s.Forwarded+int64(len(look(t, parked))) == 11 })
			if s := r.Stats(); int(s.Forwarded) != want || int(s.Parked) != 11-want {
				t.Errorf("%+v", s)
			}
			for _, d := range look(t, parked) {
				if why := d.Headers.String(container.HeaderDeadReason); d.ID != "bad" || why != string(like.code) {
					t.Errorf("message %q is parked for %q, want %q", d.ID, why, like.code)
				}
			}
			came := map[string]string{}
			take(t, raw, func(d *longshore.Delivery) { came[d.Headers.String(longshore.HeaderID)] = string(d.Body) }, func() bool { return len(came) == want })
			if body, ok := came["bad"]; ok != (like.code == "") || ok && body != string(like.bad.Body) {
				t.Errorf("it arrived: %v, %q", ok, body)
			}
		})
	}
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
	policy := "compact"
	if resp, err := kadm.NewClient(cl).CreateTopics(t.Context(), 1, 1, map[string]*string{"cleanup.policy": &policy}, name); err != nil || resp.Error() != nil {
		t.Fatal(err, resp.Error())
	}
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
