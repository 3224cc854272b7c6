package kafka_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

func publisher(t testing.TB, b *kafka.Broker, cfg kafka.PublisherConfig) *kafka.Publisher {
	t.Helper()
	p, err := b.Publisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

func incompressible(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func messages(bodies ...string) []*longshore.Message {
	var ms []*longshore.Message
	for _, b := range bodies {
		ms = append(ms, &longshore.Message{Key: []byte("k"), Body: []byte(b)})
	}
	return ms
}

// F-D04's sibling: some records of a batch fail, and exactly those are named.
func TestPartOfABatchFails(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 2)
	p := publisher(t, c.broker(), kafka.PublisherConfig{MaxBatchBytes: 1 << 20})
	ms := messages("a", "b", strings.Repeat("x", 2<<20), "d")
	ms[1].Headers = longshore.Headers{{Name: "h", Value: struct{}{}}}
	err := p.Publish(t.Context(), c.topic, ms...)
	var partial *transport.PartialError
	if !errors.As(err, &partial) || fmt.Sprint(partial.Indexes()) != "[1 2]" || partial.Total != 4 {
		t.Fatalf("Publish: %v, want 1 and 2 of 4", err)
	}
	if !errors.Is(partial.Failed[1], longshore.CodeBadHeader) || !errors.Is(partial.Failed[2], longshore.CodeTooLarge) {
		t.Errorf("failed: %v", partial.Failed)
	}
	if got := open(t, c.group(kafka.GroupConfig{})).take(2); string(got[0].Body) != "a" || string(got[1].Body) != "d" {
		t.Errorf("written were %s and %s", got[0].Body, got[1].Body)
	}
}

// F-N21: a message that its sender publishes twice, because the first outcome was unknown,
// is two records with one identity: its ID, or the header it has. Without either each
// Publish has one of its own.
func TestRecordsOfOneMessageHaveOneIdentity(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	p := publisher(t, c.broker(), kafka.PublisherConfig{})
	ms := messages("an ID", "an ID", "own", "own", "none", "none")
	ms[0].ID, ms[1].ID = "order-1", "order-1"
	for _, m := range ms[2:4] {
		m.ID = "order-2"
		m.Headers = longshore.Headers{{Name: longshore.HeaderID, Value: "own"}}
	}
	if err := p.Publish(t.Context(), c.topic, ms...); err != nil {
		t.Fatal(err)
	}
	ids := map[string][]string{}
	for _, d := range open(t, c.group(kafka.GroupConfig{})).take(6) {
		ids[string(d.Body)] = append(ids[string(d.Body)], longshore.Identity(d))
	}
	if fmt.Sprint(ids["an ID"], ids["own"]) != "[order-1 order-1] [own own]" || ids["none"][0] == ids["none"][1] {
		t.Errorf("identities %v", ids)
	}
}

// A content type without a value, as some producers write it, keeps its name when it is
// published again: a dead letter is read by others too.
func TestContentTypeWithoutAValueKeepsItsName(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	p := publisher(t, c.broker(), kafka.PublisherConfig{})
	ms := messages("a")
	ms[0].Headers = longshore.Headers{{Name: "content-type"}, {Name: "content-encoding"}}
	if err := p.Publish(t.Context(), c.topic, ms...); err != nil {
		t.Fatal(err)
	}
	d := open(t, c.group(kafka.GroupConfig{})).take(1)[0]
	r, ok := d.Native().(*kgo.Record)
	if !ok {
		t.Fatalf("native %T", d.Native())
	}
	var names []string
	for _, h := range r.Headers {
		names = append(names, h.Key)
	}
	if !slices.Contains(names, "content-type") || !slices.Contains(names, "content-encoding") || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "longshore-u-") }) {
		t.Errorf("headers of the record: %v", names)
	}
	if v, ok := d.Received().Headers.Get("content-type"); !ok || v != nil {
		t.Errorf("headers: %v", d.Received().Headers)
	}
}

