package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/kafka"
)

const (
	records = 500
	slow    = time.Second // one record in fifty
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// work counts what is done.
type work struct {
	mu        sync.Mutex
	done      map[int]int
	slow      int           // slow records that are done
	late      int           // quick ones that were done after the first slow one
	finished  chan struct{} // closed when all are done
	most, now int           // handlers at once
}

func (w *work) Handle(ctx context.Context, d *longshore.Delivery) error {
	n, err := strconv.Atoi(string(d.Body))
	if err != nil {
		return longshore.Reject(err)
	}
	w.begin()
	took := 2 * time.Millisecond
	if n%50 == 0 {
		took = slow
	}
	t := time.NewTimer(took)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	w.end(n, ctx.Err() == nil)
	return context.Cause(ctx)
}

func (w *work) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now++
	w.most = max(w.most, w.now)
}

func (w *work) end(n int, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now--
	if !done {
		return
	}
	w.done[n]++
	switch {
	case n%50 == 0:
		w.slow++
	case w.slow > 0:
		w.late++
	}
	if len(w.done) == records && w.done[n] == 1 {
		close(w.finished)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	addrs := strings.Split(os.Getenv("KAFKA_ADDRS"), ",")
	if addrs[0] == "" {
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return err
		}
		defer cluster.Close()
		addrs = cluster.ListenAddrs()
	}
	broker, name := kafka.New(addrs, kafka.Config{}), "orders-"+strings.ToLower(rand.Text()[:8])
	w := &work{done: map[int]int{}, finished: make(chan struct{})}
	var all []*container.ListenerContainer
	defer func() {
		for _, c := range all {
			err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for range 3 {
		// Declare creates the topic and sets the group's settings.
		src := broker.ShareGroup(name, []string{name}, kafka.ShareConfig{Declare: kafka.Declare{Partitions: 1}})
		c, err := container.New(src, w, container.Config{Logger: zap.NewNop(), Workers: container.Workers{Min: 10}, DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}})
		if err != nil {
			return err
		}
		if err := c.Start(ctx); err != nil {
			return err
		}
		all = append(all, c)
	}
	if err := produce(ctx, broker, name); err != nil {
		return err
	}
	select {
	case <-w.finished:
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = fmt.Fprintf(out, "%d of %d records of one partition done by up to %d workers at once; %d quick ones were done after the first slow one\n", len(w.done), records, w.most, w.late)
	return err
}

func produce(ctx context.Context, broker *kafka.Broker, topic string) error {
	pub, err := broker.Publisher(kafka.PublisherConfig{})
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close(context.WithoutCancel(ctx)) }()
	for i := range records {
		if err := pub.Publish(ctx, topic, &longshore.Message{Body: strconv.AppendInt(nil, int64(i), 10)}); err != nil {
			return err
		}
	}
	return nil
}
