package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

func check(src transport.Source) error {
	return src.(transport.Checker).Check() //nolint:errcheck // all of ours are
}

// F-K03: what may be written as an address, and what it means.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"kafka": "kafka:9092", "kafka:1": "kafka:1", " k1:9092 ": "k1:9092", "10.0.0.1": "10.0.0.1:9092", "10.0.0.1:9": "10.0.0.1:9",
		"::1": "[::1]:9092", "[::1]": "[::1]:9092", "[::1]:9": "[::1]:9", "fe80::1%eth0": "[fe80::1%eth0]:9092", "a_b.example": "a_b.example:9092",
	} {
		src := kafka.New([]string{in}, kafka.Config{}).Group("g", []string{"t"}, kafka.GroupConfig{})
		if err := check(src); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if got := src.Describe().Address; got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{"", " ", "k:", "k:0", "k:65536", "k:x", "k:1:2", "a b", "PLAINTEXT://k:1", "k1,k2", "k1:1,", "u@k", "[::1", "::1:x", "[k]:1", ":9092", "k/x"} {
		err := check(kafka.New([]string{"good", in}, kafka.Config{}).Group("g", []string{"t"}, kafka.GroupConfig{}))
		if !errors.Is(err, longshore.CodeBadAddress) || !strings.Contains(err.Error(), "entry 2") {
			t.Errorf("%q: %v", in, err)
		}
	}
	if err := check(kafka.New(nil, kafka.Config{}).Group("g", []string{"t"}, kafka.GroupConfig{})); !errors.Is(err, longshore.CodeBadAddress) {
		t.Errorf("no address: %v", err)
	}
}

// A password that somebody wrote into an address is in no error.
func TestAddressErrorsHideWhatStandsBeforeTheHost(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"kafka://app:hunter2secret@127.0.0.1:1", "app:hunter2secret@127.0.0.1", "app:hunter2@secret@h"} {
		err := check(kafka.New([]string{addr}, kafka.Config{}).Group("g", []string{"t"}, kafka.GroupConfig{}))
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

// All problems at once, before any I/O.
func TestBadConfigurationIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := kafka.New([]string{"k:x", "k:y"}, kafka.Config{SASL: kafka.SASL{Mechanism: "GSSAPI"}, DialTimeout: -1, Options: []kgo.Opt{kgo.ConsumerGroup("mine")}})
	src := b.Group("", []string{"a", "a", "b c"}, kafka.GroupConfig{Window: -1, RebalanceDrain: time.Hour, Start: -5, Declare: kafka.Declare{Replicas: 3}})
	err := check(src)
	for _, text := range []string{"entry 1", "entry 2", "Mechanism", "DialTimeout", "ConsumerGroup", "no name", "named twice", `"b c"`, "Window", "RebalanceDrain", "Start", "Partitions"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
	if _, err := src.Open(t.Context(), transport.OpenOptions{}); err == nil {
		t.Error("Open with it succeeds")
	}
	if _, err := b.Publisher(kafka.PublisherConfig{Timeout: time.Millisecond}); err == nil {
		t.Error("a publisher with it")
	}
}

// F-K04: options of franz-go pass through; those that ours cannot take back are refused by
// name, and what the client refuses is refused with its words.
func TestNativeOptions(t *testing.T) {
	t.Parallel()
	try := func(o ...kgo.Opt) error {
		return kafka.New([]string{"k"}, kafka.Config{Options: o}).Group("g", []string{"t"}, kafka.GroupConfig{}).Check()
	}
	for name, o := range map[string]kgo.Opt{
		"ConsumerGroup": kgo.ConsumerGroup("x"), "ShareGroup": kgo.ShareGroup("x"), "ConsumeTopics": kgo.ConsumeTopics("x"), "ConsumeRegex": kgo.ConsumeRegex(),
		"ConsumePartitions":    kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"x": {0: kgo.NewOffset()}}),
		"BlockRebalanceOnPoll": kgo.BlockRebalanceOnPoll(), "InstanceID": kgo.InstanceID("x"), "ServerSideBalancer": kgo.ServerSideBalancer(),
		"TransactionalID": kgo.TransactionalID("x"), "DisableIdempotentWrite": kgo.DisableIdempotentWrite(), "ManualFlushing": kgo.ManualFlushing(),
		"RecordDeliveryTimeout": kgo.RecordDeliveryTimeout(time.Minute),
	} {
		if err := try(kgo.ClientID("x"), o); !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "kgo."+name+" belongs to this package") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, opts := range map[string][]kgo.Opt{
		"a group's marks": {kgo.ConsumerGroup("x"), kgo.AutoCommitMarks()}, "a greedy group": {kgo.ConsumerGroup("x"), kgo.GreedyAutoCommit()},
		"one topic for all": {kgo.DefaultProduceTopic("x"), kgo.DefaultProduceTopicAlways()}, "marks without a group": {kgo.AutoCommitMarks()},
		"callbacks without a group": {kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) {})},
		"no acks":                   {kgo.RequiredAcks(kgo.NoAck())}, "nil": {kgo.ClientID("x"), nil},
	} {
		if err := try(opts...); !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "Options") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]kgo.Opt{
		"FetchMaxBytes": kgo.FetchMaxBytes(1 << 20), "HeartbeatInterval": kgo.HeartbeatInterval(time.Second), "Balancers": kgo.Balancers(kgo.RangeBalancer()),
		"Dialer": kgo.Dialer(nil), "WithHooks": kgo.WithHooks(), "MetadataMaxAge": kgo.MetadataMaxAge(time.Minute), "MaxBufferedRecords": kgo.MaxBufferedRecords(7),
	} {
		if err := try(o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// F-K04: where an option and this package set the same, this package wins: nothing is
// skipped, committed or written otherwise than the fields say.
func TestOwnOptionsWin(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	c.produce(0, 5, 1, 0)
	c.opts = []kgo.Opt{
		kgo.SeedBrokers("127.0.0.1:1"), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()), kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.RecordPartitioner(kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int { return func(*kgo.Record, int) int { return 99 } })),
		kgo.ProducerBatchMaxBytes(2000), kgo.ProducerLinger(time.Minute), kgo.SessionTimeout(time.Hour), kgo.RebalanceTimeout(time.Hour),
		kgo.OnOffsetsFetched(func(context.Context, *kgo.Client, *kmsg.OffsetFetchResponse) error { return errors.New("not ours") }),
		kgo.AdjustFetchOffsetsFn(func(context.Context, map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
			return nil, errors.New("not ours")
		}),
	}
	m := open(t, c.group(kafka.GroupConfig{}))
	ack(t, m.take(5)...)
	c.produce(5, 10, 1, 0)
	ack(t, m.take(5)...)
	m.flush()
	c.waitCommitted(0, 10)
}

