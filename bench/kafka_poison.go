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
// fails: 800 workers, 100 ms (so that a busy machine does not show), three retries with
// the default backoff (1, 2, 4 s), then a dead-letter topic. Keys are distinct.
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
		f := kafkaFailing{kafkaJob: kafkaJob{t: t, n: n, workers: 800, work: 100 * time.Millisecond}, dead: dead.name, others: &[]sample{}}
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
	ss, err := interleave(o.rounds, []variant{{"none fails", good.run}, {"1 in 1000, in all partitions", all.run}, {"1 in 1000, all in one partition", one.run}})
	if err != nil {
		return err
	}
	rates := func(vs, base []sample) (string, string) {
		return spread(each(vs, sample.rate), "%.0f"), spread(ratios(vs, base, sample.rate), "%.3f")
	}
	none, same := rates(ss[0], ss[0])
	fail, ratio := rates(ss[1], ss[0])
	noneOthers, _ := rates(*good.others, *good.others)
	others, otherRatio := rates(*one.others, *good.others)
	r.table(fmt.Sprintf("%s: poison, 8 partitions, 100 ms handler, 800 workers, 3 retries, %d records; time until the good ones are done", k.name, n),
		[]string{"variant", "good msg/s min / median / max", "ratio"}, [][]string{
			{"none fails", none, same},
			{"1 in 1000 fails, in all partitions", fail, ratio},
			{"none fails: 7 of the 8 partitions", noneOthers, same},
			{"1 in 1000 fails, all in one partition: the other 7", others, otherRatio},
		})
	m := median(ratios(ss[1], ss[0], sample.rate))
	r.bar(k.name+" poison: 1 in 1000", fmt.Sprintf("%.3f", m), "≥ 0.99 of the rate without", m >= 0.99)
	m = median(ratios(*one.others, *good.others, sample.rate))
	r.bar(k.name+" poison: partitions without any", fmt.Sprintf("%.3f", m), "≥ 0.99 of the rate without", m >= 0.99)
	return nil
}

// kafkaFailing is a job of which some records always fail.
type kafkaFailing struct {
	kafkaJob
	dead   string
	bad    int
	others *[]sample // of each run: the records of partitions other than 0
}

func (f kafkaFailing) run() (sample, error) {
	c := newCounter(f.n - f.bad)
	others := newCounter(f.n - (f.n+7)/8) // where some fail they may never be complete
	lc, err := container.New(f.source(f.t.group()), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		c.begin()
		others.begin()
		time.Sleep(f.work) //nolint:forbidigo // the handler's work
		if d.Key[0] == 'b' {
			return errors.New("always")
		}
		if d.Origin.Partition != 0 {
			others.end()
		}
		c.end()
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
	*f.others = append(*f.others, others.took)
	return c.took, lc.Stop(context.Background())
}
