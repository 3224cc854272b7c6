package containertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
)

// otherWait is how long the first waits for another who has got his message. Who waits for
// the first in turn, by a lock, takes all of that once.
const otherWait = time.Second

// giveAway ends the lease and lets another process have the message to its end while the
// first is in the middle, as after a pause that was longer than the lease. It comes here
// again too.
func (p *play) giveAway() {
	p.strike = func(d *longshore.Delivery) {
		p.broker.TakeBack(queue)
		await(d.Context().Done())
		over := make(chan struct{})
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.Context()), idleWait)
		o := another(ctx, d)
		p.others.Go(func() {
			defer cancel()
			defer close(over)
			defer func() { _ = recover() }() // its process would be gone; the message comes again
			_ = p.second.Handle(o.Context(), o)
		})
		wait := otherWait
		if p.held.Load() {
			wait /= 20
		}
		late := time.NewTimer(wait)
		defer late.Stop()
		select {
		case <-over:
		case <-late.C:
			p.held.Store(true)
		}
	}
}

// another is the delivery as the broker redelivers it.
func another(ctx context.Context, d *longshore.Delivery) *longshore.Delivery {
	o := longshore.NewDelivery(ctx, &elsewhere{}, 1)
	o.Message, o.Origin, o.Attempt = *d.Received(), d.Origin, d.Attempt+1
	o.Origin.Redelivered = true
	return o
}

// elsewhere takes one settlement.
type elsewhere struct{ done atomic.Bool }

func (e *elsewhere) settle() error {
	if e.done.Swap(true) {
		return longshore.ErrSettled
	}
	return nil
}

func (e *elsewhere) Ack(context.Context, uint64) error                      { return e.settle() }
func (e *elsewhere) Nack(context.Context, uint64, time.Duration, int) error { return e.settle() }
func (e *elsewhere) Reject(context.Context, uint64, error) error            { return e.settle() }
func (e *elsewhere) Extend(context.Context, uint64, time.Duration) error    { return nil }
