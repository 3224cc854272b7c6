package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// A record as large as a fetch of its partition, and one that is larger, are received;
// what is larger than the publisher's limit is refused for itself.
func TestLargeRecords(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		limit := "4000000"
		if _, err := admin(t, c.addrs).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, c.topic); err != nil {
			t.Fatal(err)
		}
		wide := publisher(t, c.broker(), kafka.PublisherConfig{MaxBatchBytes: 3 << 20})
		sizes := []int{1<<20 - 1, 1 << 20, 2 << 20}
		for _, n := range sizes {
			eventually(t, "the topic's limit", func() bool {
				return wide.Publish(t.Context(), c.topic, &longshore.Message{Body: incompressible(n)}) == nil
			})
		}
		p := publisher(t, c.broker(), kafka.PublisherConfig{MaxBatchBytes: 1_000_000})
		err := p.Publish(t.Context(), c.topic, &longshore.Message{Body: []byte("small")}, &longshore.Message{Body: incompressible(1<<20 - 1)})
		var partial *transport.PartialError
		if !errors.As(err, &partial) || fmt.Sprint(partial.Indexes()) != "[1]" || !errors.Is(partial.Failed[1], longshore.CodeTooLarge) {
			t.Errorf("Publish: %v, want the second too large", err)
		}
		m := open(t, c.group(kafka.GroupConfig{}))
		for i, d := range m.take(4) {
			if i < 3 && len(d.Body) != sizes[i] || i == 3 && string(d.Body) != "small" {
				t.Errorf("record %d has %d bytes", i, len(d.Body))
			}
			ack(t, d)
		}
	})
}

// garbled is a batch whose codec is known and whose content is not: what a broken
// producer or a broken disk leaves.
func (c *cluster) garbled(partition int32) {
	c.t.Helper()
	b := kmsg.RecordBatch{PartitionLeaderEpoch: -1, Magic: 2, Attributes: 4, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		FirstTimestamp: time.Now().UnixMilli(), MaxTimestamp: time.Now().UnixMilli(), NumRecords: 1, Records: []byte("this is not zstd")}
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - 12)                                                        //nolint:gosec // short
	b.CRC = int32(crc32.Checksum(b.AppendTo(nil)[21:], crc32.MakeTable(crc32.Castagnoli))) //nolint:gosec // wraps as the protocol's does
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 5000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = c.topic
	part := kmsg.NewProduceRequestTopicPartition()
	part.Partition, part.Records = partition, b.AppendTo(nil)
	topic.Partitions = append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...))
	if err != nil {
		c.t.Fatal(err)
	}
	defer cl.Close()
	ts, err := kadm.NewClient(cl).ListTopics(context.Background(), c.topic)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Topics[0].TopicID = ts[c.topic].ID
	resp, err := req.RequestWith(context.Background(), cl)
	if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		c.t.Fatalf("writing a garbled batch: %v, %+v", err, resp)
	}
}

// A batch that cannot be decompressed holds its own partition, and is told with its
// place; the others go on. Moved past it, the group goes on there too.
func TestGarbledBatch(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 2)
	c.produce(0, 1, 1, 0)
	c.garbled(0)
	c.produce(1, 2, 1, 0)
	m := open(t, c.group(kafka.GroupConfig{SettleLinger: 10 * time.Millisecond}))
	ack(t, m.take(1)...)
	eventually(t, "the batch is told", func() bool {
		told := m.told(transport.EventNotice)
		return len(told) == 1 && strings.Contains(told[0], "orders/0") && strings.Contains(told[0], "offset 1")
	})
	c.produce(2, 12, 10, 1)
	for _, d := range m.take(10) {
		if d.Origin.Partition != 1 {
			t.Errorf("received %s of partition 0", d.Body)
		}
		ack(t, d)
	}
	m.flush()
	m.shut()
	c.reset(0, 2, "")
	m = open(t, c.group(kafka.GroupConfig{}))
	if d := m.take(1)[0]; string(d.Body) != "1" {
		t.Errorf("behind the batch came %s, want 1", d.Body)
	}
}

// A partition without a position starts at the first record with the time or a
// later one, at the end if all are older.
func TestStartAtATime(t *testing.T) {
	t.Parallel()
	onEither(t, 2, func(t *testing.T, c *cluster) {
		base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for i := range 10 {
			r := &kgo.Record{Topic: c.topic, Partition: 0, Value: fmt.Append(nil, i), Timestamp: base.Add(time.Duration(i) * time.Minute)}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		old := &kgo.Record{Topic: c.topic, Partition: 1, Value: []byte("old"), Timestamp: base}
		if err := cl.ProduceSync(t.Context(), old).FirstErr(); err != nil {
			t.Fatal(err)
		}
		m := open(t, c.group(kafka.GroupConfig{Start: kafka.StartAt(base.Add(6*time.Minute - time.Second)), SettleLinger: 10 * time.Millisecond}))
		ds := m.take(4)
		if string(ds[0].Body) != "6" {
			t.Errorf("first came %s, want 6", ds[0].Body)
		}
		m.none(200 * time.Millisecond)
		c.waitCommitted(1, 1)
	})
}

// A client says where it is, so that it can read from a replica nearby.
func TestRack(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 1, 1, 0)
	var rack atomic.Value
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Observe: true, Count: -1, When: func(r kmsg.Request) bool {
		rack.Store(r.(*kmsg.FetchRequest).Rack) //nolint:errcheck // by the key
		return true
	}})
	open(t, kafka.New(c.addrs, kafka.Config{Rack: "zone-b"}).Group("g", []string{c.topic}, kafka.GroupConfig{})).take(1)
	if got := rack.Load(); got != "zone-b" {
		t.Errorf("fetched as rack %v", got)
	}
}

