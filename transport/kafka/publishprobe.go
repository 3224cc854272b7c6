package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// dials remembers how connecting went: the client itself goes on trying and, when
// the time of a record is over, says only that.
type dials struct {
	met  atomic.Bool           // a broker has answered
	last atomic.Pointer[error] // of the last dial; nil after one that succeeded
	turn chan struct{}         // one asks, the others wait: who finds silent addresses takes them from the client
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
	ctx, cancel := context.WithTimeout(ctx, p.timeout) // whoever has the turn may be waiting for a silent broker
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
	if err := cluster.Probe(ctx, cl); err != nil {
		return p.b.opened(p.publishing(topic), topic, err)
	}
	p.dials.met.Store(true)
	return nil
}

// publishing is the operation that errors name.
func (p *Publisher) publishing(topic string) string {
	return fmt.Sprintf("publish to kafka topic %q at %s", topic, p.b.address())
}

// explain says of records that ran out of time why no broker took them: none could be
// connected to, and they may have been written before, or there is no such topic.
func (p *Publisher) explain(ctx context.Context, cl *kgo.Client, topic string, err error) error {
	var partial *transport.PartialError
	late := func(err error) bool { return longshoreError(err).Code == longshore.CodeTimeout }
	single := !errors.As(err, &partial)
	if err == nil || single && !late(err) || !single && !slices.ContainsFunc(slices.Collect(maps.Values(partial.Failed)), late) {
		return err
	}
	because := p.because(ctx, cl, topic)
	if because == nil {
		return err
	}
	if single {
		return because(longshoreError(err).Err)
	}
	for i, e := range partial.Failed {
		if late(e) {
			partial.Failed[i] = because(longshoreError(e).Err)
		}
	}
	return err
}

// because makes the error of a record from that of its lateness; nil: there is no better
// reason than its lateness.
func (p *Publisher) because(ctx context.Context, cl *kgo.Client, topic string) func(late error) error {
	if dial := p.dials.last.Load(); dial != nil {
		return func(late error) error {
			out := *longshoreError(p.b.failure(p.publishing(topic), topic, *dial))
			out.Err = fmt.Errorf("%w: %w", out.Err, late)
			return &out
		}
	}
	ctx, cancel := context.WithTimeout(ctx, unanswered)
	defer cancel()
	resp, err := cluster.Metadata(ctx, cl, topic)
	if err != nil || len(resp.Topics) != 1 || resp.Topics[0].ErrorCode != kerr.UnknownTopicOrPartition.Code {
		return nil
	}
	return func(error) error { return p.b.failure(p.publishing(topic), topic, kerr.UnknownTopicOrPartition) }
}

// longshoreError is the one in err; it is never nil.
func longshoreError(err error) *longshore.Error {
	var e *longshore.Error
	if errors.As(err, &e) {
		return e
	}
	return &longshore.Error{Err: err}
}
