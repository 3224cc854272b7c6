package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// dials remembers how connecting went: the client itself goes on trying and, when
// the time of a record is over, says only that.
type dials struct {
	met  atomic.Bool // a broker has answered
	last atomic.Pointer[error]
	turn chan struct{} // one asks, the others wait: who finds silent addresses takes them from the client
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (d *dials) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		d.last.Store(nil)
		return
	}
	d.last.Store(&err)
}

// reach asks the cluster for an answer before the first record: else a wrong
// address or password would show only when the record's time is over.
func (p *Publisher) reach(ctx context.Context, cl *kgo.Client, topic string) error {
	if p.dials.met.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout) // the turn may be with one whom nobody answers
	defer cancel()
	select {
	case p.dials.turn <- struct{}{}:
		defer func() { <-p.dials.turn }()
	case <-ctx.Done():
		return p.b.opened(p.publishing(topic), topic, ctx.Err())
	}
	if p.dials.met.Load() {
		return nil
	}
	if err := answers(ctx, cl); err != nil {
		return p.b.opened(p.publishing(topic), topic, err)
	}
	p.dials.met.Store(true)
	return nil
}

func (p *Publisher) publishing(topic string) string {
	return fmt.Sprintf("publish to kafka topic %q at %s", topic, p.b.address())
}

// explain says of records that ran out of time why no broker took them, if none
// could be connected to. They may have been written before.
func (p *Publisher) explain(topic string, err error) error {
	dial := p.dials.last.Load()
	if dial == nil || err == nil {
		return err
	}
	because := func(late error) error {
		out := *longshoreError(p.b.failure(p.publishing(topic), topic, *dial))
		out.Err = fmt.Errorf("%w: %w", out.Err, late)
		out.Hint = "it may have been written all the same; " + out.Hint
		return &out
	}
	var partial *transport.PartialError
	if errors.As(err, &partial) {
		for i, e := range partial.Failed {
			if late := longshoreError(e); late.Code == longshore.CodeTimeout {
				partial.Failed[i] = because(late.Err)
			}
		}
		return err
	}
	if late := longshoreError(err); late.Code == longshore.CodeTimeout {
		return because(late.Err)
	}
	return err
}

// longshoreError is the one in err; it is never nil.
func longshoreError(err error) *longshore.Error {
	var e *longshore.Error
	if errors.As(err, &e) {
		return e
	}
	return &longshore.Error{Err: err}
}
