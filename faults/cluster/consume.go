//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/effects"
	"github.com/longshore-go/longshore/internal/testkit/history"
)

// drainTimeout is what a stop of a consuming process may take.
const drainTimeout = 5 * time.Second

// consume is a process of the product: it handles messages until it is told to stop.
func consume(ctx context.Context, o options) error {
	h, err := history.Create(o.folder, o.consume)
	if err != nil {
		return err
	}
	e, once, err := openEffects()
	if err != nil {
		return err
	}
	defer e.Close()
	work := &worker{h: h, effects: e}
	plain := longshore.HandlerFunc(work.handle)
	behindMutex := once.Wrap(plain)
	workers := container.Workers{Min: 2, Max: 16}
	if o.endure {
		workers = rescaled()[0]
	}
	c, err := container.New(fromEnvironment(o.on).source(), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		if guarded(string(d.Key)) {
			return behindMutex.Handle(ctx, d)
		}
		return plain.Handle(ctx, d)
	}), container.Config{
		Workers: workers, Order: container.ByKey, WaitForBroker: true, DrainTimeout: drainTimeout,
		DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep}, Redelivery: container.Redelivery{MaxAttempts: 1000},
		Reopen: container.Backoff{Initial: 100 * time.Millisecond, Max: 2 * time.Second},
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return errors.Join(err, h.Close())
	}
	h.Add(history.Event{Kind: history.Joined})
	var beside sync.WaitGroup
	var failed [2]error
	if o.endure {
		beside.Go(func() { failed[0] = rescale(ctx, c) })
		beside.Go(func() { failed[1] = takeSamples(ctx, samplesOf(o.folder, o.consume), ofThisProcess) })
	}
	<-ctx.Done()
	beside.Wait()
	h.Add(history.Event{Kind: history.Draining, N: drainTimeout.Milliseconds()})
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*drainTimeout)
	defer cancel()
	if err := c.Stop(stopping); err != nil {
		fmt.Println(o.consume, "stop:", err)
	}
	h.Add(history.Event{Kind: history.Drained})
	return errors.Join(failed[0], failed[1], h.Close())
}

// guarded says whether a key's messages have an effect behind the mutex: half of them have.
func guarded(key string) bool { return crc32.ChecksumIEEE([]byte(key))%2 == 0 }

// worker handles messages and writes down that it does.
type worker struct {
	h       *history.Writer
	effects *effects.Table
	runs    atomic.Int64
}

func (w *worker) handle(ctx context.Context, d *longshore.Delivery) error {
	id, key, run := string(d.Body), string(d.Key), w.runs.Add(1)
	seq, _ := strconv.ParseInt(id[strings.LastIndexByte(id, '-')+1:], 10, 64) // 0 where it is not ours: the checker names it
	w.h.Add(history.Event{Kind: history.Started, ID: id, Key: key, Seq: seq, Run: run})
	stop := context.AfterFunc(ctx, func() { w.h.Add(history.Event{Kind: history.Canceled, Run: run}) })
	defer stop()
	err := w.work(ctx, id, key)
	if err != nil {
		w.h.Add(history.Event{Kind: history.Failed, ID: id, Run: run, Text: err.Error()})
		return err
	}
	w.h.Add(history.Event{Kind: history.Done, ID: id, Run: run})
	return nil
}

// work takes some milliseconds, and has its effect.
func (w *worker) work(ctx context.Context, id, key string) error {
	if guarded(key) {
		if err := w.effects.Add(ctx, id, key); err != nil {
			return err
		}
	}
	return pause(ctx, time.Duration(2+len(id)%8)*time.Millisecond)
}
