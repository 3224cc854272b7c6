package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func isPoison(i int) bool { return i%poisonEvery == poisonEvery/2 }

func (e *endurance) body(i int) []byte {
	head := fmt.Sprintf(`{"ID":"%d","Note":"`, i)
	if isPoison(i) {
		head = fmt.Sprintf("poison %d ", i)
	}
	from := rand.IntN(len(e.padding) - enduranceSize) //nolint:gosec // padding
	return []byte(head + e.padding[from:from+enduranceSize-len(head)-2] + `"}`)
}

// publish sends all from several goroutines, never more ahead of the program than the
// backlog may be.
func (e *endurance) publish(done <-chan struct{}) error {
	p, dest, err := publisherOf(context.Background(), e.b.source)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.Background()) }()
	var next atomic.Int64
	var publishing sync.WaitGroup
	errs := make(chan error, endurancePublishers)
	for range endurancePublishers {
		publishing.Go(func() {
			for {
				first := int(next.Add(enduranceBatch)) - enduranceBatch
				if first >= e.n || !e.room(done) {
					return
				}
				if err := e.send(p, dest, first); err != nil {
					errs <- fmt.Errorf("publish from %d on: %w", first, err)
					return
				}
			}
		})
	}
	publishing.Wait()
	close(errs)
	return <-errs
}

// room waits until the backlog has room for what all publishers are about to send.
func (e *endurance) room(done <-chan struct{}) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if left, _ := e.child.progress(); left <= e.b.backlog-endurancePublishers*enduranceBatch {
			return true
		}
		select {
		case <-tick.C:
		case <-done:
			return false
		}
	}
}

func (e *endurance) send(p transport.Publisher, dest string, first int) error {
	var msgs []*longshore.Message
	good := 0
	for i := first; i < min(first+enduranceBatch, e.n); i++ {
		msgs = append(msgs, &longshore.Message{ID: strconv.Itoa(i), Key: fmt.Appendf(nil, "customer-%d", i%997), Body: e.body(i)})
		if !isPoison(i) {
			good++
		}
	}
	if err := e.confirmed(p, dest, msgs); err != nil {
		return err
	}
	e.child.published(good)
	return nil
}

// confirmed publishes until the broker has confirmed all: a busy machine lets it miss
// its time now and then, which is not what is tried here.
func (e *endurance) confirmed(p transport.Publisher, dest string, msgs []*longshore.Message) error {
	for try := 1; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := p.Publish(ctx, dest, msgs...)
		cancel()
		var part *transport.PartialError
		if err == nil || try == 5 || !errors.As(err, &part) {
			return err
		}
		left := make([]*longshore.Message, 0, len(part.Failed))
		for _, i := range part.Indexes() {
			left = append(left, msgs[i])
		}
		msgs = left
	}
}
