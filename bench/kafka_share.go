package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const (
	shareMembers = 3
	shareWorkers = 34 // of each member
)

// kafkaShare: a queue on one partition, 10 ms handlers on 102 workers of three members.
//
// raw is franz-go's share consumer: poll up to 500, handle them on 34 goroutines, acknowledge,
// poll again. It waits for the slowest record of each poll, as it has to.
func kafkaShare(k *kafkaBroker, o options, r *report) error {
	n := o.count(20_000)
	t, err := k.filled(1, n)
	if err != nil {
		return err
	}
	job := shareJob{kafkaJob{t: t, n: n, work: 10 * time.Millisecond}}
	vs := []variant{
		{"raw, 3 share consumers of 34 goroutines", job.raw},
		{"longshore, 3 containers of 34 workers", job.longshore},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	kafkaTable(r, fmt.Sprintf("%s: share group, 1 partition, 10 ms handler, %d records", k.name, n), vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar(k.name+" share group, 1 partition", fmt.Sprintf("%.2f × raw", ratio), "≥ 0.9 ×", ratio >= 0.9)
	return nil
}

// kafkaShareSlow: records come at 500/s, and one in 100 takes five seconds. The rate is that of the
// other 99.
func kafkaShareSlow(k *kafkaBroker, o options, r *report) error {
	n := o.count(5_000)
	vs := []variant{
		{"longshore, every record takes 10 ms", func() (sample, error) { return k.paced(n, 0) }},
		{"longshore, 1 in 100 takes 5 s", func() (sample, error) { return k.paced(n, 100) }},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	kafkaTable(r, fmt.Sprintf("%s: share group, 1 partition, %d records at 500/s, the rate of the quick ones", k.name, n), vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar(k.name+" share group, 1 in 100 takes 5 s: the others", fmt.Sprintf("%.2f ×", ratio), "≥ 0.9 ×", ratio >= 0.9)
	return nil
}

// kafkaShareScale: one container on one partition goes from one worker to thirty.
func kafkaShareScale(k *kafkaBroker, o options, r *report) error {
	t, err := k.filled(1, 20_000)
	if err != nil {
		return err
	}
	var took []float64
	for range o.rounds {
		var first atomic.Int64
		lc, err := shareJob{kafkaJob{t: t}}.container(t.shareGroup(), container.Workers{Min: 1, Max: 30}, func() {
			first.CompareAndSwap(0, time.Now().UnixNano())
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the handler's work
		})
		if err != nil {
			return err
		}
		for until := time.Now().Add(time.Minute); lc.Stats().Workers < 30; time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // it is asked again
			if time.Now().After(until) {
				return fmt.Errorf("%d workers after a minute", lc.Stats().Workers)
			}
		}
		took = append(took, time.Since(time.Unix(0, first.Load())).Seconds())
		if err := lc.Stop(context.Background()); err != nil {
			return err
		}
	}
	r.bar(k.name+" share group, 1 to 30 workers on one partition", fmt.Sprintf("%.1f s after the first delivery", median(took)), "≤ 5 s", median(took) <= 5)
	return nil
}

// shareJob is n records of a topic for a share group.
type shareJob struct{ kafkaJob }

// shareGroup names a new one that begins at the oldest record.
func (t *kafkaTopic) shareGroup() string {
	g := t.group()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeGroupConfig, g
	for name, value := range map[string]string{"share.auto.offset.reset": "earliest", "share.isolation.level": "read_committed"} {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, &value
		res.Configs = append(res.Configs, c)
	}
	req.Resources = append(req.Resources, res)
	_, _ = req.RequestWith(context.Background(), t.k.cl) // the container checks it, and raw would wait for records
	return g
}

func (j shareJob) raw() (sample, error) {
	group := j.t.shareGroup()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := newCounter(j.n)
	var all sync.WaitGroup
	for range shareMembers {
		cl, err := kgo.NewClient(kgo.SeedBrokers(j.t.k.addrs...), kgo.ShareGroup(group), kgo.ConsumeTopics(j.t.name))
		if err != nil {
			return sample{}, err
		}
		all.Go(func() {
			defer cl.Close()
			for ctx.Err() == nil {
				j.poll(ctx, cl, c)
			}
		})
	}
	<-c.done
	cancel()
	all.Wait()
	return c.took, nil
}

// poll handles what one poll brings.
func (j shareJob) poll(ctx context.Context, cl *kgo.Client, c *counter) {
	rs := cl.PollRecords(ctx, 500).Records()
	in := make(chan *kgo.Record, len(rs))
	for _, r := range rs {
		in <- r
	}
	close(in)
	var wg sync.WaitGroup
	for range shareWorkers {
		wg.Go(func() {
			for r := range in {
				j.handle(c)
				r.Ack(kgo.AckAccept)
			}
		})
	}
	wg.Wait()
	_ = cl.FlushAcks(context.WithoutCancel(ctx)) // records whose acknowledgement failed come again, and count as more
}

func (j shareJob) longshore() (sample, error) {
	group := j.t.shareGroup()
	c := newCounter(j.n)
	err := j.containers(group, func() { j.handle(c) }, func() { <-c.done })
	return c.took, err
}

// containers runs the members until done returns.
func (j shareJob) containers(group string, handle func(), done func()) (err error) {
	var all []*container.ListenerContainer
	for range shareMembers {
		lc, oops := j.container(group, container.Workers{Min: shareWorkers, Max: shareWorkers}, handle)
		if oops != nil {
			return oops
		}
		all = append(all, lc)
	}
	done()
	for _, lc := range all {
		err = errors.Join(err, lc.Stop(context.Background()))
	}
	return err
}

func (j shareJob) container(group string, workers container.Workers, handle func()) (*container.ListenerContainer, error) {
	src := kafka.New(j.t.k.addrs, kafka.Config{}).ShareGroup(group, []string{j.t.name}, kafka.ShareConfig{Declare: kafka.Declare{Partitions: 1}})
	lc, err := container.New(src, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		handle()
		return nil
	}), container.Config{Workers: workers, DeadLetter: container.DeadLetter{Policy: container.DeadLetterDiscard}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	return lc, lc.Start(context.Background())
}

// paced produces n records at 500/s and measures those that are not slow, one in slow.
func (k *kafkaBroker) paced(n, slow int) (sample, error) {
	t, err := k.created(1)
	if err != nil {
		return sample{}, err
	}
	quick := n
	if slow > 0 {
		quick -= n / slow
	}
	j := shareJob{kafkaJob{t: t, n: quick, work: 10 * time.Millisecond}}
	c := newCounter(quick)
	var num atomic.Int64
	err = j.containers(t.shareGroup(), func() {
		if slow > 0 && num.Add(1)%int64(slow) == 0 {
			time.Sleep(5 * time.Second) //nolint:forbidigo // the handler's work
			return
		}
		j.handle(c)
	}, func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for range n / 5 {
			for range 5 {
				k.cl.Produce(context.Background(), &kgo.Record{Topic: t.name, Value: make([]byte, 100)}, nil)
			}
			<-tick.C
		}
		<-c.done
	})
	return c.took, err
}
