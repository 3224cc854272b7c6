package amqp

import (
	"context"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// puller fetches messages one by one (basic.get) while a Receive waits for them.
type puller struct {
	ch         *consumeChannel                        // basic.get is answered in turn on it
	writer     *settleWriter                          // whose goroutine calls the channel
	held       *deliveries                            // says whether one more is wanted
	window     *prefetch                              // says whether anything is
	receive    func(raw *amqp091.Delivery, queue int) // takes what was fetched
	queues     []string                               // asked in turn
	pause      time.Duration                          // after all queues were found empty
	autoAck    bool                                   // nothing is settled
	operations transport.Operations                   // times each fetch
}

// run fetches until ctx ends or the channel does.
func (p *puller) run(ctx context.Context) {
	empty := time.NewTimer(0)
	defer empty.Stop()
	queue := 0
	for {
		for p.wants() {
			got := false
			for range p.queues {
				raw, ok, err := p.get(ctx, p.queues[queue])
				if err != nil {
					return // the consumer's watch knows why
				}
				if ok {
					got = true
					p.receive(&raw, queue)
				}
				queue = (queue + 1) % len(p.queues)
				if !p.wants() {
					break
				}
			}
			if !got {
				break
			}
		}
		empty.Reset(p.pause)
		select {
		case <-p.held.fetch:
		case <-empty.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *puller) wants() bool { return p.window.open() && p.held.wants() }

// get takes one message. It goes through the writer, which alone uses the channel.
func (p *puller) get(ctx context.Context, queue string) (raw amqp091.Delivery, ok bool, err error) {
	type answer struct {
		raw amqp091.Delivery
		ok  bool
	}
	answers := make(chan answer, 1)
	err = p.writer.do(ctx, func() error {
		began := p.operations.Begin()
		raw, ok, err := p.ch.Get(queue, p.autoAck)
		p.operations.End(longshore.OperationReceive, began, codeOr(err))
		answers <- answer{raw, ok}
		return err
	})
	if err != nil {
		return raw, false, fmt.Errorf("basic.get: %w", err)
	}
	a := <-answers
	return a.raw, a.ok, nil
}
