package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/share"
)

// This file is the share consumer's way out: verdicts, and what became of records.

// Ack accepts a record.
func (c *shareConsumer) Ack(_ context.Context, token uint64) error {
	return c.settled(c.member.Settle(token, share.Accept, c.src.attempts.forget))
}

// Nack releases a record: any member may get it at once. Kafka has no delay for that.
func (c *shareConsumer) Nack(_ context.Context, token uint64, delay time.Duration, attempt int) error {
	if delay > 0 {
		// A delivery that is lost or settled says so first: the caller would otherwise wait here
		// for a record that another member has.
		if err := c.owned(token); err != nil {
			return err
		}
		return unsupported("nack with a delay", c.src.at.name(), "a share group delivers a released record at once", "let the container wait, which keeps the lock")
	}
	return c.settled(c.member.Settle(token, share.Release, func(r *share.Record) { c.src.attempts.next(r, attempt) }))
}

// Reject is not possible: a share group archives a rejected record and keeps no copy.
func (c *shareConsumer) Reject(_ context.Context, token uint64, _ error) error {
	if err := c.owned(token); err != nil {
		return err
	}
	return unsupported("reject", c.src.at.name(), "a share group has no dead-letter destination of its own", "set DeadLetter.To")
}

// Extend renews a record's lock now. The member does that by itself for as long as the record
// is held, so a lease of any length is kept.
func (c *shareConsumer) Extend(ctx context.Context, token uint64, _ time.Duration) error {
	return c.settled(c.member.Renew(ctx, token))
}

// owned says whether a record can still be settled; nil: it can.
func (c *shareConsumer) owned(token uint64) error {
	if c.isClosed() {
		return longshore.ErrClosed
	}
	return c.settled(c.member.Owned(token))
}

// settled is an answer of the member in the contract's words.
func (c *shareConsumer) settled(err error) error {
	switch {
	case err == nil:
		return nil
	case c.isClosed():
		return longshore.ErrClosed
	case errors.Is(err, share.ErrLost):
		return longshore.ErrLost
	case errors.Is(err, share.ErrSettled):
		return longshore.ErrSettled
	}
	return err
}

// shareEvents is the consumer as its member sees it. The methods are called with the member's
// lock held, so they must not call it.
type shareEvents shareConsumer

// Arrived makes deliveries of records.
func (e *shareEvents) Arrived(rs []*share.Record) {
	now := time.Now()
	ds := make([]*longshore.Delivery, len(rs))
	for i, r := range rs {
		d := longshore.NewDelivery(e.base, (*shareConsumer)(e), r.Token)
		sub := e.topics.subscription(partitionOf{topic: r.Topic, id: r.Part.Topic, num: r.Part.Num})
		fill(d, sub, r.Record, e.src.attempts.of(r), now)
		// One more return would be the last: Kafka archives a record after its limit of deliveries.
		d.Origin.Redelivered, d.Origin.LastReturn = r.Deliveries > 1, r.Deliveries >= e.facts.limit
		d.SetNative(r.Record)
		r.Of, ds[i] = d, d
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ready = append(e.ready, ds...)
	(*shareConsumer)(e).announce()
}

// Lost ends deliveries whose records the broker has back.
func (e *shareEvents) Lost(rs []*share.Record, why error) {
	c := (*shareConsumer)(e)
	ds := make([]*longshore.Delivery, 0, len(rs))
	for _, r := range rs {
		if d, ok := r.Of.(*longshore.Delivery); ok {
			c.src.attempts.next(r, d.Attempt)
			ds = append(ds, d)
			c.lastDelivery(r, "was lost")
		}
	}
	e.mu.Lock()
	closed := c.closed()
	e.ready = slices.DeleteFunc(e.ready, func(d *longshore.Delivery) bool { return slices.Contains(ds, d) })
	e.mu.Unlock()
	e.reports.lose(ds, c.lossError(len(ds), why, closed))
}

// lossError says why deliveries are lost.
func (c *shareConsumer) lossError(n int, why error, closed bool) error {
	out := &longshore.Error{Code: longshore.CodeConnLost, Source: c.src.at.name(), Err: longshore.ErrLost,
		Op: fmt.Sprintf("%s: %d records went back to the broker (%v)", c.src.at.title(), n, why)}
	switch {
	case closed:
		out.Op = fmt.Sprintf("%s: closed with %d records that were not settled", c.src.at.title(), n)
	case errors.Is(why, share.ErrLost):
		out.Code, out.Hint = longshore.CodeLeaseLost, "check that the partition's leader responds, and raise share.record.lock.duration.ms"
		out.Op = fmt.Sprintf("%s: the lock of %d records could not be renewed; nothing was settled", c.src.at.title(), n)
	}
	return out
}

// lastDelivery reports a record that goes back after the last delivery that the broker allows.
func (c *shareConsumer) lastDelivery(r *share.Record, what string) {
	if r.Deliveries < c.facts.limit {
		return
	}
	c.reports.Event(transport.Event{Kind: transport.EventSkipped, Skipped: transport.SkippedGivenUp,
		Text: fmt.Sprintf("the record at %s/%d offset %d %s in delivery %d of %d: the broker archives it, and it is not delivered again; raise share.delivery.count.limit, or copy it from the topic",
			r.Topic, r.Part.Num, r.Offset, what, r.Deliveries, c.facts.limit)})
}

// Failed reports a settlement that the broker has not carried out.
func (e *shareEvents) Failed(r *share.Record, v share.Verdict, why error) {
	d, ok := r.Of.(*longshore.Delivery)
	if !ok {
		return
	}
	verb := longshore.VerbAck
	if v == share.Release {
		verb = longshore.VerbNack
	}
	c := (*shareConsumer)(e)
	e.mu.Lock()
	if verb == longshore.VerbAck {
		e.failed++
	}
	e.mu.Unlock()
	if verb == longshore.VerbNack {
		return // it comes again all the same
	}
	c.src.attempts.next(r, d.Attempt)
	c.lastDelivery(r, "was not accepted in time")
	e.reports.SettleFailed(d, longshore.Settlement{Verb: verb}, &longshore.Error{Code: longshore.CodeSettle, Source: e.src.at.name(),
		Op: fmt.Sprintf("settle offset %d of %s/%d", r.Offset, r.Topic, r.Part.Num), Err: why, Hint: "it may be delivered again"})
}

// Undecodable reports a batch whose records went back.
func (e *shareEvents) Undecodable(topic string, num int32, n int, why error) {
	e.reports.repeated("undecodable", fmt.Sprintf("%d records of %s/%d could not be decoded and were released: a member whose client supports their compression can take them, otherwise correct the producer; after %d deliveries the broker archives them", n, topic, num, e.facts.limit), why)
}

// Troubled reports a condition that lasts.
func (e *shareEvents) Troubled(condition string, why error) {
	e.reports.troubled(condition, fmt.Sprintf("%s: requests fail and are repeated (%s)", e.src.at.title(), condition), why)
}

// Recovered reports its end.
func (e *shareEvents) Recovered(condition string) {
	e.reports.over(condition, fmt.Sprintf("%s: requests succeed again (%s)", e.src.at.title(), condition))
}

// Down ends the consumer.
func (e *shareEvents) Down(why error) {
	op := "consume " + e.src.at.title()
	err := e.src.at.b.failure(op, e.src.at.name(), why)
	if errors.Is(why, kerr.UnsupportedVersion) {
		err = e.src.switchedOff(op)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended != nil { // the first cause counts; Close may have come before
		return
	}
	e.ended = err
	(*shareConsumer)(e).announce()
	e.reports.Down(err)
}
