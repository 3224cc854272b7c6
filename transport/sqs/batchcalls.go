package sqs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
)

// carry sends a batch and takes the outcome of each entry.
func (c *consumer) carry(kind opKind, batch []*op) {
	ctx, cancel := context.WithTimeout(c.life, callTimeout)
	defer cancel()
	var out result
	switch kind {
	case opDelete:
		out = c.deleteAll(ctx, batch)
	case opReturn:
		out = c.hideAll(ctx, batch)
	case opDead:
		out = c.copyAll(ctx, batch)
	case opExtend, kinds:
	}
	failed, why := c.carried(kind, batch, &out)
	c.wake()
	c.tellFailed(failed, why)
}

// carried takes the outcome of each entry of a batch.
func (c *consumer) carried(kind opKind, batch []*op, out *result) (failed []*op, why error) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches[kind].running--
	company := out.inCompany(len(batch))
	for i, o := range batch {
		if company && c.life.Err() == nil {
			o.alone = true
			c.batches[kind].queue = append(c.batches[kind].queue, o)
			continue
		}
		err, passing := out.of(i)
		if o.kind == opReturn && (gone(err) || o.overdue(now)) {
			c.visible(o, now)
			err = nil
		}
		passing = passing || codeOr(out.call) == longshore.CodeAuth // others may be given soon
		if err != nil && passing && c.another(o, now) && c.life.Err() == nil {
			o.tries++
			o.unsure = o.unsure || out.unanswered(i)
			o.next = now.Add(min(50*time.Millisecond<<min(o.tries, 6), 2*time.Second))
			c.batches[kind].queue = append(c.batches[kind].queue, o)
			continue
		}
		if c.life.Err() != nil && err != nil {
			continue // Close reports it
		}
		if gone(err) {
			err = o.whenGone(now, err)
		}
		if f := c.finish(o, err); f != nil {
			failed, why = append(failed, f), err
		}
	}
	return failed, why
}

// whenGone is what it means for a delete that its receipt is no longer good. For a
// message that nobody else can have had, and whose last delete got no answer, that delete was
// carried out: not every server takes a second one for a success, as AWS does.
func (o *op) whenGone(now time.Time, err error) error {
	switch {
	case o.kind != opDelete || !o.unsure:
		return err
	case o.h.deadline.After(now):
		return nil
	}
	return fmt.Errorf("the answer to its delete was lost and its lease has ended since, so whether it was deleted is not known: %w", err)
}

func (c *consumer) deleteAll(ctx context.Context, batch []*op) result {
	c.mu.Lock()
	in := &awssqs.DeleteMessageBatchInput{QueueUrl: aws.String(c.url), Entries: make([]types.DeleteMessageBatchRequestEntry, 0, len(batch))}
	for i, o := range batch {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(entryID(i)), ReceiptHandle: aws.String(o.receipt)})
	}
	c.mu.Unlock()
	began := time.Now()
	out, err := c.api.DeleteMessageBatch(ctx, in)
	if err != nil {
		return c.called(opDelete, began, newResult(err))
	}
	return c.called(opDelete, began, entriesOf(out.Successful, func(e *types.DeleteMessageBatchResultEntry) *string { return e.Id }, out.Failed, (*result).failed))
}

// called notes how long a call took, for a stop and for metrics.
func (c *consumer) called(kind opKind, began time.Time, r result) result {
	if r.call == nil {
		c.tookFor(time.Since(began))
	}
	c.opts.Operations.End(kind.operation(), began, r.code())
	return r
}

// overdue tells that the message of a return is visible by itself. Its receipt is an
// old one then: what it still does, it does to somebody else's work.
func (o *op) overdue(now time.Time) bool { return o.kind == opReturn && !o.h.deadline.After(now) }

// visible is the end of a return whose message is visible already, which is what was
// wanted: all that is left of it is the delay, if the message comes here. The caller
// holds mu.
func (c *consumer) visible(o *op, now time.Time) {
	if due := o.since.Add(o.verb.Delay); due.After(now) {
		c.src.counts.wait(o.h.id, due)
	}
}

