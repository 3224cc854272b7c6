package demo

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// quiet is how long a queue must give nothing before it counts as empty.
const quiet = time.Second

// audit reads the dead-letter destination, and the queue itself if orders are
// unaccounted for: what is still there is not lost.
func (l *leg) audit(ctx context.Context) {
	if l.ledger.unseen() > 0 {
		l.read(ctx, l.rig.dead, l.ledger.dead, func() bool { return l.ledger.unseen() > 0 })
	}
	if l.ledger.waiting() > 0 {
		l.read(ctx, l.rig.source, l.ledger.left, func() bool { return l.ledger.waiting() > 0 })
	}
}

// read takes messages while more are expected and some come. An error only ends
// it: what was not found counts as lost.
func (l *leg) read(ctx context.Context, src transport.Source, found func(n int), more func() bool) {
	consumer, err := src.Open(ctx, transport.OpenOptions{Base: ctx, Window: publishBatch, MaxWindow: publishBatch})
	if err != nil {
		l.tell("audit", l.rig.name+": "+err.Error())
		return
	}
	defer func() { _ = consumer.Close(ctx) }() // nothing more is wanted of it
	for more() {
		ds, err := receive(ctx, consumer)
		for _, d := range ds {
			found(numberIn(d))
			_ = d.Ack(ctx) // the queue is removed anyway
		}
		if err != nil {
			return
		}
	}
	_ = consumer.Flush(ctx)
}

func receive(ctx context.Context, c transport.Consumer) ([]*longshore.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	return c.Receive(ctx, publishBatch)
}