// A static member that is back within its session has its partitions still: nothing
// moves, and its neighbour notices nothing.
func TestStaticMembersComeBack(t *testing.T) {
	t.Parallel()
	onBoth(t, 2, func(t *testing.T, c *cluster, p kafka.Protocol) {
		src := func(id string) transport.Source { return c.group(kafka.GroupConfig{Protocol: p, InstanceID: id}) }
		a, b := open(t, src("a")), open(t, src("b"))
		publishTo := func(n int) {
			c.produce(n, n+1, 1, 0)
			c.produce(n, n+1, 1, 1)
		}
		mine := int32(-1)
		eventually(t, "each has one partition", func() bool { // what comes before may be anybody's
			publishTo(0)
			x, _ := a.upTo(1, time.Second)
			y, _ := b.upTo(1, time.Second)
			ack(t, x...)
			ack(t, y...)
			if len(x) == 0 || len(y) == 0 || x[0].Origin.Partition == y[0].Origin.Partition {
				return false
			}
			mine = x[0].Origin.Partition
			return true
		})
		a.shut()
		a = open(t, src("a"))
		lost, _, _ := b.counts()
		publishTo(1)
		eventually(t, "the member that is back has its partition", func() bool {
			ds, err := a.upTo(1, time.Second)
			if err != nil {
				return false
			}
			if ds[0].Origin.Partition != mine {
				t.Errorf("it has partition %d now, had %d", ds[0].Origin.Partition, mine)
			}
			ack(t, ds...)
			return string(ds[0].Body) == "1"
		})
		if now, _, _ := b.counts(); now != lost || len(b.told(transport.EventNotice)) > 1 {
			t.Errorf("its neighbour lost %d, and was told %q", now-lost, b.told(transport.EventNotice))
		}
	})
}

// Two that say to be the same instance: the later one has it, the earlier ends with a
// code instead of a fight.
func TestSameInstanceTwice(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	src := c.group(kafka.GroupConfig{InstanceID: "a"})
	c.produce(0, 1, 1, 0)
	old := open(t, src)
	old.take(1)
	fresh := open(t, src)
	if _, err := old.upTo(1, patience); !errors.Is(err, longshore.CodeFenced) {
		t.Errorf("the earlier: %v, want fenced", err)
	}
	ack(t, fresh.take(1)...)
}

// F-I04 over the network of a real broker: nil is not empty, and a tombstone carries
// headers, one of them no text.
func TestTombstonesAndEmptyValues(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		p := publisher(t, c.broker(), kafka.PublisherConfig{})
		h := longshore.Headers{{Name: "why", Value: "gone"}, {Name: "why", Value: []byte{0xC3, 0x28}}}
		sent := []*longshore.Message{{Key: []byte("k"), Headers: h}, {Key: []byte{}, Body: []byte{}}, {Body: []byte("no key")}}
		if err := p.Publish(t.Context(), c.topic, sent...); err != nil {
			t.Fatal(err)
		}
		for i, d := range open(t, c.group(kafka.GroupConfig{})).take(3) {
			if !same(d.Key, sent[i].Key) || !same(d.Body, sent[i].Body) {
				t.Errorf("record %d: key %q body %q", i, d.Key, d.Body)
			}
			var why []any
			for _, h := range d.Headers {
				if h.Name == "why" {
					why = append(why, h.Value)
				}
			}
			if want := []any{"gone", []byte{0xC3, 0x28}}; i == 0 && fmt.Sprintf("%#v", why) != fmt.Sprintf("%#v", want) {
				t.Errorf("headers %#v", d.Headers)
			}
		}
	})
}

// F-I07: a record without a time, as those of old brokers have none, has none here, and
// none where it goes next.
func TestRecordWithoutATime(t *testing.T) {
	t.Parallel()
	onEither(t, 1, func(t *testing.T, c *cluster) {
		cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.DefaultProduceTopic(c.topic))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Value: []byte("old"), Timestamp: time.UnixMilli(-1)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		p := publisher(t, c.broker(), kafka.PublisherConfig{})
		m := open(t, c.group(kafka.GroupConfig{}))
		for range 2 {
			d := m.take(1)[0]
			if !d.Timestamp.IsZero() {
				t.Errorf("its time is %s", d.Timestamp)
			}
			if err := p.Publish(t.Context(), c.topic, d.Received()); err != nil {
				t.Fatal(err)
			}
			ack(t, d)
		}
	})
}
