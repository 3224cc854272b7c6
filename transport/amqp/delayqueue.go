package amqp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
)

// A delayed message waits in a queue of its own delay, which dead-letters back
// into the source: per-message TTLs in one queue would let a short delay wait
// behind a long one.

const (
	// atOnce is the delay of a counted retry that need not wait.
	atOnce = time.Millisecond
	// maxDelay leaves room below the broker's 32 bits of milliseconds.
	maxDelay = 45 * 24 * time.Hour
	// A delay queue goes away when nobody declared it for its delay and this long,
	// with all that is in it; so it is declared again before it is used, unless that
	// was less than delayFresh ago.
	delayGrace = 10 * time.Minute
	delayFresh = time.Minute
)

// roundDelay rounds up to whole seconds, and above a minute by up to 5 %, so that
// there are few delay queues.
func roundDelay(d time.Duration) time.Duration {
	up := func(d time.Duration) time.Duration { return (d + time.Second - 1) / time.Second * time.Second }
	if d <= time.Minute {
		return max(up(d), time.Second)
	}
	step := time.Minute
	for step < d {
		step = up(step + step/20)
	}
	return step
}

func delayQueue(queue string, d time.Duration) string {
	return fmt.Sprintf("%s%d", delayStem(queue), d.Milliseconds())
}

func delayStem(queue string) string { return "longshore.delay." + queue + "." }

// isDelayQueue tells whether the name is of a delay queue that leads back to the queue.
func isDelayQueue(name, queue string) bool {
	ms, ok := strings.CutPrefix(name, delayStem(queue))
	n, err := strconv.ParseUint(ms, 10, 63)
	return ok && err == nil && n > 0
}

// copyBack publishes a copy of a delivery that comes back to its queue after the
// delay, with the given attempt, and returns when the broker has confirmed it.
// An attempt after the first one is only believed of what came through a delay queue.
func (c *consumer) copyBack(ctx context.Context, d *longshore.Delivery, delay time.Duration, attempt int) error {
	p, err := c.retryPublisher()
	if err != nil {
		return err
	}
	queue := d.Origin.Topic
	target := queue
	switch {
	case delay > 0:
		delay = roundDelay(delay)
	case attempt > 1 && !c.cfg.refusesWhenFull():
		delay = atOnce
	}
	if delay > atOnce && c.src.expires.Load() {
		return c.expires()
	}
	if delay > 0 {
		target = delayQueue(queue, delay)
	}
	pub := copyOf(nativeOf(d), attempt, c.b.login())
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
		if delay > atOnce {
			c.keep.hold(target, delay)
		}
		return nil
	}
	e := c.b.set.brokerError("", c.src.name(), err)
	out := *e
	out.Op, out.Source = fmt.Sprintf("give back a delivery of %s by publishing a copy to %q", c.src.title(), target), c.src.name()
	return &out
}

// copyOf is the raw message with our attempt, without what the broker owns. What
// the handler can see of its origin stays the same.
func copyOf(raw *amqp091.Delivery, attempt int, login string) amqp091.Publishing {
	p := amqp091.Publishing{MessageId: raw.MessageId, Body: raw.Body, ContentType: raw.ContentType, ContentEncoding: raw.ContentEncoding,
		Type: raw.Type, CorrelationId: raw.CorrelationId, ReplyTo: raw.ReplyTo, AppId: raw.AppId, UserId: raw.UserId,
		Timestamp: raw.Timestamp, Priority: raw.Priority, DeliveryMode: raw.DeliveryMode}
	p.Headers = maps.Clone(raw.Headers)
	if p.Headers == nil {
		p.Headers = amqp091.Table{}
	}
	keep := func(name, value string) {
		if _, ok := p.Headers[name]; !ok && value != "" {
			p.Headers[name] = value
		}
	}
	keep(headerExpiration, raw.Expiration)
	if raw.Exchange != "" {
		keep(headerExchange, raw.Exchange)
	}
	keep(headerRoutingKey, raw.RoutingKey)
	moveAside(&p, login)
	delete(p.Headers, headerAttempt)
	if attempt > 1 {
		p.Headers[headerAttempt] = int32(min(attempt, math.MaxInt32))
	}
	return p
}

// retryPublisher returns the consumer's own publisher.
func (c *consumer) retryPublisher() (*Publisher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.released {
		return nil, longshore.ErrLost
	}
	if c.retry == nil {
		p, err := c.b.Publisher(PublisherConfig{})
		if err != nil {
			return nil, err
		}
		c.retry = p
	}
	return c.retry, nil
}

// declareDelay makes sure that a delay queue is there and stays for long enough.
func (p *Publisher) declareDelay(ctx context.Context, name, back string, delay time.Duration, anew bool) error {
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
	if at, ok := p.delays[name]; ok && !anew && time.Since(at) < delayFresh {
		return nil
	}
	if err := p.sess.blockedError(); err != nil {
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
	err := p.sess.scratch(ctx, func(ch channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, args)
		return err
	})
	if e, ok := asAMQP(err); ok && e.Code == amqp091.PreconditionFailed && parseMismatch(e.Reason) != nil {
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
