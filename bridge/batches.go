package bridge

import (
	"context"
	"errors"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const (
	// flights is how many batches may be on their way to the target at once. A message leaves at
	// once if none is; while one is, a further one leaves with ten messages or more.
	flights = 8
	// mostInBatch bounds a batch, and a full one is whole tens: SQS sends ten in a call.
	mostInBatch = 100
	tens        = 10
)

// batches publishes the messages of many workers together: one call for several messages costs
// a broker, and on SQS the bill, far less. A worker has one message here at a time, and a key
// one worker, so batches keep the order of each key.
type batches struct {
	ctx  context.Context //nolint:containedctx // ends when the route closes the target: a worker's context must not end others' messages
	pub  transport.Publisher
	dest string

	wg      sync.WaitGroup
	mu      sync.Mutex
	waiting []*parcel
	flying  int // goroutines that publish
}

// parcel is one message on its way. Its outcome is sent once.
type parcel struct {
	m       *longshore.Message
	outcome chan error
}

// publish returns when the target has confirmed or refused the message, or ctx has ended and
// the outcome is not known.
func (b *batches) publish(ctx context.Context, m *longshore.Message) error {
	if ctx.Err() != nil { // the message goes back: sent now, it would only be a copy
		return context.Cause(ctx)
	}
	p := &parcel{m: m, outcome: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, p)
	if b.flying == 0 || b.flying < flights && len(b.waiting) >= tens {
		b.flying++
		b.wg.Go(b.fly)
	}
	b.mu.Unlock()
	select {
	case err := <-p.outcome:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fly publishes batches until nothing waits.
func (b *batches) fly() {
	for {
		batch := b.take()
		if batch == nil {
			return
		}
		b.send(batch)
	}
}

// take returns the next batch; nil ends the goroutine that asked.
func (b *batches) take() []*parcel {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), mostInBatch)
	if n > tens {
		n -= n % tens
	}
	if n == 0 || n < tens && b.flying > 1 { // the last one that flies takes a few, too
		b.flying--
		return nil
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return batch
}

// send publishes a batch and hands each message its outcome. One that was refused among others is
// sent alone, so that it does not answer for its neighbour.
func (b *batches) send(batch []*parcel) {
	msgs := make([]*longshore.Message, len(batch))
	for i, p := range batch {
		msgs[i] = p.m
	}
	err := b.pub.Publish(b.ctx, b.dest, msgs...)
	for i, p := range batch {
		one := outcomeOf(err, i)
		if len(batch) > 1 && (refused(one) || transport.Permanent(one)) {
			one = outcomeOf(b.pub.Publish(b.ctx, b.dest, p.m), 0)
		}
		p.outcome <- one
	}
}

// outcomeOf is the error of one message of a Publish.
func outcomeOf(err error, i int) error {
	if p, ok := errors.AsType[*transport.PartialError](err); ok {
		return p.Failed[i]
	}
	return err
}

// close waits for what is on its way and closes the publisher.
func (b *batches) close(ctx context.Context) error {
	b.wg.Wait()
	return b.pub.Close(ctx)
}
