package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/twmb/franz-go/pkg/kgo"
)

// kafkaHeld counts what a record takes in memory while it is out, and what it
// leaves behind when it is done above a record that is not.
func kafkaHeld(k *kafkaBroker, o options, r *report) error {
	n := o.count(65_000)
	t, err := k.filled(1, n)
	if err != nil {
		return err
	}
	raw, err := t.heldRaw(n)
	if err != nil {
		return err
	}
	ours, err := t.held(n)
	if err != nil {
		return err
	}
	out, done, after := ours[0], ours[1], ours[2]
	r.table(fmt.Sprintf("%s: %d records of 100 bytes in one partition, heap in bytes per record", k.name, n), []string{"what", "bytes"}, [][]string{
		{"raw: polled and held", fmt.Sprintf("%.0f", raw)},
		{"longshore: handed out", fmt.Sprintf("%.0f", out)},
		{"longshore: done and committed, behind the first that is not", fmt.Sprintf("%.0f", done)},
		{"longshore: after that one is done too", fmt.Sprintf("%.0f", after)},
	})
	r.bar(k.name+" held: a record over the client's own", fmt.Sprintf("%.0f bytes", out-raw), "≤ 600", out-raw <= 600)
	r.bar(k.name+" held: done behind a stuck one", fmt.Sprintf("%.0f bytes", done-after), "≤ 64", done-after <= 64)
	return nil
}

func (t *kafkaTopic) heldRaw(n int) (float64, error) {
	before := heap()
	cl, err := kgo.NewClient(kgo.SeedBrokers(t.k.addrs...), kgo.ConsumerGroup(t.group()), kgo.ConsumeTopics(t.name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, err
	}
	defer cl.CloseAllowingRebalance()
	var rs []*kgo.Record
	for len(rs) < n {
		rs = append(rs, cl.PollRecords(context.Background(), 500).Records()...)
	}
	per := perRecord(before, n)
	runtime.KeepAlive(rs)
	return per, nil
}

// held takes the heap with all out, with all but the first done, and with all done.
func (t *kafkaTopic) held(n int) (per [3]float64, err error) {
	ctx := context.Background()
	before := heap()
	src := kafka.New(t.k.addrs, kafka.Config{}).Group(t.group(), []string{t.name}, kafka.GroupConfig{Window: n})
	m, err := src.Open(ctx, transport.OpenOptions{})
	if err != nil {
		return per, err
	}
	defer func() { _ = m.Close(ctx) }() // all is measured
	ds := make([]*longshore.Delivery, 0, n)
	for len(ds) < n {
		got, err := m.Receive(ctx, 500)
		if err != nil {
			return per, err
		}
		ds = append(ds, got...)
	}
	per[0] = perRecord(before, n)
	for _, d := range ds[1:] {
		if err := d.Ack(ctx); err != nil {
			return per, err
		}
	}
	if err := m.Flush(ctx); err != nil {
		return per, err
	}
	first := ds[0]
	ds = nil
	per[1] = perRecord(before, n)
	if err := first.Ack(ctx); err != nil {
		return per, err
	}
	err = m.Flush(ctx)
	per[2] = perRecord(before, n)
	return per, err
}

func perRecord(before uint64, n int) float64 {
	return float64(int64(heap())-int64(before)) / float64(n)
} //nolint:gosec // no such heap

// kafkaIdle counts what 1,000 assigned partitions cost while nothing comes.
func kafkaIdle(k *kafkaBroker, o options, r *report) error {
	const partitions, watched = 1000, 5 * time.Second
	t, err := k.created(partitions)
	if err != nil {
		return err
	}
	none, _, err := idle(watched, func() (func(), error) { return func() {}, nil })
	if err != nil {
		return err
	}
	raw, rawGoroutines, err := idle(watched, func() (func(), error) {
		assigned := make(chan struct{})
		cl, err := kgo.NewClient(kgo.SeedBrokers(k.addrs...), kgo.ConsumerGroup(t.group()), kgo.ConsumeTopics(t.name),
			kgo.FetchMaxWait(250*time.Millisecond), kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { close(assigned) }))
		if err != nil {
			return nil, err
		}
		<-assigned
		return cl.CloseAllowingRebalance, nil
	})
	if err != nil {
		return err
	}
	ours, goroutines, err := idle(watched, func() (func(), error) { return t.idleMember() })
	if err != nil {
		return err
	}
	r.table(fmt.Sprintf("%s: %d partitions assigned, nothing to do", k.name, partitions), []string{"variant", "CPU, % of a core", "goroutines"}, [][]string{
		{"no consumer", fmt.Sprintf("%.2f", none), ""},
		{"raw", fmt.Sprintf("%.2f", raw), fmt.Sprint(rawGoroutines)},
		{"longshore", fmt.Sprintf("%.2f", ours), fmt.Sprint(goroutines)},
	})
	r.bar(k.name+" idle: goroutines over raw", fmt.Sprint(goroutines-rawGoroutines), "≤ 10", goroutines-rawGoroutines <= 10)
	r.bar(k.name+" idle: CPU over raw", fmt.Sprintf("%.2f %% of a core", ours-raw), "≤ 1 %", ours-raw <= 1)
	return nil
}

// idleMember opens a consumer and waits until all partitions are its own.
func (t *kafkaTopic) idleMember() (func(), error) {
	ctx := context.Background()
	group := t.group()
	m, err := kafka.New(t.k.addrs, kafka.Config{}).Group(group, []string{t.name}, kafka.GroupConfig{}).Open(ctx, transport.OpenOptions{})
	if err != nil {
		return nil, err
	}
	return func() { _ = m.Close(ctx) }, t.assigned(group)
}

// assigned waits until the group has a position for each partition: a consumer commits
// where it starts.
func (t *kafkaTopic) assigned(group string) error {
	for {
		all, err := t.positions(group)
		if err != nil || all == int(t.partitions) {
			return err
		}
		<-time.After(100 * time.Millisecond)
	}
}

// idle opens, lets it come to rest, and watches for a while.
func idle(watched time.Duration, open func() (func(), error)) (percent float64, goroutines int, err error) {
	before := runtime.NumGoroutine()
	closeIt, err := open()
	if err != nil {
		return 0, 0, err
	}
	defer closeIt()
	<-time.After(2 * time.Second)
	w := startWatch()
	<-time.After(watched)
	s := w.stop(1)
	return 100 * s.cpu.Seconds() / s.wall.Seconds(), runtime.NumGoroutine() - before, nil
}