// The limit of a topic is for a batch: those that fit by themselves go through.
func TestTopicTakesSmallBatchesOnly(t *testing.T) {
	t.Parallel()
	addrs := brokertest.Kafka(t)
	c := realCluster(t, addrs, 1)
	limit := "20000"
	adm := admin(t, addrs)
	if _, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, c.topic); err != nil {
		t.Fatal(err)
	}
	var ms []*longshore.Message
	for i := range 100 {
		size := 1000
		if i == 50 {
			size = 30000
		}
		ms = append(ms, &longshore.Message{Body: incompressible(size)})
	}
	p := publisher(t, c.broker(), kafka.PublisherConfig{})
	var err error
	eventually(t, "the topic's limit", func() bool {
		err = p.Publish(t.Context(), c.topic, ms...)
		return err != nil
	})
	var partial *transport.PartialError
	if !errors.As(err, &partial) || fmt.Sprint(partial.Indexes()) != "[50]" || !errors.Is(partial.Failed[50], longshore.CodeTooLarge) {
		t.Errorf("Publish: %v, want the one that is too large", err)
	}
	open(t, c.group(kafka.GroupConfig{})).take(99)
}

// A record goes to the partition that is named, and to none that does not exist.
func TestChosenPartition(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 3)
	p := publisher(t, c.broker(), kafka.PublisherConfig{})
	if err := p.Publish(t.Context(), kafka.To(c.topic, 2), messages("a")...); err != nil {
		t.Fatal(err)
	}
	if d := open(t, c.group(kafka.GroupConfig{})).take(1)[0]; d.Origin.Partition != 2 {
		t.Errorf("written to partition %d", d.Origin.Partition)
	}
	if err := p.Publish(t.Context(), kafka.To(c.topic, 7), messages("b")...); err == nil {
		t.Error("a partition that does not exist was accepted")
	}
	for _, dest := range []string{"", "a b", "orders/x", "orders/-1", "ümlaut"} {
		if err := p.Publish(t.Context(), dest, messages("b")...); !errors.Is(err, longshore.CodeConfig) {
			t.Errorf("destination %q: %v", dest, err)
		}
	}
}

