package sqs

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/hops"
	"github.com/longshore-go/longshore/transport/sqs/internal/codec"
)

// arrivals makes deliveries of received messages. It is safe for concurrent use.
type arrivals struct {
	src     *queueSource            // how bodies and attributes are read
	fifo    bool                    // whether a message has a group, which is its key
	base    context.Context         //nolint:containedctx // the parent of all deliveries, given to Open
	sub     *longshore.Subscription // what all deliveries name as their origin
	settler longshore.Settler       // through which they are settled
	last    atomic.Uint64           // token
}

// of makes a delivery of a message. The lease runs since the broker handed it out, some
// time before now: took is how long the answer was on its way.
func (a *arrivals) of(m *types.Message, now time.Time, took, lease time.Duration) *held {
	h := &held{id: aws.ToString(m.MessageId), receipt: aws.ToString(m.ReceiptHandle), native: m, garbled: !codec.Intact(m)}
	h.since, h.deadline = now, now.Add(lease-min(took, lease/10, time.Second))
	if h.id == "" { // two messages without an id are still two
		h.id = codec.Hashed(h.receipt)
	}
	h.receives, _ = strconv.Atoi(m.Attributes["ApproximateReceiveCount"])
	h.receives = max(h.receives, 1)
	if a.fifo {
		h.group = m.Attributes["MessageGroupId"]
	}
	h.token = a.last.Add(1)
	d := longshore.NewDelivery(a.base, a.settler, h.token)
	codec.Decode(&d.Message, m, a.src.cfg.Envelope.wrapping())
	if m.Attributes["DeadLetterQueueSourceArn"] != "" { // SQS's own move counts too
		d.Headers.Set(hops.Header, hops.Of(d.Headers)+1)
	}
	attempt, last := a.src.attempts.attempt(h.id, h.receives)
	d.Attempt = attempt
	d.Origin = longshore.Origin{Subscription: a.sub, LastReturn: last, Topic: a.src.ref.name, Redelivered: h.receives > 1,
		ReceivedAt: now, GroupID: m.Attributes["MessageGroupId"]}
	if seq := m.Attributes["SequenceNumber"]; seq != "" {
		d.Origin.Position, _ = strconv.ParseUint(seq, 10, 64) // 0 if it is longer than that
	}
	d.SetNative(m)
	h.d = d
	return h
}

// subscription is the origin of a consumer's deliveries. Their identity holds a short name
// of the queue: made of its ARN, which is the same whatever address it was reached by.
func subscription(q *queueHandle, name string) *longshore.Subscription {
	token := strings.ToLower(codec.Hashed(first(q.arn, q.url))[1:13])
	return &longshore.Subscription{Transport: "aws_sqs", Source: name, Identify: func(d *longshore.Delivery) string {
		m, ok := d.Native().(*types.Message)
		if !ok || m.MessageId == nil {
			return ""
		}
		return "s." + token + "." + *m.MessageId
	}}
}
