package amqp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

const (
	// A delay queue goes away when it was not declared for its delay and this long,
	// with all that is in it; so it is declared again before it is used, unless that
	// was less than delayFresh ago.
	delayGrace = 10 * time.Minute
	delayFresh = time.Minute
)

// copier publishes copies that take the place of a consumer's deliveries.
type copier struct {
	src  *Queue     // where copies come back to
	keep *keepalive // keeps the delay queues while there are copies in them

	mu     sync.Mutex // guards what follows
	pub    *Publisher // made when first needed
	closed bool       // no publisher is made any more
}

// copyBack publishes a copy of a delivery that comes back to its queue after the delay,
// with the given attempt, and returns when the broker has confirmed it. An attempt after
// the first one is only believed of a copy that came through a delay queue.
func (c *copier) copyBack(ctx context.Context, d *longshore.Delivery, delay time.Duration, attempt int) error {
	p, err := c.publisher()
	if err != nil {
		return err
	}
	queue := d.Origin.Topic
	target := queue
	switch {
	case delay > 0:
		delay = codec.RoundDelay(delay)
	case attempt > 1 && !c.src.cfg.refusesWhenFull():
		delay = codec.AtOnce
	}
	if delay > codec.AtOnce && !c.src.expiry.allows(delay) {
		return expiresError(c.src.title(), c.src.name())
	}
	if delay > 0 {
		target = codec.DelayQueue(queue, delay)
	}
	pub := codec.Copy(nativeOf(d), attempt, c.src.b.login())
	if delay > 0 { // a quorum queue keeps also what is transient; the delay queue would not
		pub.DeliveryMode = amqp091.Persistent
	}
	for again := false; ; again = true {
		if delay > 0 {
			err = p.declareDelay(ctx, target, queue, delay, again)
		}
		if err == nil {
			err = p.send(ctx, []*outgoing{{key: target, pub: pub}})[0]
		}
		if again || !errors.Is(err, longshore.CodeUnroutable) {
			break // a delay queue may have gone away just now: once more
		}
	}
	if err == nil {
		if delay > codec.AtOnce {
			c.keep.hold(target, delay)
		}
		return nil
	}
	out := *c.src.b.set.brokerError("", c.src.name(), err)
	out.Op, out.Source = fmt.Sprintf("give back a delivery of %s by publishing a copy to %q", c.src.title(), target), c.src.name()
	return &out
}

// publisher returns the copier's own publisher.
func (c *copier) publisher() (*Publisher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, longshore.ErrLost
	}
	if c.pub == nil {
		p, err := c.src.b.Publisher(PublisherConfig{})
		if err != nil {
			return nil, err
		}
		c.pub = p
	}
	return c.pub, nil
}

// close gives the publisher's connection back.
func (c *copier) close(ctx context.Context) error {
	c.mu.Lock()
	p := c.pub
	c.pub, c.closed = nil, true
	c.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Close(ctx)
}

// declareDelay makes sure that a delay queue is there and stays for long enough.
func (p *Publisher) declareDelay(ctx context.Context, name, back string, delay time.Duration, always bool) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.closed {
		return longshore.ErrLost
	}
	if err := p.connect(ctx); err != nil {
		return err
	}
	if at, ok := p.delays[name]; ok && !always && time.Since(at) < delayFresh {
		return nil
	}
	if err := p.sess.BlockedError(); err != nil {
		return err // it would not answer
	}
	args := amqp091.Table{
		// Said also where it is the default, which a virtual host can change: a quorum
		// queue expires in spite of being declared again (3.10), with its messages.
		"x-queue-type":              string(Classic),
		"x-dead-letter-exchange":    "",
		"x-dead-letter-routing-key": back,
		"x-message-ttl":             delay.Milliseconds(),
		"x-expires":                 (delay + delayGrace).Milliseconds(),
	}
	err := p.sess.Scratch(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
	if e, ok := conn.AsAMQP(err); ok && e.Code == amqp091.PreconditionFailed && parseMismatch(e.Reason) != nil {
		err = nil // made by another version or by hand; its name says what it does
	}
	if err != nil {
		return p.b.set.brokerError(fmt.Sprintf("declare rabbitmq delay queue %q", name), name, err)
	}
	for other, at := range p.delays {
		if time.Since(at) > delayFresh {
			delete(p.delays, other)
		}
	}
	p.delays[name] = time.Now()
	return nil
}