// A missing topic is named, with one of a similar name.
func TestMissingTopicIsNamed(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	_, err := c.broker().Group("billing", []string{"order"}, kafka.GroupConfig{}).Open(t.Context(), transport.OpenOptions{})
	want := fmt.Sprintf(`longshore: open kafka group "billing" at %s: topic "order" does not exist (UNKNOWN_TOPIC_OR_PARTITION), similar: "orders"; correct the name, create it, or set Declare`, c.addrs[0])
	if !errors.Is(err, longshore.CodeNotFound) || err.Error() != want {
		t.Errorf("Open: %v\nwant: %s", err, want)
	}
}

// Declare makes what is missing, the dead-letter topic too, and takes what is as declared.
func TestDeclare(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 3)
	src := c.broker().Group("g", []string{"fresh", "other"}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 3, Settings: map[string]string{"retention.ms": "1000000"}}})
	for range 2 {
		m, err := src.Open(t.Context(), transport.OpenOptions{DeadLetter: "fresh.dlt"})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	topics, err := admin(t, c.addrs).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"other": 3, "fresh": 3, "fresh.dlt": 3} {
		if got := len(topics[name].Partitions); got != n {
			t.Errorf("%s has %d partitions, want %d", name, got, n)
		}
	}
}

// A pattern takes in topics that are made later.
func TestPattern(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	b := kafka.New(c.addrs, kafka.Config{Options: []kgo.Opt{kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(500 * time.Millisecond)}})
	m := open(t, b.Group("g", []string{"^ord"}, kafka.GroupConfig{Pattern: true}))
	c.produce(0, 1, 1, 0)
	ack(t, m.take(1)...)
	createTopic(t, c.addrs, "ordinary", 1)
	later := *c
	later.topic = "ordinary"
	later.produce(1, 2, 1, 0)
	if d := m.take(1)[0]; d.Origin.Topic != "ordinary" {
		t.Errorf("received from %s", d.Origin.Topic)
	}
}
