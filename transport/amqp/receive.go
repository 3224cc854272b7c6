package amqp

import (
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// arrived puts a delivery into the ring.
func (c *consumer) arrived(raw *amqp091.Delivery, queue int) {
	tag := raw.DeliveryTag
	d := longshore.NewDelivery(c.base, &c.own, tag)
	codec.Decode(d, raw, c.cfg.Key)
	d.Origin.Subscription = c.subs[queue]
	d.Origin.Topic = c.queues[queue]
	d.Attempt = codec.Attempt(raw, c.queues[queue])
	d.Origin.Position = tag
	d.Origin.Redelivered = raw.Redelivered || d.Attempt > 1 // to the broker a copy is a first delivery
	d.Origin.ReceivedAt = time.Now()
	raw.Acknowledger = foreign{}
	d.SetNative(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return // it goes back with the channel
	}
	d.Origin.LastReturn = c.limits[queue].last(codec.Returns(raw))
	c.tags.Arrive(tag, d)
	if c.passes(raw, tag, queue) {
		return
	}
	if c.ignoring {
		c.tags.Hold(tag)
		return
	}
	if c.standby {
		c.activate()
	}
	signal(c.ready)
}

// activate notes that this is the active consumer. mu is held.
func (c *consumer) activate() {
	c.standby = false
	c.tell.event(transport.Event{Kind: transport.EventActive, Text: c.src.title() + ": now the active consumer"})
}

// foreign refuses to settle behind the transport's back: the broker would close
// the channel over the tag that is settled twice.
type foreign struct{}

var errForeign = &longshore.Error{Code: longshore.CodeState, Op: "settle a native delivery",
	Hint: "use Ack, Nack and Reject of the longshore.Delivery"}

func (foreign) Ack(uint64, bool) error        { return errForeign }
func (foreign) Nack(uint64, bool, bool) error { return errForeign }
func (foreign) Reject(uint64, bool) error     { return errForeign }

// nativeOf returns the raw delivery, which nobody writes to.
func nativeOf(d *longshore.Delivery) *amqp091.Delivery {
	raw, _ := d.Native().(*amqp091.Delivery)
	return raw
}

// pull fetches messages one by one while Receive waits for them.
func (c *consumer) pull() {
	empty := time.NewTimer(0)
	defer empty.Stop()
	queue := 0
	for {
		for c.hungry() {
			got := false
			for range c.queues {
				raw, ok, err := c.get(c.queues[queue])
				if err != nil {
					return // the watcher knows why
				}
				if ok {
					got = true
					c.arrived(&raw, queue)
				}
				queue = (queue + 1) % len(c.queues)
				if !c.hungry() {
					break
				}
			}
			if !got {
				break
			}
		}
		empty.Reset(c.cfg.pullInterval())
		select {
		case <-c.fetch:
		case <-empty.C:
		case <-c.intake.Done():
			return
		}
	}
}

// hungry tells whether one more message is wanted now.
func (c *consumer) hungry() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.demand > c.tags.Buffered() && c.tags.Outstanding() < c.window && !c.paused && !c.leaving && c.wanted > 0 && c.end == nil
}

func (c *consumer) get(queue string) (raw amqp091.Delivery, ok bool, err error) {
	type answer struct {
		raw amqp091.Delivery
		ok  bool
	}
	answers := make(chan answer, 1)
	err = c.do(c.intake, func() error {
		began := c.operations.Begin()
		raw, ok, err := c.ch.Get(queue, c.cfg.AutoAck)
		c.operations.End(longshore.OperationReceive, began, codeOr(err))
		answers <- answer{raw, ok}
		return err
	})
	if err != nil {
		return raw, false, fmt.Errorf("basic.get: %w", err)
	}
	a := <-answers
	return a.raw, a.ok, nil
}
