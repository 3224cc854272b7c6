//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// kafkaCluster has a topic of six partitions, each on three brokers, two of which have to have
// a record before it is confirmed.
type kafkaCluster struct{ addrs []string }

func (b kafkaCluster) address() string { return strings.Join(b.addrs, ",") }

func (b kafkaCluster) source() transport.Source {
	return kafka.New(b.addrs, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(500 * time.Millisecond)}}).
		Group(place, []string{place}, kafka.GroupConfig{SessionTimeout: 6 * time.Second})
}

func (b kafkaCluster) admin() (*kadm.Client, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...))
	if err != nil {
		return nil, err
	}
	return kadm.NewClient(cl), nil
}

func (b kafkaCluster) prepare(ctx context.Context) error {
	adm, err := b.admin()
	if err != nil {
		return err
	}
	defer adm.Close()
	_, _ = adm.DeleteGroups(ctx, place)
	_, _ = adm.DeleteTopics(ctx, place)
	for range 20 { // the deletion takes a moment
		if err = pause(ctx, time.Second); err != nil {
			return err
		}
		if _, err = adm.CreateTopic(ctx, 6, 3, map[string]*string{"min.insync.replicas": kadm.StringPtr("2")}, place); err == nil {
			return nil
		}
	}
	return err
}

func (b kafkaCluster) sender(confirms bool) sender {
	opts := []kgo.Opt{kgo.SeedBrokers(b.addrs...), kgo.DefaultProduceTopic(place), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil))}
	if !confirms {
		opts = append(opts, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	}
	cl, err := kgo.NewClient(opts...)
	return &kafkaSender{cl: cl, failed: err}
}

type kafkaSender struct {
	cl     *kgo.Client
	failed error // of making it
}

func (s *kafkaSender) send(ctx context.Context, key, body string) error {
	if s.failed != nil {
		return s.failed
	}
	return s.cl.ProduceSync(ctx, &kgo.Record{Key: []byte(key), Value: []byte(body)}).FirstErr()
}

func (s *kafkaSender) close() {
	if s.cl != nil {
		s.cl.Close()
	}
}

// left reads what is above the group's positions.
func (b kafkaCluster) left(ctx context.Context) (ids []string, err error) {
	adm, err := b.admin()
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	lag, err := adm.Lag(ctx, place)
	if err != nil {
		return nil, err
	}
	from, missing := map[string]map[int32]kgo.Offset{place: {}}, int64(0)
	for _, l := range lag[place].Lag[place] {
		if l.Lag > 0 {
			from[place][l.Partition] = kgo.NewOffset().At(l.End.Offset - l.Lag)
			missing += l.Lag
		}
	}
	if missing == 0 {
		return nil, nil
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addrs...), kgo.ConsumePartitions(from))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for int64(len(ids)) < missing {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return ids, fmt.Errorf("%d of %d records came", len(ids), missing)
		}
		fetches.EachRecord(func(r *kgo.Record) { ids = append(ids, string(r.Value)) })
	}
	return ids, nil
}
