package sqs

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs/internal/codec"
)

// calls are the calls that a consumer makes. It keeps no state but the broker's pace.
type calls struct {
	*queueHandle
	metrics transport.Operations // hears how long each call took
	pace    pace                 // holds back while SQS asks for fewer calls
}

// pace is how slowly the broker answers: the longest of the last calls, where a slow one
// counts for less with each that follows.
type pace struct{ slowest atomic.Int64 }

func (p *pace) took(d time.Duration) { p.slowest.Store(max(int64(d), p.slowest.Load()*3/4)) }

// atLeast is d, or twice what the broker has lately needed: a busy one learns late that a
// poll was cut off.
func (p *pace) atLeast(d time.Duration) time.Duration {
	return min(max(d, 2*time.Duration(p.slowest.Load())), max(d, slowest))
}

// atOnce is how long an answer may take that did not wait for messages. Behind a slow
// link, or with large messages, each answer takes seconds, and one poll after the other
// would bring ten messages in as many.
func (p *pace) atOnce() time.Duration {
	return min(max(time.Second, 2*time.Duration(p.slowest.Load())), maxWait/2)
}

// grace is how long the end of polling waits for answers: longer where the broker has
// lately been slow, since it may be about to answer. A FIFO queue is asked again after the
// cut.
func (c *calls) grace() time.Duration {
	if c.fifo {
		return cancelGrace
	}
	return c.pace.atLeast(cancelGrace)
}

// checkedHere turns off the SDK's own look at the bodies of a receive. For one that was
// changed on its way it throws all of the answer away, which hides the others, again and
// again, until a redrive policy takes them for failures.
func checkedHere(o *awssqs.Options) { o.DisableMessageChecksumValidation = true }

// receive makes one poll. life outlasts the poll's own context.
func (c *calls) receive(life context.Context, p *poll) (*awssqs.ReceiveMessageOutput, error) {
	ctx, cancel := context.WithTimeout(p.ctx, maxWait+callTimeout)
	defer cancel()
	in := &awssqs.ReceiveMessageInput{QueueUrl: aws.String(c.url), MaxNumberOfMessages: int32(p.room), //nolint:gosec // at most 10
		WaitTimeSeconds: seconds(p.patience), VisibilityTimeout: seconds(p.lease),
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}}
	if c.fifo {
		in.ReceiveRequestAttemptId = aws.String(codec.NewID())
	}
	out, err := c.api.ReceiveMessage(ctx, in, checkedHere)
	if err != nil && c.fifo && ctx.Err() == nil && !permanent(err) {
		// A FIFO queue hands out the same messages again, should the answer have been
		// lost.
		out, err = c.api.ReceiveMessage(ctx, in, checkedHere)
	}
	if err != nil && c.fifo && p.ctx.Err() != nil {
		return c.afterCut(life, in)
	}
	return out, err
}

// afterCut asks for what a poll may have been given at the moment when it was cut off.
// With the attempt's id a FIFO queue hands out the same again; on a standard queue it
// comes back when quietLease ends.
func (c *calls) afterCut(life context.Context, in *awssqs.ReceiveMessageInput) (*awssqs.ReceiveMessageOutput, error) {
	ctx, cancel := context.WithTimeout(life, c.pace.atLeast(cutTime))
	defer cancel()
	in.WaitTimeSeconds = 0
	return c.api.ReceiveMessage(ctx, in, checkedHere)
}

// called notes how long a call took, for a stop and for metrics.
func (c *calls) called(kind longshore.OperationKind, began time.Time, r result) result {
	if r.call == nil {
		c.pace.took(time.Since(began))
	}
	c.metrics.End(kind, began, r.code())
	return r
}

// change is an entry of a call that deletes, or changes visibility.
type change struct {
	receipt string // the newest one
	seconds int32  // the new visibility timeout
	skip    bool   // visible by itself already: it is not sent, and succeeds
}

