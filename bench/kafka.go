package main

import (
	"fmt"
	"time"
)

// kafkaCases compare with franz-go read by hand, on the cluster at KAFKA_ADDRS or on
// the client's own broker in this process. What is compared, in each of them:
//
// raw polls a group's records and calls the handler, on 100 goroutines or in the
// loop itself. It tracks nothing: the client commits what was polled every 5 s,
// so a crash loses what was being worked on, and keys have no order.
//
// longshore is a container, ordered by key, that commits contiguously.
func kafkaCases(prefix, needs string, c kafkaCluster) []benchCase {
	return []benchCase{
		{prefix + "/10ms", needs, c.run(kafkaSlow)},
		{prefix + "/1ms", needs, c.run(kafkaQuick)},
		{prefix + "/no-op", needs, c.run(kafkaNoop)},
		{prefix + "/poison", needs, c.run(kafkaPoison)},
		{prefix + "/held", needs, c.run(kafkaHeld)},
		{prefix + "/idle", needs, c.run(kafkaIdle)},
		{prefix + "/transactions", needs, c.run(kafkaTransactions)},
		{prefix + "/share", needs, c.run(kafkaShare)},
		{prefix + "/share-slow", needs, c.run(kafkaShareSlow)},
		{prefix + "/share-scale", needs, c.run(kafkaShareScale)},
	}
}

const kafkaWorkers = 100

// kafkaSlow: waiting handlers, one partition.
func kafkaSlow(k *kafkaBroker, o options, r *report) error {
	n := o.count(20_000)
	t, err := k.filled(1, n)
	if err != nil {
		return err
	}
	job := kafkaJob{t: t, n: n, workers: kafkaWorkers, work: 10 * time.Millisecond}
	one := job
	one.n = min(n, 200) // it takes them one by one
	vs := []variant{
		{"raw, 100 goroutines, nothing tracked", job.raw},
		{"longshore, 100 workers, by key", job.longshore},
		{"watermill-kafka, one at a time by design", one.watermill},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	kafkaTable(r, fmt.Sprintf("%s: 1 partition, 10 ms handler, %d records (Watermill %d)", k.name, n, one.n), vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar(k.name+" 10 ms, 1 partition", fmt.Sprintf("%.2f × raw", ratio), "≥ 0.95 ×", ratio >= 0.95)
	cpu := median(ratios(ss[1], ss[0], sample.cpuPer))
	r.bar(k.name+" 10 ms, 1 partition: CPU", fmt.Sprintf("%.2f × raw", cpu), "≤ 2.5 ×", cpu <= 2.5)
	return nil
}

// kafkaQuick: the cores are the limit.
func kafkaQuick(k *kafkaBroker, o options, r *report) error {
	n := o.count(200_000)
	t, err := k.filled(8, n)
	if err != nil {
		return err
	}
	job := kafkaJob{t: t, n: n, workers: kafkaWorkers, work: time.Millisecond}
	vs := []variant{
		{"raw, 100 goroutines, nothing tracked", job.raw},
		{"longshore, 100 workers, by key", job.longshore},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	kafkaTable(r, fmt.Sprintf("%s: 8 partitions, 1 ms handler, %d records", k.name, n), vs, ss)
	ratio := median(ratios(ss[1], ss[0], sample.rate))
	r.bar(k.name+" 1 ms, 8 partitions", fmt.Sprintf("%.2f × raw", ratio), "≥ 0.85 ×", ratio >= 0.85)
	return nil
}

// kafkaNoop: nothing but the way of a record.
func kafkaNoop(k *kafkaBroker, o options, r *report) error {
	n := o.count(1_000_000)
	t, err := k.filled(8, n)
	if err != nil {
		return err
	}
	job := kafkaJob{t: t, n: n}
	with := func(workers int, unordered bool) kafkaJob {
		j := job
		j.workers, j.unordered = workers, unordered
		return j
	}
	wrapped := job
	wrapped.wrap = true
	vs := []variant{
		{"raw PollRecords loop", job.raw},
		{"raw, 100 goroutines", with(kafkaWorkers, false).raw},
		{"raw PollRecords loop, a Delivery made of each, dropped at once", wrapped.raw},
		{"longshore, Receive and Ack in a loop, no container", job.receive},
		{"longshore, 1 worker, no order", with(1, true).longshore},
		{"longshore, 1 worker, by key", with(1, false).longshore},
		{"longshore, 8 workers, by key", with(8, false).longshore},
		{"longshore, 100 workers, by key", with(kafkaWorkers, false).longshore},
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	kafkaTable(r, fmt.Sprintf("%s: 8 partitions, no-op handler, %d records", k.name, n), vs, ss)
	for _, i := range []int{3, 5} {
		ratio := median(ratios(ss[i], ss[0], sample.rate))
		r.bar(k.name+" no-op: "+vs[i].name, fmt.Sprintf("%.2f × raw PollRecords", ratio), "≥ 0.5 ×", ratio >= 0.5)
	}
	return nil
}

func kafkaTable(r *report, title string, vs []variant, ss [][]sample) {
	var rows [][]string
	for i, v := range vs {
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.rate), "%.0f"), spread(ratios(ss[i], ss[0], sample.rate), "%.2f"),
			fmt.Sprintf("%.2f", median(each(ss[i], sample.cpuPer))/1000), spread(ratios(ss[i], ss[0], sample.cpuPer), "%.2f"),
			fmt.Sprintf("%.1f", median(each(ss[i], sample.allocPer)))})
	}
	r.table(title, []string{"variant", "msg/s min / median / max", "ratio", "CPU µs/msg", "ratio", "allocs/msg"}, rows)
}
