package bridge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

const (
	// flights is how many batches may be on their way to the target at once: enough for a window of
	// 256 in batches of ten. A message leaves at once if none is, or after linger where calls are to
	// fill up; while one is, a further one leaves with ten messages or more.
	flights = 32
	// mostInBatch bounds a batch, and a full one is whole tens: SQS sends ten in a call.
	mostInBatch = 100
	tens        = 10
	// linger is how long a few messages wait for others at a broker that is paid by the call, while
	// messages come in company: one that comes alone, as of a single key, does not wait.
	linger = 5 * time.Millisecond
)

// batches publishes the messages of many workers together: one call for several messages costs
// a broker, and on SQS the bill, far less. A worker has one message here at a time, and a key
// one worker, so batches keep the order of each key.
type batches struct {
	ctx   context.Context //nolint:containedctx // ends when the route closes the target: a worker's context must not end others' messages
	pub   transport.Publisher
	dest  string
	calls bool // the broker takes so few messages in a call that full ones are worth a wait

	wg      sync.WaitGroup
	mu      sync.Mutex
	waiting []*parcel
	flying  int           // goroutines that publish
	company bool          // the batch before was of several messages
	full    chan struct{} // one of them lingers; closed when ten wait
}

// newBatches publishes to dest of a broker with these abilities, until ctx ends.
func newBatches(ctx context.Context, pub transport.Publisher, dest string, c longshore.Capabilities) *batches {
	return &batches{ctx: ctx, pub: pub, dest: dest, calls: c.MaxPublishBatch > 0}
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
	if b.full != nil && len(b.waiting) >= tens {
		close(b.full)
		b.full = nil
	}
	b.mu.Unlock()
	select {
	case err := <-p.outcome:
		return err
	case <-ctx.Done():
		b.withdraw(p)
		return context.Cause(ctx)
	}
}

// withdraw takes back a parcel that has not left: its message goes back to the source, and sent
// later it would be a copy behind those that come after it.
func (b *batches) withdraw(p *parcel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, p); i >= 0 {
		b.waiting = slices.Delete(slices.Clone(b.waiting), i, i+1) // batches on their way share the array
	}
}

// fly publishes batches until nothing waits.
func (b *batches) fly() {
	for {
		b.wait()
		batch := b.take()
		if batch == nil {
			return
		}
		b.send(batch)
	}
}

// wait lets a call fill up.
func (b *batches) wait() {
	b.mu.Lock()
	n := len(b.waiting)
	if !b.calls || !b.company || b.full != nil || n == 0 || n >= tens {
		b.mu.Unlock()
		return
	}
	full := make(chan struct{})
	b.full = full
	b.mu.Unlock()
	t := time.NewTimer(linger)
	defer t.Stop()
	select {
	case <-full:
	case <-t.C:
	case <-b.ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full == full {
		b.full = nil
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
	b.company = n > 1
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
