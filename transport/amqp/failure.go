package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// lostError makes the reason for a loss wrap ErrLost.
type lostError struct{ error }

func (e *lostError) Unwrap() []error { return []error{longshore.ErrLost, e.error} }

// watch hears from the client that the channel or one of its consumers ended. It
// needs nobody in Receive.
func (c *consumer) watch(closes <-chan *amqp091.Error, cancels <-chan string) {
	var p patrol
	every := time.NewTicker(patrolEvery)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if err := p.look(c); err != nil {
				c.mute()
				c.fail(err)
				return
			}
		case e := <-closes:
			if e != nil {
				c.fail(c.channelEnd(e))
			}
			return
		case err := <-c.ends:
			c.mute()
			c.fail(err)
			return
		case tag := <-cancels:
			c.mute()
			c.fail(c.canceledBy(tag))
			return // one end is enough; the others of this channel are cancelled too
		}
	}
}

// hearCancels passes on the first consumer that the broker cancels, and takes all
// others until the channel ends: the client's reader, which is the whole connection's,
// stands still until somebody takes them.
func (c *consumer) hearCancels(all <-chan string) <-chan string {
	first := make(chan string, 1)
	c.wg.Go(func() {
		for tag := range all {
			if c.isOurs(tag) {
				select {
				case first <- tag:
				default:
				}
			}
		}
	})
	return first
}

// channelEnd explains why the broker or the client closed the channel.
func (c *consumer) channelEnd(e *amqp091.Error) error {
	err := c.b.set.brokerError("consume from "+c.src.title(), c.src.name(), e)
	switch err.Code {
	case longshore.CodeAckTimeout:
		return c.ackTimeout(e, conn.Describe(e))
	case longshore.CodeConnLost:
		err.Op = fmt.Sprintf("consume from %s at %s", c.src.title(), c.sess.Node)
		err.Err = fmt.Errorf("the connection is lost: %w", conn.Describe(e))
		err.Hint = "the source is opened again by itself"
	}
	return err
}

// ackTimeout tells how much is lost and which delivery is the likely cause.
func (c *consumer) ackTimeout(told *amqp091.Error, cause error) error {
	c.noteAckTimeout()
	c.mu.Lock()
	open, oldest := c.tags.Outstanding(), c.tags.Oldest()
	c.mu.Unlock()
	err := &longshore.Error{Code: longshore.CodeAckTimeout, Op: c.src.title(), Source: c.src.name(),
		Err:  fmt.Errorf("the broker took back %d deliveries because one stayed unacknowledged too long: %w", open, cause),
		Hint: "raise x-consumer-timeout (quorum queues) or consumer_timeout, or shorten the handler"}
	if oldest != nil {
		age := time.Since(oldest.Origin.ReceivedAt).Round(time.Millisecond)
		err.Hint += fmt.Sprintf("; the broker's patience is %s, and from the next subscription on no retry waits here for more than half of it", c.src.patience.learn(told, age))
		err.Hint += fmt.Sprintf("; the oldest is message %.64q, key %.64q, %s old", oldest.Received().ID, oldest.Received().Key, age)
	}
	return err
}

// canceledBy finds out why the broker cancelled a consumer: from 4.3 on an ack
// timeout of a quorum queue looks like a queue that was deleted.
func (c *consumer) canceledBy(tag string) error {
	queue := c.queueOf(tag)
	c.mu.Lock()
	oldest := c.tags.Oldest()
	c.mu.Unlock()
	err := c.exists(queue)
	// The queue may be there a little longer than its consumers.
	for n := 0; n < 5 && err == nil && oldest != nil && time.Since(oldest.Origin.ReceivedAt) < 10*time.Second; n++ {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-c.sess.Done():
		}
		err = c.exists(queue)
	}
	out := &longshore.Error{Code: longshore.CodeCanceledBy, Op: "consume from " + c.src.title(), Source: c.src.name(),
		Err:  errors.New("the broker cancelled the consumer"),
		Hint: "the queue moved to another node or its leader changed; it is opened again by itself"}
	if deleted(err) {
		c.queueGone(queue)
	}
	if e, ok := conn.AsAMQP(err); ok && e.Code == amqp091.NotFound {
		out.Err = fmt.Errorf("queue %q was deleted", queue)
		out.Hint = "create it again, or set Declare"
		return out
	}
	if err == nil && oldest != nil && c.sess.Version.CountsRejectsOnly() {
		return c.ackTimeout(nil, errors.New("the broker cancelled the consumer"))
	}
	return out
}

// exists asks the broker for a queue.
func (c *consumer) exists(queue string) error {
	_, _, err := c.inspect(queue)
	return err
}

// inspect looks at a queue; known is false where only the broker answered.
func (c *consumer) inspect(queue string) (st amqp091.Queue, known bool, err error) {
	type answer struct {
		st    amqp091.Queue
		known bool
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	found := make(chan answer, 1)
	err = c.sess.Scratch(ctx, func(ch conn.Channel) error {
		st, known, err := stat(ch, queue, 0)
		found <- answer{st, known}
		return err
	})
	if err != nil {
		return st, false, err
	}
	a := <-found
	return a.st, a.known, nil
}

// mute stops the sender from writing: on a channel whose consumer was taken
// away a late ack does harm until the channel closes.
func (c *consumer) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeStopped = true
}

// fail ends the consumer from the broker's side: deliveries are lost, then the
// channel closes, and only then the container hears of it and may open again.
func (c *consumer) fail(err error) {
	if c.over() {
		return
	}
	lost := c.abandonOpen(err, &lostError{err})
	c.stopSender()
	select {
	case <-c.sender:
	case <-time.After(5 * time.Second): // hung in a call; the connection ends it
	}
	c.tell.lost(lost, &lostError{err})
	c.mu.Lock()
	leaving := c.leaving
	c.mu.Unlock()
	if !leaving {
		c.tell.down(err)
	}
}

// abandonOpen makes end what Receive returns and gives up all deliveries: open ones
// are told that they are lost and returned, accepted settlements have failed. It
// does nothing the second time.
func (c *consumer) abandonOpen(end, cause error) []*longshore.Delivery {
	c.mu.Lock()
	if c.end != nil {
		c.mu.Unlock()
		return nil
	}
	c.end = end
	c.keepPlaces()
	close(c.gone)
	c.halt()
	ended := c.tags.End()
	for _, p := range ended.Unsent {
		c.failSettle(p.Delivery, p.Settlement, "was not sent", cause)
	}
	for _, p := range ended.Unconfirmed {
		c.failSettle(p.Delivery, p.Settlement, "was sent, but the broker did not confirm it", cause)
	}
	c.mu.Unlock()
	lost := ended.Lost[:0]
	for _, d := range ended.Lost {
		if d.Lose(cause) {
			lost = append(lost, d)
		}
	}
	return lost
}

// failSettle reports an accepted settlement. mu is held.
func (c *consumer) failSettle(d *longshore.Delivery, s longshore.Settlement, what string, cause error) {
	c.failed++
	c.tell.settleFailed(d, s, &longshore.Error{Code: longshore.CodeSettle, Source: c.src.name(),
		Op:  fmt.Sprintf("%s a delivery of %s", s.Verb, c.src.title()),
		Err: fmt.Errorf("it %s: %w", what, cause), Hint: "the message may be delivered again"})
}
