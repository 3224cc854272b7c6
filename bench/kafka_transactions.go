package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// kafkaTransactions: results go to another topic in the transaction that commits the positions.
//
// raw is franz-go's GroupTransactSession: poll 500, handle them on 100 goroutines, end the
// transaction, poll again. A slow record holds up its batch, and keys have no order.
func kafkaTransactions(k *kafkaBroker, o options, r *report) error {
	n := o.count(60_000)
	t, err := k.created(8)
	if err != nil {
		return err
	}
	out, err := k.created(8)
	if err != nil {
		return err
	}
	body := make([]byte, 1024)
	if err := t.fill(n, func(i int) *kgo.Record {
		return &kgo.Record{Key: fmt.Appendf(nil, "key-%d", (i*7919)%hotKeys), Value: body, Partition: int32(i) % t.partitions} //nolint:gosec // few
	}); err != nil {
		return err
	}
	job := txJob{kafkaJob: kafkaJob{t: t, n: n, workers: kafkaWorkers, work: time.Millisecond}, out: out.name}
	vs := []variant{
		{"raw, GroupTransactSession, 100 goroutines", job.raw},
		{"longshore, 100 workers, by key", job.longshore},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	kafkaTable(r, fmt.Sprintf("%s: transactions, 8 partitions, 1 KB, 1 ms handler, one result each, %d records", k.name, n), vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar(k.name+" transactions", fmt.Sprintf("%.2f × raw", ratio), "≥ 0.8 ×", ratio >= 0.8)
	return nil
}

// txJob publishes a result of each record.
type txJob struct {
	kafkaJob

	out string // topic
}

func (j txJob) raw() (sample, error) {
	group := j.t.group()
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(j.t.k.addrs...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(j.t.name), kgo.TransactionalID(group),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DefaultProduceTopic(j.out))
	if err != nil {
		return sample{}, err
	}
	defer s.Close()
	ctx := context.Background()
	c := newCounter(j.n)
	for left := j.n; left > 0; {
		fs := s.PollRecords(ctx, 500)
		if err := s.Begin(); err != nil {
			return sample{}, err
		}
		left -= fs.NumRecords()
		j.all(fs.Records(), func(r *kgo.Record) {
			j.handle(c)
			s.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, nil)
		})
		if ok, err := s.End(ctx, kgo.TryCommit); err != nil || !ok {
			return sample{}, fmt.Errorf("a transaction was not committed: %w", err)
		}
	}
	<-c.done
	return j.committedAll(c, group)
}

// committedAll ends the clock when the group has committed everything: the last transaction counts
// on both sides, and its positions show a moment after its end.
func (j txJob) committedAll(c *counter, group string) (sample, error) {
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // it is asked again
		err := j.t.committed(group, j.n)
		if err == nil || time.Now().After(until) {
			return c.watch.stop(j.n), err
		}
	}
}

// all handles records on as many goroutines as there are workers, and waits.
func (j txJob) all(rs []*kgo.Record, handle func(*kgo.Record)) {
	in := make(chan *kgo.Record, len(rs))
	for _, r := range rs {
		in <- r
	}
	close(in)
	var wg sync.WaitGroup
	for range min(j.workers, len(rs)) {
		wg.Go(func() {
			for r := range in {
				handle(r)
			}
		})
	}
	wg.Wait()
}

func (j txJob) longshore() (sample, error) {
	c := newCounter(j.n)
	group := j.t.group()
	src := kafka.New(j.t.k.addrs, kafka.Config{}).Group(group, []string{j.t.name}, kafka.GroupConfig{Transactional: &kafka.Transactional{ID: group}})
	lc, err := container.New(src, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		j.handle(c)
		return kafka.TxFrom(ctx).Publish(ctx, j.out, &longshore.Message{Key: d.Key, Body: d.Body})
	}), container.Config{Workers: container.Workers{Min: j.workers, Max: j.workers}, Order: container.ByKey,
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	if err := lc.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-c.done
	took, err := j.committedAll(c, group)
	return took, errors.Join(err, lc.Stop(context.Background()))
}
