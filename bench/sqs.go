package main

import (
	"fmt"
	"time"
)

// sqsCases measure on sqstest, in a process of its own, and on the server of
// SQS_ENDPOINT (ElasticMQ) where that is given. Calls per message are HTTP
// requests, whatever they are for.
func sqsCases() []benchCase {
	return []benchCase{
		{"sqs/throughput", "", onSQS(sqsThroughput)},
		{"sqs/fifo", "", onSQS(sqsGroups)},
		{"sqs/servers", "", onSQS(sqsServers)},
		{"sqs/stop", "", onSQS(sqsStop)},
		{"sqs/leases", "", sqsLeases},
	}
}

func onSQS(f func([]*sqsEnd, options, *report) error) func(options, *report) error {
	return func(o options, r *report) error {
		ends, stop, err := sqsEnds()
		if err != nil {
			return err
		}
		defer stop()
		return f(ends, o, r)
	}
}

const (
	sqsPolls   = 10
	sqsWorkers = 100
)

// counting keeps how many calls a variant made, beside its samples.
type counting struct {
	variant
	calls []float64 // per message, by round
}

func newCounting(name string, run func() (sample, float64, error)) *counting {
	c := &counting{}
	c.variant = variant{name, func() (sample, error) {
		s, calls, err := run()
		c.calls = append(c.calls, calls)
		return s, err
	}}
	return c
}

func runCounting(rounds int, cs []*counting) ([][]sample, error) {
	vs := make([]variant, len(cs))
	for i, c := range cs {
		vs[i] = c.variant
	}
	return interleave(rounds, vs)
}

// sqsThroughput is the container beside a loop written by hand with as many polls,
// goroutines and batched deletes, and gocloud's subscription.
func sqsThroughput(ends []*sqsEnd, o options, r *report) error {
	for _, e := range ends {
		n := o.count(20_000)
		job := sqsJob{end: e, n: n, work: 10 * time.Millisecond}
		cs := []*counting{
			newCounting("hand-written loop", job.on((*sqsRun).loop)),
			newCounting("longshore", job.on((*sqsRun).longshore)),
			newCounting("gocloud pubsub", job.on((*sqsRun).gocloud)),
		}
		ss, err := runCounting(o.rounds, cs)
		if err != nil {
			return err
		}
		sqsTable(r, fmt.Sprintf("SQS on %s: 10 ms handler, 100 at once, 10 polls, deletes by ten, %d messages", e.name, n), cs, ss)
		ratio, cpu := median(ratios(ss[1], ss[0], sample.rate)), median(ratios(ss[1], ss[0], sample.cpuPer))
		r.bar("sqs on "+e.name+", 10 ms handler", fmt.Sprintf("%.2f × (CPU %.2f ×)", ratio, cpu), "≥ 0.95 ×", ratio >= 0.95)
		calls := median(cs[1].calls)
		r.bar("sqs on "+e.name+", calls per message", fmt.Sprintf("%.3f", calls), "≤ 0.21", calls <= 0.21)
	}
	return nil
}

// sqsGroups is a FIFO queue with 300 groups. The loop by hand works off one answer
// of a poll at a time, groups beside each other, and deletes it as one batch.
func sqsGroups(ends []*sqsEnd, o options, r *report) error {
	for _, e := range ends {
		n := o.count(10_000)
		job := sqsJob{end: e, n: n, groups: 300, work: 10 * time.Millisecond}
		cs := []*counting{
			newCounting("hand-written loop", job.on((*sqsRun).fifoLoop)),
			newCounting("longshore", job.on((*sqsRun).longshore)),
		}
		ss, err := runCounting(o.rounds, cs)
		if err != nil {
			return err
		}
		sqsTable(r, fmt.Sprintf("SQS FIFO on %s: 300 groups, 10 ms handler, 10 polls, %d messages", e.name, n), cs, ss)
		ratio := median(ratios(ss[1], ss[0], sample.rate))
		r.bar("sqs FIFO on "+e.name+", 300 groups in order", fmt.Sprintf("%.2f ×", ratio), "≥ 0.95 ×", ratio >= 0.95)
	}
	return nil
}

func sqsTable(r *report, title string, cs []*counting, ss [][]sample) {
	var rows [][]string
	for i, c := range cs {
		rows = append(rows, []string{c.name, spread(each(ss[i], sample.rate), "%.0f"), spread(ratios(ss[i], ss[0], sample.rate), "%.2f"),
			fmt.Sprintf("%.0f", median(each(ss[i], sample.cpuPer))/1000), fmt.Sprintf("%.2f", median(ratios(ss[i], ss[0], sample.cpuPer))),
			fmt.Sprintf("%.3f", median(c.calls))})
	}
	r.table(title, []string{"variant", "msg/s min / median / max", "ratio min / median / max", "client CPU µs/msg", "ratio", "calls/msg"}, rows)
}