func (c *consumer) hideAll(ctx context.Context, batch []*op) result {
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(c.url)}
	now := time.Now()
	c.mu.Lock()
	for i, o := range batch {
		if o.overdue(now) {
			continue
		}
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(entryID(i)),
			ReceiptHandle: aws.String(o.receipt), VisibilityTimeout: o.seconds})
	}
	c.mu.Unlock()
	if len(in.Entries) == 0 {
		return newResult(nil)
	}
	return c.changeVisibility(ctx, opReturn, in)
}

func (c *consumer) changeVisibility(ctx context.Context, kind opKind, in *awssqs.ChangeMessageVisibilityBatchInput) result {
	began := time.Now()
	out, err := c.api.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		return c.called(kind, began, newResult(err))
	}
	return c.called(kind, began, entriesOf(out.Successful, func(e *types.ChangeMessageVisibilityBatchResultEntry) *string { return e.Id }, out.Failed, (*result).failed))
}

// extend sends one batch of extensions.
func (c *consumer) extend(batch []*held) {
	ctx, cancel := context.WithTimeout(c.life, callTimeout)
	defer cancel()
	now := time.Now()
	values, receipts := make([]time.Duration, len(batch)), make([]string, len(batch))
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(c.url)}
	c.mu.Lock()
	for i, h := range batch {
		values[i], receipts[i] = c.extension(h, now), h.receipt
		// Settled since it was chosen, or as old as it may get.
		if h.after == nil && values[i] > 0 {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(entryID(i)),
				ReceiptHandle: aws.String(h.receipt), VisibilityTimeout: seconds(values[i])})
		}
	}
	c.mu.Unlock()
	r := newResult(nil)
	if len(in.Entries) > 0 {
		r = c.changeVisibility(ctx, opExtend, in)
	}
	var lost []*longshore.Delivery
	outcomes := make([]error, len(batch))
	c.mu.Lock()
	c.batches[opExtend].running--
	company := r.inCompany(len(in.Entries))
	for i, h := range batch {
		h.alone = h.alone || company
		err, _ := r.of(i)
		if values[i] == 0 {
			h.extending = false
			err = c.unsupported(errors.New("12 hours since the receive are used up"))
		}
		outcomes[i] = err
		if c.wasExtended(h, receipts[i], now, values[i], err) {
			lost = c.lose(h, lost)
		}
		switch {
		case c.held[h.token] != h:
		case receipts[i] != h.receipt: // it goes on with another one
			h.askAgain()
		case values[i] == 0:
			h.capped, h.due = true, h.deadline
			c.schedule(h)
		}
	}
	c.mu.Unlock()
	c.wake()
	c.reportLeases(lost, "the broker says that it is no longer in flight")
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range batch {
		h.answer(outcomes[i])
		c.askMore(h)
	}
}

// copyAll sends copies to the dead-letter queue, as they were received.
func (c *consumer) copyAll(ctx context.Context, batch []*op) result {
	in := &awssqs.SendMessageBatchInput{QueueUrl: aws.String(c.deadURL)}
	size := 0
	for i, o := range batch {
		m := o.h.native
		attrs := c.identifiedCopy(o.h)
		n := sizeOfCopy(m, attrs)
		if n > maxMessageBytes {
			attrs, n = m.MessageAttributes, sizeOfCopy(m, m.MessageAttributes)
		}
		e := types.SendMessageBatchRequestEntry{Id: aws.String(entryID(i)), MessageBody: m.Body, MessageAttributes: attrs}
		if t := m.Attributes[headerTrace]; t != "" {
			e.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{headerTrace: {DataType: aws.String("String"), StringValue: aws.String(t)}}
		}
		if g := m.Attributes["MessageGroupId"]; g != "" {
			e.MessageGroupId = aws.String(g)
		}
		if c.fifo {
			e.MessageDeduplicationId = aws.String(o.h.id)
		}
		if size += n; size > maxMessageBytes && i > 0 {
			break // those behind it are not mentioned in the answer and go next
		}
		in.Entries = append(in.Entries, e)
	}
	began := time.Now()
	out, err := c.api.SendMessageBatch(ctx, in)
	if err != nil {
		return c.called(opDead, began, newResult(err))
	}
	return c.called(opDead, began, entriesOf(out.Successful, sentID, out.Failed, (*result).failedSend))
}
