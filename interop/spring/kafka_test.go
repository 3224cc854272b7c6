package interop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// logs are topics of one test on one cluster, by the names that files have for them.
type logs struct {
	addrs  []string
	topics map[string]string
}

func (l logs) address() string { return strings.Join(l.addrs, ",") }

func newLogs(t *testing.T, addrs []string, names ...string) logs {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	base := brokertest.Name(t, "spring")
	l := logs{addrs: addrs, topics: map[string]string{}}
	for _, name := range names {
		l.topics[name] = strings.Replace(name, "orders", base, 1)
		if _, err := kadm.NewClient(cl).CreateTopic(bounded(t), 1, 1, nil, l.topics[name]); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// onKafka is onRabbit for topics of one partition; want is how many records they have
// in the end.
func onKafka(t *testing.T, mode string, names []string, want int, write func(t *testing.T, l logs), check func(t *testing.T, l logs)) {
	t.Helper()
	t.Run("kept", func(t *testing.T) {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		l := newLogs(t, c.ListenAddrs(), names...)
		l.write(t, golden(t, mode))
		check(t, l)
	})
	t.Run("spring", func(t *testing.T) {
		needJava(t)
		l := newLogs(t, brokertest.Kafka(t), names...)
		write(t, l)
		keep(t, mode, func() []raw { return l.read(t, want) })
		check(t, l)
	})
}

func (l logs) write(t *testing.T, all []raw) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(l.addrs...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, r := range all {
		rec := &kgo.Record{Topic: l.topics[r.In]}
		if r.Key != nil {
			rec.Key = *r.Key
		}
		if r.Body != nil {
			rec.Value = *r.Body
		}
		for _, h := range r.Headers {
			text, _ := h.Value.(string)
			b, err := bytesOf(text)
			if err != nil {
				t.Fatal(err)
			}
			if h.Value == nil {
				b = nil
			}
			rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: h.Name, Value: b})
		}
		if err := cl.ProduceSync(bounded(t), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func (l logs) read(t *testing.T, want int) (all []raw) {
	t.Helper()
	names := map[string]string{}
	var topics []string
	for name, topic := range l.topics {
		names[topic] = name
		topics = append(topics, topic)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(l.addrs...), kgo.ConsumeTopics(topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx := bounded(t)
	for len(all) < want {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			t.Fatalf("%d of %d records: %v, %v", len(all), want, err, context.Cause(ctx))
		}
		fs.EachRecord(func(rec *kgo.Record) {
			r := raw{In: names[rec.Topic], Key: blobOf(rec.Key), Body: blobOf(rec.Value)}
			for _, h := range rec.Headers {
				f := field{Name: h.Key}
				if h.Value != nil {
					f.Value = textOf(h.Value)
				}
				r.Headers = append(r.Headers, f)
			}
			all = append(all, r)
		})
	}
	return all
}

func TestReadsWhatSpringKafkaWrites(t *testing.T) {
	onKafka(t, "kafka-write", []string{"orders"}, 7,
		func(t *testing.T, l logs) {
			java(t, "kafka-write", "address", l.address(), "topic", l.topics["orders"])
		},
		func(t *testing.T, l logs) {
			src := kafka.New(l.addrs, kafka.Config{}).Group(l.topics["orders"], []string{l.topics["orders"]}, kafka.GroupConfig{})
			got := consumed(t, src, 7, nil, discard)
			for name, want := range map[string]string{
				"class":     "paid {o-1 1250}",
				"mapped":    "canceled {o-2 late}",
				"headers":   "paid {o-5 2}",
				"quoted":    "paid {o-6 3}",
				"list":      `other java.util.ArrayList  [{"id":"o-3","cents":1}]`,
				"tombstone": "other   ",
				"text":      "other   grüße",
			} {
				if have := shown(got.of(name)); have != want {
					t.Errorf("%s: %q, want %q", name, have, want)
				}
			}
			if gone := got.of("tombstone"); len(gone) == 1 && gone[0].m.Body != nil {
				t.Error("a tombstone has a body")
			}
			for _, name := range []string{"headers", "quoted"} {
				h := got.of(name)
				if len(h) != 1 {
					t.Errorf("%s: %+v", name, h)
					continue
				}
				if string(h[0].m.Key) != "k-5" || h[0].m.ContentType != "application/json" {
					t.Errorf("%s: key %q, content type %q", name, h[0].m.Key, h[0].m.ContentType)
				}
				checkHeaders(t, h[0].m.Headers, map[string]any{
					"string": `grüße "q"`, "empty": "", "boolean": true, "byte": int8(-7), "short": int16(-300), "int": int32(-70_000), "long": int64(9_007_199_254_740_993),
					"float": 0.5, "double": 0.1, "bytes": []byte{0, 0xff}, "list": []any{"a", int64(1), true}, "map": longshore.Headers{{Name: "b", Value: int64(2)}},
					"uuid": "00000000-0000-0000-0000-0000000000ff", "enum": "NEW", "decimal": 12.5, "__TypeId__": "com.acme.OrderPaid",
				})
			}
		})
}
