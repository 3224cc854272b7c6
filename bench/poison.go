package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// poison measures how long the good messages take beside 1 % that always fail:
// 10 workers, 10 ms, distinct keys, default backoff.
func poison(o options, r *report) error {
	n := o.count(10_000) // 10 s a variant
	keep := container.DeadLetter{Policy: container.DeadLetterKeep}
	to := container.DeadLetter{To: "dead"}
	var vs []variant
	for _, v := range []struct {
		name  string
		order container.Order
		dl    container.DeadLetter
		bad   bool
	}{
		{"unordered, no poison", container.Unordered, to, false},
		{"unordered, 1 % poison, dead letter", container.Unordered, to, true},
		{"unordered, 1 % poison, Keep", container.Unordered, keep, true},
		{"by key, no poison", container.ByKey, to, false},
		{"by key, 1 % poison, dead letter", container.ByKey, to, true},
		{"by key, 1 % poison, Keep", container.ByKey, keep, true},
	} {
		vs = append(vs, variant{v.name, func() (sample, error) { return poisoned(n, v.order, v.dl, v.bad) }})
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	var rows [][]string
	for i, v := range vs {
		base := i / 3 * 3
		within := ratios(ss[i], ss[base], sample.rate)
		ratio := median(within)
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.rate), "%.0f"), spread(within, "%.3f")})
		if i != base {
			r.bar("poison: "+v.name, fmt.Sprintf("%.3f", ratio), "≥ 0.95 of the rate without", ratio >= 0.95)
		}
	}
	r.table(fmt.Sprintf("Poison: 10 workers, 10 ms, %d records of distinct keys; time until the good ones are done", n),
		[]string{"variant", "good msg/s min / median / max", "ratio"}, rows)
	return nil
}

func poisoned(n int, order container.Order, dl container.DeadLetter, bad bool) (sample, error) {
	broker, err := filled(n, n)
	if err != nil {
		return sample{}, err
	}
	good := n
	if bad {
		good = n - n/100
	}
	var handled atomic.Int64
	all := make(chan struct{})
	c, err := container.New(broker.Queue("bench", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
		<-time.After(10 * time.Millisecond)
		i, err := strconv.Atoi(string(d.Key[len("key-"):]))
		if err != nil {
			return err
		}
		if bad && i%100 == 0 {
			return errors.New("always")
		}
		if handled.Add(1) == int64(good) {
			close(all)
		}
		return nil
	}), container.Config{Workers: container.Workers{Min: 10, Max: 10}, Order: order, DeadLetter: dl, Logger: zap.NewNop(), DrainTimeout: time.Second})
	if err != nil {
		return sample{}, err
	}
	w := startWatch()
	if err := c.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-all
	s := w.stop(good)
	return s, c.Stop(context.Background())
}
