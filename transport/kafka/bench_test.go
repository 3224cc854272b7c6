package kafka_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/transporttest"
)

func BenchmarkContract(b *testing.B) {
	transporttest.Bench(b, harness(fake(b).ListenAddrs(), kafka.Classic, direct))
}

// benchCluster is filled with n records of 100 bytes; kfake, or KAFKA_ADDRS.
func benchCluster(b *testing.B, n int) *cluster {
	b.Helper()
	var c *cluster
	if addrs := os.Getenv("KAFKA_ADDRS"); addrs != "" {
		c = realCluster(b, strings.Split(addrs, ","), 8)
	} else {
		c = embeddedCluster(b, 8)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.DefaultProduceTopic(c.topic), kgo.MaxBufferedRecords(100000))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	body := make([]byte, 100)
	for range n {
		cl.Produce(context.Background(), &kgo.Record{Value: body}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	return c
}

// The client alone: nothing is tracked and nothing committed.
func BenchmarkRawPoll(b *testing.B) {
	c := benchCluster(b, b.N)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.ConsumeTopics(c.topic), kgo.ConsumerGroup(c.topic), kgo.DisableAutoCommit())
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	n := len(cl.PollRecords(b.Context(), 1).Records())
	b.ReportAllocs()
	for b.ResetTimer(); n < b.N; {
		n += cl.PollRecords(b.Context(), 500).NumRecords()
	}
}

// Receive and ack, one after the other, with commits.
func BenchmarkReceiveAck(b *testing.B) {
	c := benchCluster(b, b.N)
	m, err := c.group(kafka.GroupConfig{}).Open(b.Context(), transport.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ds, err := m.Receive(b.Context(), 1)
	if err != nil {
		b.Fatal(err)
	}
	if err := ds[0].Ack(b.Context()); err != nil { // or it holds its partition at the window
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 1; n < b.N; n += len(ds) {
		if n == 1 {
			b.ResetTimer()
		}
		if ds, err = m.Receive(b.Context(), 500); err != nil {
			b.Fatal(err)
		}
		for _, d := range ds {
			if err := d.Ack(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	if err := m.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