// Nobody answers: the call ends with its context, or after Timeout, and says that the
// outcome is open. F-B05
func TestPublishWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	p := publisher(t, c.broker(), kafka.PublisherConfig{Timeout: time.Second})
	if err := p.Publish(t.Context(), c.topic, messages("a")...); err != nil {
		t.Fatal(err)
	}
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
	start := time.Now()
	err := p.Publish(t.Context(), c.topic, messages("b")...)
	if !errors.Is(err, longshore.CodeTimeout) || time.Since(start) > 10*time.Second {
		t.Errorf("after %s: %v, want a timeout", time.Since(start), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Publish(ctx, c.topic, messages("c")...); err == nil {
		t.Error("a record that nobody confirmed was reported as written")
	}
	if err := p.Publish(t.Context(), "nowhere", messages("d")...); !errors.Is(err, longshore.CodeNotFound) {
		t.Errorf("unknown topic: %v", err)
	}
}

// F-I04, F-I05: what foreign producers write is handed out as it is and written back
// byte for byte, in order.
func TestForeignRecordsAreKept(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.DefaultProduceTopic(c.topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	foreign := []*kgo.Record{
		{Key: nil, Value: nil, Headers: []kgo.RecordHeader{{Key: "tombstone", Value: []byte("1")}}},
		{Key: []byte{}, Value: []byte{}},
		{Key: []byte("k"), Value: []byte{0xC3, 0x28}, Headers: []kgo.RecordHeader{
			{Key: "a", Value: []byte{0xC3, 0x28}}, {Key: "b", Value: []byte("<script>\x1b[31m\n\x02")}, {Key: "a", Value: nil}, {Key: "a", Value: []byte{}}, {Key: "", Value: bytes.Repeat([]byte("x"), 64<<10)}}},
		{Value: []byte("env"), Headers: []kgo.RecordHeader{{Key: "longshore-env", Value: []byte("1.0000.{}")}, {Key: "longshore-p-priority", Value: []byte("many")}, {Key: "longshore-u-x", Value: []byte("y")}}},
	}
	if err := cl.ProduceSync(t.Context(), foreign...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	p := publisher(t, c.broker(), kafka.PublisherConfig{})
	m := open(t, c.group(kafka.GroupConfig{}))
	ds := m.take(len(foreign))
	for _, d := range ds {
		if err := p.Publish(t.Context(), c.topic, d.Received()); err != nil {
			t.Fatal(err)
		}
		ack(t, d)
	}
	for i, d := range m.take(len(foreign)) {
		got := d.Native().(*kgo.Record) //nolint:errcheck // it is one
		want := foreign[i]
		if !same(got.Key, want.Key) || !same(got.Value, want.Value) {
			t.Errorf("record %d: key %q value %q, want %q %q", i, got.Key, got.Value, want.Key, want.Value)
		}
		var back []kgo.RecordHeader
		for _, h := range got.Headers {
			if h.Key != longshore.HeaderID && !strings.HasPrefix(h.Key, "longshore-p-timestamp") {
				back = append(back, kgo.RecordHeader{Key: strings.Replace(h.Key, "longshore-u-longshore-", "longshore-", 1), Value: h.Value})
			}
		}
		if fmt.Sprint(back) != fmt.Sprint(want.Headers) {
			t.Errorf("record %d: headers %.300q, want %.300q", i, back, want.Headers)
		}
	}
}

func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// F-I07: the nanoseconds and the absence of a time, also of one that the broker would
// refuse or soon delete.
func TestTimesAreKept(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	p := publisher(t, c.broker(), kafka.PublisherConfig{})
	m := open(t, c.group(kafka.GroupConfig{}))
	now := time.Now()
	for _, at := range []time.Time{{}, now, now.Truncate(time.Millisecond), now.Add(-10000 * time.Hour), now.Add(100 * time.Hour), time.Date(1500, 1, 2, 3, 4, 5, 6, time.UTC)} {
		if err := p.Publish(t.Context(), c.topic, &longshore.Message{Body: []byte("x"), Timestamp: at}); err != nil {
			t.Fatal(err)
		}
		d := m.take(1)[0]
		if !d.Timestamp.Equal(at) {
			t.Errorf("sent %v, received %v", at, d.Timestamp)
		}
		if r := d.Native().(*kgo.Record); time.Since(r.Timestamp).Abs() > time.Minute { //nolint:errcheck // it is one
			t.Errorf("the record's time is %v for %v: retention would act on it", r.Timestamp, at)
		}
		ack(t, d)
	}
}

// Looking takes nothing, and goes over partitions and over many calls.
func TestBrowse(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 3)
	c.produce(0, 25, 10, -1)
	src := c.group(kafka.GroupConfig{}).(transport.Browser) //nolint:errcheck // it is one
	seen := map[string]bool{}
	from := ""
	for range 10 {
		ds, next, err := src.Browse(t.Context(), from, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			seen[string(d.Body)] = true
			if err := d.Ack(t.Context()); err == nil {
				t.Error("what was only looked at could be settled")
			}
		}
		if from = next; from == "" {
			break
		}
	}
	if len(seen) != 25 || from != "" {
		t.Errorf("%d of 25 seen, next is %q", len(seen), from)
	}
	if _, _, err := src.Browse(t.Context(), "nonsense", 7); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("from nonsense: %v", err)
	}
}

// Every instance of a broadcast reads all; reopened it goes on where it was.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	onBoth(t, 3, func(t *testing.T, c *cluster, p kafka.Protocol) {
		if p == kafka.Consumer {
			return // there is no group
		}
		c.produce(0, 20, 10, -1)
		a := c.broker().Broadcast([]string{c.topic}, kafka.BroadcastConfig{})
		b := c.broker().Broadcast([]string{c.topic}, kafka.BroadcastConfig{Start: kafka.Latest})
		ma, mb := open(t, a), open(t, b)
		ds := ma.take(20)
		ack(t, ds...)
		c.produce(20, 30, 10, -1)
		ack(t, mb.take(10)...)
		ack(t, ma.take(10)...)
		mb.none(100 * time.Millisecond)
		ma.shut()
		c.produce(30, 31, 1, -1)
		if d := open(t, a).take(1)[0]; string(d.Body) != "30" {
			t.Errorf("reopened came %s, want 30", d.Body)
		}
	})
}