// changesOf are the entries for settlements. A receipt may have been replaced by a newer
// one since its verdict.
func changesOf(batch []*op, now time.Time) []change {
	out := make([]change, len(batch))
	for i, o := range batch {
		out[i] = change{receipt: o.receipt, seconds: o.seconds, skip: o.overdue(now)}
	}
	return out
}

// delete deletes by receipts.
func (c *calls) delete(ctx context.Context, changes []change) result {
	in := &awssqs.DeleteMessageBatchInput{QueueUrl: aws.String(c.url), Entries: make([]types.DeleteMessageBatchRequestEntry, 0, len(changes))}
	for i, e := range changes {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(entryID(i)), ReceiptHandle: aws.String(e.receipt)})
	}
	began := time.Now()
	out, err := c.api.DeleteMessageBatch(ctx, in)
	if err != nil {
		return c.called(longshore.OperationAck, began, newResult(err))
	}
	return c.called(longshore.OperationAck, began,
		entriesOf(out.Successful, func(e *types.DeleteMessageBatchResultEntry) *string { return e.Id }, out.Failed, (*result).failed))
}

// hide changes visibility; kind is what metrics call it.
func (c *calls) hide(ctx context.Context, kind longshore.OperationKind, changes []change) result {
	in := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(c.url)}
	for i, e := range changes {
		if !e.skip {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(entryID(i)),
				ReceiptHandle: aws.String(e.receipt), VisibilityTimeout: e.seconds})
		}
	}
	if len(in.Entries) == 0 {
		return newResult(nil)
	}
	began := time.Now()
	out, err := c.api.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		return c.called(kind, began, newResult(err))
	}
	return c.called(kind, began,
		entriesOf(out.Successful, func(e *types.ChangeMessageVisibilityBatchResultEntry) *string { return e.Id }, out.Failed, (*result).failed))
}

// copyDead sends copies to the dead-letter queue, as the messages were received.
func (c *calls) copyDead(ctx context.Context, batch []*op) result {
	in := &awssqs.SendMessageBatchInput{QueueUrl: aws.String(c.deadURL)}
	size := 0
	for i, o := range batch {
		e, n := deadCopy(o.h, c.fifo)
		e.Id = aws.String(entryID(i))
		if size += n; size > maxMessageBytes && i > 0 {
			break // those behind it are not mentioned in the answer and go next
		}
		in.Entries = append(in.Entries, e)
	}
	began := time.Now()
	out, err := c.api.SendMessageBatch(ctx, in)
	if err != nil {
		return c.called(longshore.OperationReject, began, newResult(err))
	}
	return c.called(longshore.OperationReject, began, entriesOf(out.Successful, sentID, out.Failed, (*result).failedSend))
}

// deadCopy is the copy of a message in the dead-letter queue and its size. It carries the
// count of its moves, so that dead letters which go round come to an end, and an identity,
// since it may be sent twice; neither, if that makes it too large.
func deadCopy(h *held, fifo bool) (e types.SendMessageBatchRequestEntry, size int) {
	m := h.native
	headers := h.d.Received().Headers
	marks := []codec.Mark{{Name: hops.Header, Value: hops.Of(headers) + 1}}
	if !headers.Has(longshore.HeaderID) {
		marks = append(marks, codec.Mark{Name: longshore.HeaderID, Value: longshore.Identity(h.d)})
	}
	attrs := codec.CopyAttributes(m, marks...)
	if size = codec.SizeOfCopy(m, attrs); size > maxMessageBytes {
		attrs, size = m.MessageAttributes, codec.SizeOfCopy(m, m.MessageAttributes)
	}
	e = types.SendMessageBatchRequestEntry{MessageBody: m.Body, MessageAttributes: attrs}
	if t := m.Attributes[codec.HeaderTrace]; t != "" {
		e.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{codec.HeaderTrace: {DataType: aws.String("String"), StringValue: aws.String(t)}}
	}
	if g := m.Attributes["MessageGroupId"]; g != "" {
		e.MessageGroupId = aws.String(g)
	}
	if fifo {
		e.MessageDeduplicationId = aws.String(h.id)
	}
	return e, size
}
