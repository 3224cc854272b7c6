package kafka_test

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka"
)

// What is put back or set aside is written in a way that each client can read: without
// compression, unless it is asked for; and Config.Outlet decides it for all that sources
// publish. F-N19
func TestWhatSourcesPublishIsPlain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outlet kafka.PublisherConfig
		codec  uint8
		acks   int16
		known  bool // the broker knows the producer and drops repetitions
	}{
		"default": {codec: 0, acks: -1, known: true},
		"chosen":  {outlet: kafka.PublisherConfig{Compression: []kgo.CompressionCodec{kgo.ZstdCompression()}, Acks: kafka.AcksLeader}, codec: 4, acks: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := embeddedCluster(t, 1)
			var mu sync.Mutex
			var acks []int16
			f.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, When: func(r kmsg.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				acks = append(acks, r.(*kmsg.ProduceRequest).Acks) //nolint:errcheck // by the key
				return false
			}})
			src := kafka.New(f.addrs, kafka.Config{Outlet: c.outlet}).Group("g", []string{f.topic}, kafka.GroupConfig{})
			pub, dest, err := src.Publisher(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pub.Close(t.Context()) }()
			body := bytes.Repeat([]byte("compressible "), 1000)
			if err := pub.Publish(t.Context(), dest, &longshore.Message{Key: []byte("k"), Body: body}); err != nil {
				t.Fatal(err)
			}
			d := open(t, src).take(1)[0]
			r := d.Native().(*kgo.Record) //nolint:errcheck // it is one
			if got := r.Attrs.CompressionType(); got != c.codec {
				t.Errorf("written with compression %d, want %d", got, c.codec)
			}
			if known := r.ProducerID >= 0; known != c.known {
				t.Errorf("written by producer %d", r.ProducerID)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(acks) == 0 || slices.ContainsFunc(acks, func(a int16) bool { return a != c.acks }) {
				t.Errorf("asked for acks %v, want %d", acks, c.acks)
			}
		})
	}
}

// Wrong settings of what sources publish are found with the rest of the configuration.
func TestOutletIsChecked(t *testing.T) {
	t.Parallel()
	b := kafka.New([]string{"localhost:9092"}, kafka.Config{Outlet: kafka.PublisherConfig{Acks: 7, MaxBatchBytes: -1}})
	err := b.Group("g", []string{"t"}, kafka.GroupConfig{}).Check()
	if !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("Check: %v", err)
	}
}

// A key's partition is that of the clients whose hash is named. The partitions were computed
// apart from any client, by the hashes' definitions. F-N19
func TestPartitionBy(t *testing.T) {
	t.Parallel()
	const n = 1000
	for hash, want := range map[string]int{"": 281, "murmur2": 281, "crc32": 937, "fnv1a": 28} {
		p := kafka.PartitionBy(hash)
		if p == nil {
			t.Fatalf("%q: no partitioner", hash)
		}
		r := &kgo.Record{Key: []byte("key")}
		if got := p.ForTopic("t").Partition(r, n); got != want {
			t.Errorf("%q: partition %d, want %d", hash, got, want)
		}
	}
	if kafka.PartitionBy("md5") != nil {
		t.Error("md5 is a partitioner")
	}
}
