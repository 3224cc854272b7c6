package dlq_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/dlq"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// delivery has headers given as name, value, name, value …
func delivery(from string, headers ...any) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), nil, 0)
	d.Body = []byte("body")
	d.Origin.Subscription = &longshore.Subscription{Transport: from}
	for i := 0; i < len(headers); i += 2 {
		d.Headers.Add(headers[i].(string), headers[i+1]) //nolint:errcheck // written so
	}
	return d
}

func bigEndian(n int, v uint64) string {
	b := make([]byte, 8)
	binary.BigEndian.PutUint64(b, v)
	return string(b[8-n:])
}

func TestFactsOfEveryWriter(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spring := delivery("kafka", "kafka_dlt-original-topic", "orders", "kafka_dlt-original-topic", "orders-retry", "kafka_dlt-original-partition", bigEndian(4, 3),
		"kafka_dlt-original-offset", bigEndian(8, 99), "kafka_dlt-exception-fqcn", "org.springframework.kafka.listener.ListenerExecutionFailedException",
		"kafka_dlt-exception-cause-fqcn", "java.lang.IllegalStateException", "kafka_dlt-exception-message", "no stock", "kafka_dlt-original-consumer-group", "billing")
	spring.Timestamp = at
	redriven := delivery("aws_sqs")
	redriven.SetNative(&types.Message{Attributes: map[string]string{"DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:1:orders"}})
	for name, c := range map[string]struct {
		d    *longshore.Delivery
		want dlq.Facts
	}{
		"nothing": {delivery("kafka", "a", "b"), dlq.Facts{}},
		"ours": {delivery("rabbitmq", "longshore-dead-reason", "panic", "longshore-dead-error", "boom", "longshore-dead-attempts", int64(5),
			"longshore-dead-at", at.Format(time.RFC3339Nano), "longshore-dead-source", "a/b", "longshore-dead-by", "orders@h", "longshore-dead-replays", int64(2)),
			dlq.Facts{Who: "longshore", Reason: "panic", Error: "boom", Attempts: 5, At: at, Source: "a/b", To: "a%2Fb", By: "orders@h", Replays: 2}},
		"ours on Kafka": {delivery("kafka", "longshore-dead-reason", "handler", "longshore-dead-attempts", "3", "longshore-dead-source", "orders"),
			dlq.Facts{Who: "longshore", Reason: "handler", Attempts: 3, Source: "orders", To: "orders"}},
		"RabbitMQ": {delivery("rabbitmq", "x-death", []any{
			longshore.Headers{{Name: "queue", Value: "orders"}, {Name: "reason", Value: "delivery_limit"}, {Name: "time", Value: at}, {Name: "count", Value: int64(1)}},
			longshore.Headers{{Name: "queue", Value: "wait"}, {Name: "reason", Value: "expired"}}}),
			dlq.Facts{Who: "rabbitmq", Reason: "delivery_limit", At: at, Source: "orders", To: "orders",
				Details: []dlq.Detail{{"died there", "1 times"}, {"died before", `expired in "wait"`}}}},
		"a malformed x-death": {delivery("rabbitmq", "x-death", "yes"), dlq.Facts{Who: "rabbitmq"}},
		"RepublishMessageRecoverer": {delivery("rabbitmq", "x-exception-message", "no stock", "x-original-exchange", "shop", "x-original-routingKey", "order.new",
			"x-exception-stacktrace", "org.a.Failed: x\n\tat a.b(C.java:1)\nCaused by: java.lang.IllegalStateException: no stock\n\tat d.e(F.java:2)\n"),
			dlq.Facts{Who: "spring-amqp", Reason: "java.lang.IllegalStateException", Error: "no stock", Source: "shop/order.new", To: "shop/order.new",
				Details: []dlq.Detail{{"stack", "org.a.Failed: x\n\tat a.b(C.java:1)\nCaused by: java.lang.IllegalStateException: no stock\n\tat d.e(F.java:2)\n"}}}},
		"RepublishMessageRecoverer, default exchange": {delivery("rabbitmq", "x-original-exchange", "", "x-original-routingKey", "orders"),
			dlq.Facts{Who: "spring-amqp", Source: "orders", To: "orders"}},
		"DeadLetterPublishingRecoverer": {spring, dlq.Facts{Who: "spring-kafka", Reason: "java.lang.IllegalStateException", Error: "no stock", At: at, Source: "orders", To: "orders", By: "billing",
			Details: []dlq.Detail{{"original record", "orders/3 offset 99"}, {"exception-fqcn", "org.springframework.kafka.listener.ListenerExecutionFailedException"}}}},
		"a retry topic": {delivery("kafka", "kafka_original-topic", "orders", "kafka_exception-fqcn", "a.B", "kafka_dlt-original-consumer-group", "billing", "retry_topic-attempts", bigEndian(4, 2),
			"retry_topic-attempts", bigEndian(4, 3), "retry_topic-attempts", bigEndian(4, 4)),
			dlq.Facts{Who: "spring-kafka", Reason: "a.B", Source: "orders", To: "orders", By: "billing", Attempts: 3}},
		"a retry topic before 2.8": {delivery("kafka", "kafka_original-topic", "orders", "kafka_exception-fqcn", "a.B", "retry_topic-attempts", bigEndian(1, 4)),
			dlq.Facts{Who: "spring-kafka", Reason: "a.B", Source: "orders", To: "orders", Attempts: 3}},
		"SQS": {redriven, dlq.Facts{Who: "sqs", Reason: "redrive", Source: "orders", To: "arn:aws:sqs:eu-west-1:1:orders"}},
	} {
		if got := dlq.FactsOf(c.d); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestReplayedMessageIsWhatItWas(t *testing.T) {
	d := delivery("rabbitmq", "a", "1", "longshore-dead-reason", "panic", "longshore-dead-replays", int64(1), "longshore-attempt", int64(4), "a", "2", "x-death", []any{},
		"x-first-death-queue", "q", "kafka_dlt-original-topic", "t", "kafka_key-exception-fqcn", "x", "retry_topic-attempts", "x", "x-exception-message", "x",
		"kafka_correlationId", "keep", "x-original-language", "keep")
	d.ID, d.Key, d.CorrelationID = "id-1", []byte("k"), "c"
	m := dlq.Restore(d)
	want := longshore.Headers{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}, {Name: "kafka_correlationId", Value: "keep"}, {Name: "x-original-language", Value: "keep"},
		{Name: "longshore-dead-hops", Value: int64(1)}, {Name: "longshore-dead-replays", Value: int64(2)}}
	if fmt.Sprint(m.Headers) != fmt.Sprint(want) || m.ID != "id-1" || string(m.Key) != "k" || m.CorrelationID != "c" || string(m.Body) != "body" {
		t.Errorf("%+v", m)
	}
}

// A log gives its records another identity than the message had: a replay that dies
// in the middle must not make two of one.
func TestIdentityOfTheDeadLetterIsKept(t *testing.T) {
	d := delivery("kafka", "a", "1")
	d.Origin.Subscription.Identify = func(*longshore.Delivery) string { return "k.7" }
	if m := dlq.Restore(d); m.Headers.String(longshore.HeaderID) != "k.7" {
		t.Errorf("%+v", m.Headers)
	}
	d.Headers.Set(longshore.HeaderID, "own")
	if m := dlq.Restore(d); fmt.Sprint(m.Headers.Values(longshore.HeaderID)) != "[own]" {
		t.Errorf("%+v", m.Headers)
	}
}

// The log of the consumer, the producer and the AWS console name a message differently.
func TestADeadLetterOfSQSIsFoundByEachOfItsIDs(t *testing.T) {
	now := "b7"
	written := delivery("aws_sqs", "longshore-dead-id", "s.tok.a5")
	written.SetNative(&types.Message{MessageId: &now})
	moved := delivery("aws_sqs")
	moved.SetNative(&types.Message{MessageId: &now})
	if got := dlq.ID(written); got != "s.tok.a5" {
		t.Error(got)
	}
	for id, want := range map[string][2]bool{"s.tok.a5": {true, false}, "a5": {true, false}, "b7": {true, true}, "s.tok.b7": {false, true}, "tok": {}, "": {}} {
		if dlq.Named(written, id) != want[0] || dlq.Named(moved, id) != want[1] {
			t.Errorf("%q: %v %v", id, dlq.Named(written, id), dlq.Named(moved, id))
		}
	}
	if m := dlq.Restore(written); m.Headers.Has("longshore-dead-id") {
		t.Errorf("%v", m.Headers)
	}
}

func TestFilters(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := delivery("memory")
	d.ID, d.Key = "id-1", []byte("")
	facts := dlq.Facts{Reason: "java.lang.IllegalStateException", Error: "No Stock", Source: "orders", At: at}
	empty, other := "", "x"
	for _, c := range []struct {
		f    dlq.Filter
		want bool
	}{
		{dlq.Filter{}, true},
		{dlq.Filter{IDs: []string{"x", "id-1"}, Reason: "illegalstateexception", Key: &empty, Source: "orders", Error: "stock", Since: at, Before: at.Add(1)}, true},
		{dlq.Filter{IDs: []string{"x"}}, false},
		{dlq.Filter{Reason: "IllegalState"}, false},
		{dlq.Filter{Key: &other}, false},
		{dlq.Filter{Source: "o"}, false},
		{dlq.Filter{Error: "panic"}, false},
		{dlq.Filter{Since: at.Add(1)}, false},
		{dlq.Filter{Before: at}, false},
	} {
		if got := c.f.Match(d, facts); got != c.want {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
	d.Key, facts.At = nil, time.Time{}
	for _, f := range []dlq.Filter{{Key: &empty}, {Since: at}, {Before: at}} {
		if f.Match(d, facts) {
			t.Errorf("%+v matches what has neither key nor time", f)
		}
	}
}

// shop is a broker with dead letters numbered from 1, the odd ones of a panic.
type shop struct {
	b *memory.Broker
	*testing.T
}

func newShop(t *testing.T, n int) shop {
	t.Helper()
	s := shop{memory.New(memory.Config{}), t}
	s.b.Declare("orders")
	s.b.Declare("orders.dlq")
	for i := 1; i <= n; i++ {
		reason := "panic"
		if i%2 == 0 {
			reason = "handler"
		}
		s.add("orders", fmt.Sprint(i), fmt.Sprintf("k%d", i%3), reason)
	}
	return s
}

func (s shop) add(from, body, key, reason string) {
	s.Helper()
	pub, err := s.b.Publisher(memory.PublisherConfig{})
	if err != nil {
		s.Fatal(err)
	}
	m := &longshore.Message{ID: "id-" + body, Key: []byte(key), Body: []byte(body)}
	m.Headers.Add("longshore-dead-reason", reason)
	m.Headers.Add("longshore-dead-source", from)
	if err := errors.Join(pub.Publish(s.Context(), "orders.dlq", m), pub.Close(s.Context())); err != nil {
		s.Fatal(err)
	}
}

func (s shop) dead() transport.Source { return s.b.Queue("orders.dlq", memory.QueueConfig{}) }

func (s shop) bodies(queue string) string {
	s.Helper()
	var all []string
	_, err := dlq.Look(s.Context(), s.b.Queue(queue, memory.QueueConfig{}), 1000, func(l dlq.Letter) bool {
		all = append(all, string(l.Body))
		return true
	})
	if err != nil {
		s.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestReplayInOrder(t *testing.T) {
	s := newShop(t, 7)
	var seen []int
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), Batch: 3, Quiet: 50 * time.Millisecond, Progress: func(r dlq.Result) { seen = append(seen, r.Done) }})
	if err != nil || res.Done != 7 || res.Failed+res.Kept+res.Unknown+res.Open != 0 || res.Total != 7 {
		t.Fatal(res, err)
	}
	if got := s.bodies("orders"); got != "1 2 3 4 5 6 7" {
		t.Errorf("replayed %q", got)
	}
	if got := s.bodies("orders.dlq"); got != "" {
		t.Errorf("left %q", got)
	}
	if !slices.Equal(seen, []int{3, 6, 7}) {
		t.Errorf("progress %v", seen)
	}
}

func TestReplayOfWhatIsChosenLeavesTheRestInPlace(t *testing.T) {
	s := newShop(t, 7)
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), Filter: dlq.Filter{Reason: "panic"}, Quiet: 50 * time.Millisecond})
	if err != nil || res.Done != 4 || res.Kept != 3 {
		t.Fatal(res, err)
	}
	if replayed, left := s.bodies("orders"), s.bodies("orders.dlq"); replayed != "1 3 5 7" || left != "2 4 6" {
		t.Errorf("replayed %q, left %q", replayed, left)
	}
}

