package amqp

import (
	"context"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// receiver turns what the client library receives into deliveries.
type receiver struct {
	base   context.Context           //nolint:containedctx // the parent of the deliveries' contexts
	own    longshore.Settler         // settles them
	key    string                    // the header that holds a message's key; "": none but ours
	queues []string                  // as the broker calls them
	subs   []*longshore.Subscription // one for each queue
	held   *deliveries               // takes them in
}

// receive takes in one delivery of a queue.
func (r *receiver) receive(raw *amqp091.Delivery, queue int) {
	tag := raw.DeliveryTag
	d := longshore.NewDelivery(r.base, r.own, tag)
	codec.Decode(d, raw, r.key)
	d.Origin.Subscription = r.subs[queue]
	d.Origin.Topic = r.queues[queue]
	d.Attempt = codec.Attempt(raw, r.queues[queue])
	d.Origin.Position = tag
	d.Origin.Redelivered = raw.Redelivered || d.Attempt > 1 // to the broker a copy is a first delivery
	d.Origin.ReceivedAt = time.Now()
	raw.Acknowledger = foreign{}
	d.SetNative(raw)
	r.held.arrive(tag, d, raw, queue)
}

// foreign refuses to settle behind the transport's back: the broker would close the
// channel over a tag that is settled twice.
type foreign struct{}

var errForeign = &longshore.Error{Code: longshore.CodeState, Op: "settle a native delivery",
	Hint: "use Ack, Nack and Reject of the longshore.Delivery"}

func (foreign) Ack(uint64, bool) error        { return errForeign }
func (foreign) Nack(uint64, bool, bool) error { return errForeign }
func (foreign) Reject(uint64, bool) error     { return errForeign }

// nativeOf returns the raw delivery, which is never changed.
func nativeOf(d *longshore.Delivery) *amqp091.Delivery {
	raw, _ := d.Native().(*amqp091.Delivery)
	return raw
}
