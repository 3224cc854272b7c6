package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaCluster says which cluster a case runs on.
type kafkaCluster uint8

const (
	kafkaGiven    kafkaCluster = iota // at KAFKA_ADDRS
	kafkaEmbedded                     // franz-go's kfake, whose CPU time counts as ours
)

// kafkaBroker is a running cluster. Its topics are removed at the end.
type kafkaBroker struct {
	name   string
	addrs  []string
	cl     *kgo.Client
	topics []string
	groups []string
}

// run gives a case its cluster.
func (c kafkaCluster) run(f func(k *kafkaBroker, o options, r *report) error) func(o options, r *report) error {
	return func(o options, r *report) error {
		k := &kafkaBroker{name: "Kafka"}
		switch addrs := os.Getenv("KAFKA_ADDRS"); {
		case c == kafkaGiven && addrs == "":
			return errors.New("KAFKA_ADDRS is not set")
		case c == kafkaGiven:
			k.addrs = strings.Split(addrs, ",")
		default:
			fake, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				return err
			}
			defer fake.Close()
			k.name, k.addrs = "kfake in process (its CPU counted in)", fake.ListenAddrs()
		}
		if err := k.connect(); err != nil {
			return err
		}
		defer k.cl.Close()
		return errors.Join(f(k, o, r), k.clean())
	}
}

func (k *kafkaBroker) connect() (err error) {
	k.cl, err = kgo.NewClient(kgo.SeedBrokers(k.addrs...), kgo.MaxBufferedRecords(100_000))
	return err
}

// created makes a topic of its own.
func (k *kafkaBroker) created(partitions int32) (*kafkaTopic, error) {
	t := &kafkaTopic{k: k, name: fmt.Sprintf("longshore-bench-%d", time.Now().UnixNano()), partitions: partitions}
	if _, err := kadm.NewClient(k.cl).CreateTopic(context.Background(), partitions, 1, nil, t.name); err != nil {
		return nil, err
	}
	k.topics = append(k.topics, t.name)
	return t, nil
}

func (k *kafkaBroker) clean() error {
	adm := kadm.NewClient(k.cl)
	_, err := adm.DeleteTopics(context.Background(), k.topics...)
	_, gerr := adm.DeleteGroups(context.Background(), k.groups...)
	return errors.Join(err, gerr)
}

// kafkaTopic holds the records of a case. Every run reads them as a new group.
type kafkaTopic struct {
	k          *kafkaBroker
	name       string
	partitions int32
}

// filled returns a topic of n records of 100 bytes, spread over the partitions, with
// hotKeys keys.
func (k *kafkaBroker) filled(partitions int32, n int) (*kafkaTopic, error) {
	t, err := k.created(partitions)
	if err != nil {
		return nil, err
	}
	return t, t.fill(n, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "key-%d", (i*7919)%hotKeys), Partition: int32(i) % partitions} //nolint:gosec // few
	})
}

func (t *kafkaTopic) fill(n int, record func(i int) *kgo.Record) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(t.k.addrs...), kgo.DefaultProduceTopic(t.name), kgo.MaxBufferedRecords(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return err
	}
	defer cl.Close()
	body := make([]byte, 100)
	var failed atomic.Pointer[error]
	for i := range n {
		r := record(i)
		if r.Value == nil {
			r.Value = body
		}
		cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// group names a new one.
func (t *kafkaTopic) group() string {
	g := fmt.Sprintf("%s-%d", t.name, len(t.k.groups))
	t.k.groups = append(t.k.groups, g)
	return g
}

// positions counts the partitions of which the group has one.
func (t *kafkaTopic) positions(group string) (int, error) {
	all, err := kadm.NewClient(t.k.cl).FetchOffsets(context.Background(), group)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return 0, nil
	}
	n := 0
	all.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			n++
		}
	})
	return n, err
}

// committed checks that the group has all of the topic.
func (t *kafkaTopic) committed(group string, n int) error {
	all, err := kadm.NewClient(t.k.cl).FetchOffsets(context.Background(), group)
	if err != nil {
		return err
	}
	sum := int64(0)
	all.Each(func(o kadm.OffsetResponse) { sum += max(0, o.At) })
	if sum != int64(n) {
		return fmt.Errorf("group %s has committed %d of %d records", group, sum, n)
	}
	return nil
}