func TestReplayOfAFew(t *testing.T) {
	s := newShop(t, 7)
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), Limit: 2, Quiet: 50 * time.Millisecond})
	if err != nil || res.Done != 2 || s.bodies("orders") != "1 2" || s.bodies("orders.dlq") != "3 4 5 6 7" {
		t.Error(res, err, s.bodies("orders"), s.bodies("orders.dlq"))
	}
}

func TestReplayStaysBelowTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, 40)
		began := time.Now()
		res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), Rate: 20, Limit: 40})
		if took := time.Since(began); err != nil || res.Done != 40 || took < 1700*time.Millisecond || took > 2100*time.Millisecond {
			t.Error(res, err, took)
		}
	})
}

// picky is a source whose broker has no "nowhere".
type picky struct{ transport.Source }

type pickyPublisher struct{ transport.Publisher }

func (p picky) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	pub, self, err := p.Source.(transport.Outlet).Publisher(ctx) //nolint:errcheck // memory is
	return pickyPublisher{pub}, self, err
}

func (p pickyPublisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if dest != "nowhere" {
		return p.Publisher.Publish(ctx, dest, msgs...)
	}
	failed := map[int]error{}
	for i := range msgs {
		failed[i] = longshore.CodeUnroutable
	}
	return &transport.PartialError{Failed: failed, Total: len(msgs)}
}

