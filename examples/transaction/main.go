package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
)

const orders = 2000

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	addrs := strings.Split(os.Getenv("KAFKA_ADDRS"), ",")
	if addrs[0] == "" {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return err
		}
		defer cluster.Close()
		addrs = cluster.ListenAddrs()
	}
	s := &shop{broker: kafka.New(addrs, kafka.Config{}), name: "orders-" + strings.ToLower(rand.Text()[:8])}
	return s.open(ctx, out)
}

// shop is the topics and what has happened.
type shop struct {
	broker *kafka.Broker
	name   string // of the topic of orders and of the groups

	priced, failed atomic.Int32
}

// price is the handler: what it publishes counts only if it returns nil.
func (s *shop) price(ctx context.Context, d *longshore.Delivery) error {
	err := kafka.TxFrom(ctx).Publish(ctx, s.name+"-prices", &longshore.Message{Key: d.Key, Body: fmt.Appendf(nil, "price of %s", d.Body)})
	if err != nil {
		return err
	}
	if s.priced.Add(1)%50 == 0 {
		s.failed.Add(1)
		return errors.New("failed after it had published")
	}
	return nil
}

// instance starts one of the services.
func (s *shop) instance(ctx context.Context, id string) (*container.ListenerContainer, error) {
	src := s.broker.Group(s.name, []string{s.name}, kafka.GroupConfig{
		Declare:       kafka.Declare{Partitions: 6},
		Transactional: &kafka.Transactional{ID: s.name + "-" + id}, // the same after a restart
	})
	c, err := container.New(src, longshore.HandlerFunc(s.price), container.Config{Logger: zap.NewNop(), Workers: container.Workers{Min: 10},
		Redelivery: container.Redelivery{Backoff: container.Backoff{Every: 5 * time.Millisecond}}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	if err != nil {
		return nil, err
	}
	return c, c.Start(ctx)
}

// open runs the show.
func (s *shop) open(ctx context.Context, out io.Writer) (err error) {
	prices := &tally{seen: map[string]int{}, all: make(chan struct{})}
	reader, err := container.New(s.broker.Group(s.name+"-readers", []string{s.name + "-prices"}, kafka.GroupConfig{Declare: kafka.Declare{Partitions: 6}}),
		longshore.HandlerFunc(prices.count), container.Config{Logger: zap.NewNop(), Workers: container.Workers{Max: 1}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
	if err != nil {
		return err
	}
	all := []*container.ListenerContainer{reader}
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	if err := reader.Start(ctx); err != nil {
		return err
	}
	for _, id := range []string{"a", "b"} {
		c, err := s.instance(ctx, id)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := s.produce(ctx, 0, orders/2); err != nil {
		return err
	}
	third, err := s.instance(ctx, "c")
	if err != nil {
		return err
	}
	all = append(all, third)
	if err := s.produce(ctx, orders/2, orders); err != nil {
		return err
	}
	select {
	case <-prices.all:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := reader.Stop(context.WithoutCancel(ctx)); err != nil { // it counts until here
		return err
	}
	_, err = fmt.Fprintf(out, "%d orders, %d handler calls, %d failed after publishing: %d prices, %d orders with more than one\n",
		orders, s.priced.Load(), s.failed.Load(), prices.sum, prices.twice)
	return err
}

func (s *shop) produce(ctx context.Context, from, to int) error {
	pub, err := s.broker.Publisher(kafka.PublisherConfig{})
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close(context.WithoutCancel(ctx)) }()
	var msgs []*longshore.Message
	for i := from; i < to; i++ {
		msgs = append(msgs, &longshore.Message{Key: fmt.Appendf(nil, "customer %d", i%100), Body: fmt.Appendf(nil, "order %d", i)})
	}
	return pub.Publish(ctx, s.name, msgs...)
}

// tally counts prices; its container has one worker.
type tally struct {
	seen       map[string]int
	sum, twice int
	all        chan struct{} // closed when each order has a price
}

func (t *tally) count(_ context.Context, d *longshore.Delivery) error {
	t.sum++
	t.seen[string(d.Body)]++
	if t.seen[string(d.Body)] > 1 {
		t.twice++
	}
	if len(t.seen) == orders && t.seen[string(d.Body)] == 1 {
		close(t.all)
	}
	return nil
}
