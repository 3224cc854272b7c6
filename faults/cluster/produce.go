//go:build unix

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

const (
	producers = 2
	keysEach  = 10 // of a producer, so that the order of a key is that of one sender
)

// counter is for the person who watches.
type counter struct{ sent, confirmed atomic.Int64 }

// sender sends a message and waits until the broker has it. An error means that nobody knows.
type sender interface {
	send(ctx context.Context, key, body string) error
	close()
}

// produce sends the messages of one producer's keys, each after the one before it, until ctx
// ends.
func produce(ctx context.Context, o options, b broker, number int, count *counter) error {
	h, err := history.Create(o.folder, fmt.Sprintf("producer-%d", number))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	every := time.Duration(producers*keysEach) * time.Second / time.Duration(o.rate)
	for k := range keysEach {
		all.Go(func() {
			key := fmt.Sprintf("key-%d-%d", number, k)
			s := b.sender(!o.unsafe)
			defer s.close()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for seq := int64(1); ; seq++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				one(ctx, h, s, key, seq, count)
			}
		})
	}
	all.Wait()
	return h.Close()
}

// one sends a message. It is not cut off by the end of the run, which would leave its outcome
// unknown for no reason.
func one(ctx context.Context, h *history.Writer, s sender, key string, seq int64, count *counter) {
	id := fmt.Sprintf("%s-%d", key, seq)
	h.Add(history.Event{Kind: history.Published, ID: id, Key: key, Seq: seq})
	count.sent.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := s.send(ctx, key, id); err != nil {
		h.Add(history.Event{Kind: history.Unconfirmed, ID: id, Text: err.Error()})
		return
	}
	count.confirmed.Add(1)
	h.Add(history.Event{Kind: history.Confirmed, ID: id})
}