func TestWhatCannotBeSentStaysWithItsKey(t *testing.T) {
	s := newShop(t, 1)
	s.add("nowhere", "2", "a", "panic")
	s.add("orders", "3", "a", "panic") // must not overtake 2
	s.add("orders", "4", "b", "panic")
	s.add("orders.dlq", "5", "b", "panic") // from where it is
	s.add("", "6", "b", "panic")
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: picky{s.dead()}, Batch: 1, Quiet: 50 * time.Millisecond})
	if err != nil || res.Done != 2 || res.Failed != 2 || res.Unknown != 2 || !errors.Is(res.First, longshore.CodeUnroutable) {
		t.Error(res, err)
	}
	if sent, left := s.bodies("orders"), s.bodies("orders.dlq"); sent != "1 4" || left != "2 3 5 6" {
		t.Errorf("sent %q, left %q", sent, left)
	}
	res, err = dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), Quiet: 50 * time.Millisecond})
	if err != nil || res.Done != 2 || res.Unknown != 2 || s.bodies("nowhere") != "2" || s.bodies("orders") != "1 4 3" || s.bodies("orders.dlq") != "5 6" {
		t.Error(res, err, s.bodies("nowhere"), s.bodies("orders"), s.bodies("orders.dlq"))
	}
}

// A consumer that fails everything at once must not make a replay endless.
func TestReplayEndsThoughAllComeBack(t *testing.T) {
	s := newShop(t, 3)
	rounds := 0
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), To: "orders", Batch: 1, Quiet: 50 * time.Millisecond, Progress: func(dlq.Result) {
		rounds++
		_, err := dlq.Look(t.Context(), s.b.Queue("orders", memory.QueueConfig{}), 1000, func(l dlq.Letter) bool {
			m := *l.Received()
			m.Headers = m.Headers.Clone()
			m.Headers.Add("longshore-dead-at", time.Now().Add(time.Millisecond).Format(time.RFC3339Nano))
			m.Headers.Add("longshore-dead-source", "orders")
			pub, err := s.b.Publisher(memory.PublisherConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(pub.Publish(t.Context(), "orders.dlq", &m), pub.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			return false
		})
		if err != nil {
			t.Fatal(err)
		}
	}})
	if err != nil || res.Done != 3 || rounds != 3 || res.Kept != 3 {
		t.Error(res, err, rounds)
	}
}

