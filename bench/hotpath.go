package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

const hotKeys = 10_000

// hotPath compares a container with the plain loop Receive → three middlewares →
// Ack on the memory transport, with a handler that does nothing.
func hotPath(o options, r *report) error {
	n := o.count(200_000)
	vs := []variant{{"plain loop", func() (sample, error) { return plainLoop(n) }}}
	for _, order := range []string{"none", "by key"} {
		for _, workers := range []int{1, 8, 100} {
			vs = append(vs, variant{fmt.Sprintf("container, order %s, %d workers", order, workers),
				func() (sample, error) {
					return hotContainer(n, hotKeys, workers, order == "by key", chain(&offered{}, zap.NewNop())...)
				}})
		}
	}
	ss, err := interleave(o.rounds, vs)
	if err != nil {
		return err
	}
	var rows [][]string
	for i, v := range vs {
		over := differences(ss[i], ss[0], sample.cpuPer)
		rows = append(rows, []string{v.name, spread(each(ss[i], sample.cpuPer), "%.0f"), fmt.Sprintf("%+.0f", median(over)),
			spread(ratios(ss[i], ss[0], sample.cpuPer), "%.2f"),
			fmt.Sprintf("%.2f", median(each(ss[i], sample.allocPer)))})
		if i == 0 {
			continue
		}
		least := slices.Min(each(ss[i], sample.cpuPer))
		r.bar(v.name+": CPU over the plain loop", fmt.Sprintf("%+.0f ns", median(over)), "≤ 500 ns", median(over) <= 500)
		r.bar(v.name+": best case", fmt.Sprintf("%.0f ns", least), "≤ 1000 ns", least <= 1000)
		allocs := median(each(ss[i], sample.allocPer))
		r.bar(v.name+": allocations", fmt.Sprintf("%.2f", allocs), "≤ 2", allocs <= 2.05)
	}
	r.table(fmt.Sprintf("Hot path: memory transport, three middlewares, no-op handler, %d messages", n),
		[]string{"variant", "CPU ns/msg min / median / max", "over loop (median)", "× loop", "allocs/msg"}, rows)
	return nil
}

// filled returns a queue that holds n messages with keys of their own.
func filled(n, keys int) (*memory.Broker, error) {
	broker := memory.New(memory.Config{})
	pub, err := broker.Publisher(memory.PublisherConfig{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = pub.Close(context.Background()) }() // nothing can be left in it
	body := make([]byte, 256)
	names := make([][]byte, keys)
	for i := range names {
		names[i] = []byte("key-" + strconv.Itoa(i))
	}
	batch := make([]*longshore.Message, 0, 1000)
	for i := range n {
		m := &longshore.Message{Body: body}
		if keys > 0 {
			m.Key = names[(i*7919)%keys]
		}
		if batch = append(batch, m); len(batch) == cap(batch) || i == n-1 {
			if err := pub.Publish(context.Background(), "bench", batch...); err != nil {
				return nil, err
			}
			batch = batch[:0]
		}
	}
	return broker, nil
}

func plainLoop(n int) (sample, error) {
	broker, err := filled(n, hotKeys)
	if err != nil {
		return sample{}, err
	}
	ctx := context.Background()
	c, err := broker.Queue("bench", memory.QueueConfig{}).Open(ctx, transport.OpenOptions{Window: 64})
	if err != nil {
		return sample{}, err
	}
	h := longshore.Chain(longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil }), chain(&metrics{}, zap.NewNop())...)
	w := startWatch()
	for done := 0; done < n; {
		ds, err := c.Receive(ctx, 16)
		if err != nil {
			return sample{}, err
		}
		for _, d := range ds {
			if err := h.Handle(d.Context(), d); err != nil {
				return sample{}, err
			}
			if err := d.Ack(ctx); err != nil {
				return sample{}, err
			}
			d.Finish(nil)
		}
		done += len(ds)
	}
	s := w.stop(n)
	return s, c.Close(ctx)
}

// hotContainer runs a container with a handler that does nothing over n messages.
func hotContainer(n, keys, workers int, byKey bool, mws ...longshore.Middleware) (sample, error) {
	broker, err := filled(n, keys)
	if err != nil {
		return sample{}, err
	}
	var handled atomic.Int64
	all := make(chan struct{})
	order := container.Unordered
	if byKey {
		order = container.ByKey
	}
	c, err := container.New(broker.Queue("bench", memory.QueueConfig{}), longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
		if handled.Add(1) == int64(n) {
			close(all)
		}
		return nil
	}), container.Config{Workers: container.Workers{Min: workers, Max: workers}, Order: order,
		Middleware: mws, Logger: zap.NewNop()})
	if err != nil {
		return sample{}, err
	}
	w := startWatch()
	if err := c.Start(context.Background()); err != nil {
		return sample{}, err
	}
	<-all
	s := w.stop(n)
	return s, c.Stop(context.Background())
}
