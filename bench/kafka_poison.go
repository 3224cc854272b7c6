package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// kafkaPoison measures how long the good records take beside 1 in 1000 that always
// fails: 100 workers, 10 ms, three retries with the default backoff (1, 2, 4 s), then
// a dead-letter topic. Keys are distinct.
func kafkaPoison(k *kafkaBroker, o options, r *report) error {
	n := o.count(80_000)
	dead, err := k.created(1)
	if err != nil {
		return err
	}
	topic := func(bad func(i int) bool) (kafkaFailing, error) {
		t, err := k.created(8)
		if err != nil {
			return kafkaFailing{}, err
		}
		f := kafkaFailing{kafkaJob: kafkaJob{t: t, n: n, workers: kafkaWorkers, work: 10 * time.Millisecond}, dead: dead.name}
		err = t.fill(n, func(i int) *kgo.Record {
			key := "good-%d"
			if bad(i) {
				key = "bad-%d"
				f.bad++
			}
			return &kgo.Record{Key: fmt.Appendf(nil, key, i), Partition: int32(i % 8)} //nolint:gosec // below 8
		})
		return f, err
	}
	good, err := topic(func(int) bool { return false })
	if err != nil {
		return err
	}
	all, err := topic(func(i int) bool { return i%1000 == i/1000%8 })
	if err != nil {
		return err
	}
	one, err := topic(func(i int) bool { return i%1000 == 0 })
	if err != nil {
		return err
	}
	vs := []variant{
		{"none fails", good.run},
		{"1 in 1000 fails, in all partitions", all.run},
		{"none fails: 7 of the 8 partitions", good.others().run},
		{"1 in 1000 fails, all in one partition: the other 7", one.others().run},
	}
	// 8 s a variant: few rounds tell, the ratio does not swing.
	ss, err := interleave(min(o.rounds, 3), vs)
	if err != nil {
		return err
	}
	var rows [][]string
	for i, v := range vs {
		rs := ratios(ss[i], ss[i/2*2], sample.rate)
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.rate), "%.0f"), spread(rs, "%.3f")})
		if i%2 == 1 {
			r.bar(k.name+" poison: "+v.name, fmt.Sprintf("%.3f", median(rs)), "≥ 0.99 of the rate without", median(rs) >= 0.99)
		}
	}
	r.table(fmt.Sprintf("%s: poison, 8 partitions, 10 ms handler, 100 workers, 3 retries, %d records; time until the good ones are done", k.name, n),
		[]string{"variant", "good msg/s min / median / max", "ratio"}, rows)
	return nil
}

// kafkaFailing is a job of which some records always fail.
type kafkaFailing struct {
	kafkaJob
	dead  string
	bad   int
	spare bool // count partitions other than 0 only
}

func (f kafkaFailing) others() kafkaFailing { f.spare = true; return f }

func (f kafkaFailing) run() (sample, error) {
	count := f.n - f.bad
	if f.spare {
		count = f.n - (f.n+7)/8 // none of those that fail are in the others
	}
	c := newCounter(count)
	lc, err := container.New(f.source(f.t.group()), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		c.begin()
		time.Sleep(f.work) //nolint:forbidigo // the handler's work
		if d.Key[0] == 'b' {
			return errors.New("always")
		}
		if !f.spare || d.Origin.Partition != 0 {
			c.end()
		}
		return nil
	}), container.Config{Workers: container.Workers{Min: f.workers, Max: f.workers}, Redelivery: container.Redelivery{MaxAttempts: 4},
		DeadLetter: container.DeadLetter{To: f.dead}, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	if err := lc.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-c.done
	return c.took, lc.Stop(context.Background())
}