func TestInterruptedReplayGivesBackWhatItHolds(t *testing.T) {
	s := newShop(t, 7)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := dlq.Replay(ctx, dlq.Job{Source: s.dead(), Batch: 2, Quiet: 50 * time.Millisecond, Progress: func(dlq.Result) { cancel() }})
	if !errors.Is(err, context.Canceled) || res.Done != 2 {
		t.Error(res, err)
	}
	if replayed, left := s.bodies("orders"), s.bodies("orders.dlq"); replayed != "1 2" || left != "3 4 5 6 7" {
		t.Errorf("replayed %q, left %q", replayed, left)
	}
}

func TestMoreThanMayBeHeld(t *testing.T) {
	s := newShop(t, 9)
	res, err := dlq.Replay(t.Context(), dlq.Job{Source: s.dead(), Filter: dlq.Filter{IDs: []string{"id-9"}}, Hold: 4, Quiet: 50 * time.Millisecond})
	if err != nil || !res.Full || res.Done != 0 || s.b.Inspect("orders.dlq").Ready != 9 {
		t.Error(res, err)
	}
}

func TestPurge(t *testing.T) {
	s := newShop(t, 7)
	res, err := dlq.Purge(t.Context(), dlq.Job{Source: s.dead(), Filter: dlq.Filter{Reason: "panic"}, Quiet: 50 * time.Millisecond})
	if err != nil || res.Done != 4 || s.bodies("orders.dlq") != "2 4 6" || s.bodies("orders") != "" {
		t.Error(res, err, s.bodies("orders.dlq"))
	}
	res, err = dlq.Purge(t.Context(), dlq.Job{Source: s.dead(), Quiet: 50 * time.Millisecond})
	if err != nil || res.Done != 3 || s.bodies("orders.dlq") != "" {
		t.Error(res, err)
	}
}
