package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
)

// consumer is one subscription. It settles the deliveries that it made and no others: a
// token is looked up in its own slots. This file is its way in, settle.go the way out
// and shutdown.go its end.
type consumer struct {
	b      *Broker                 // whose lock guards it
	q      *queue                  // what it consumes
	cfg    QueueConfig             // of its source; what is the queue's own is in q.props
	base   context.Context         //nolint:containedctx // the parent of all deliveries, given to Open
	sub    *longshore.Subscription // what all its deliveries name as their origin
	notify *notify.Notifier        // reports to the observer outside of Broker.mu

	// Broker.mu guards the rest.

	held     inflight              // what is handed out and not settled
	settling settlements           // acknowledgements on their way
	window   int                   // how many messages it may hold
	want     int                   // what a waiting Receive would take, where messages are pulled
	waiting  bool                  // a Receive waits and has to be woken
	wake     chan struct{}         // wakes it; holds one
	out      []*longshore.Delivery // what the last Receive returned, to be used again
	leaving  bool                  // Cancel or Close was called: an end from now on is not a surprise
	canceled bool                  // the queue sends nothing more
	paused   bool                  // the queue sends nothing until Resume
	idle     bool                  // opened paused and not resumed yet: it takes no role
	standby  bool                  // another consumer has the role
	ended    error                 // what Receive returns from now on; nil while it lives
}

func newConsumer(q *queue, cfg QueueConfig, o transport.OpenOptions) *consumer {
	q.b.tags++
	c := &consumer{b: q.b, q: q, cfg: cfg, base: o.Base, notify: notify.New(o.Observer), wake: make(chan struct{}, 1),
		paused: o.Paused, idle: o.Paused}
	if c.base == nil {
		c.base = context.Background()
	}
	c.sub = &longshore.Subscription{Transport: "memory", Source: q.name, Tag: fmt.Sprintf("memory-%d", q.b.tags), Identify: identify}
	switch {
	case cfg.Prefetch > 0:
		c.window = cfg.Prefetch
	case o.Window > 0:
		c.window = o.Window
	default:
		c.window = defaultWindow
	}
	return c
}

// join makes the queue serve c.
func (c *consumer) join() {
	c.b.consumers[c] = struct{}{}
	c.q.consumers.add(c)
	c.standBy()
	c.q.dispatch()
}

// standBy notes and reports that another consumer has the role.
func (c *consumer) standBy() {
	if c.q.props.singleActive && !c.idle && c.q.consumers.active() != c {
		c.standby = true
		c.notify.Event(transport.Event{Kind: transport.EventStandby, Text: "another consumer is the active one"})
	}
}

// leave makes the queue forget c, whose messages have gone back already.
func (c *consumer) leave() {
	c.settling.stop()
	q := c.q
	q.consumers.remove(c)
	delete(c.b.consumers, c)
	if q.topic != nil {
		delete(q.topic.queues, q)
		q.discard()
		return
	}
	q.promote()
	q.dispatch()
}

// servable reports whether c wants messages at all, now or later.
func (c *consumer) servable() bool { return !c.canceled && !c.idle }

// room reports whether c may get one more message now.
func (c *consumer) room() bool {
	if c.canceled || c.paused || c.held.count >= c.window {
		return false
	}
	return !c.cfg.Pull || c.held.buffer.len() < c.want
}

// push takes a message from the queue into the buffer and starts its lease.
func (c *consumer) push(e *entry) {
	idx := c.held.add(e)
	if lease := c.q.props.firstLease(); lease > 0 {
		c.extend(idx, lease)
	}
	if c.waiting {
		c.signal()
	}
}

// signal wakes Receive.
func (c *consumer) signal() {
	c.waiting = false
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Receive returns buffered deliveries, or waits for one.
func (c *consumer) Receive(ctx context.Context, most int) ([]*longshore.Delivery, error) {
	if err := c.b.slow(ctx, OpReceive); err != nil {
		return nil, err
	}
	most = max(most, 1)
	for {
		ds, err := c.take(most)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.interrupt()
			return nil, ctx.Err()
		}
	}
}

// take hands out buffered deliveries; nothing and no error means that Receive has to wait.
func (c *consumer) take(most int) ([]*longshore.Delivery, error) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	if c.cfg.Pull {
		c.want = most
		c.q.dispatch()
	}
	n := min(most, c.held.buffer.len())
	if n == 0 {
		if c.canceled {
			return nil, longshore.ErrCanceled
		}
		c.waiting = true
		return nil, nil
	}
	c.want = 0
	clear(c.out)
	c.out = c.out[:0]
	now := c.b.clock.Now()
	for range n {
		c.out = append(c.out, c.deliver(c.held.buffer.pop(), now))
	}
	return c.out, nil
}

// interrupt ends a Receive that got nothing. What came in between stays buffered, or
// goes back where nothing is buffered.
func (c *consumer) interrupt() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.waiting = false
	c.want = 0
	if c.cfg.Pull && c.ended == nil {
		c.returnBuffer()
		c.q.dispatch()
	}
}

// deliver makes the delivery of a slot.
func (c *consumer) deliver(idx uint32, now time.Time) *longshore.Delivery {
	s := c.held.at(idx)
	d := longshore.NewDelivery(c.base, c, s.token(idx))
	e, p := s.e, &c.q.props
	d.Message = e.msg
	d.Attempt = c.cfg.attempt(e)
	o := &d.Origin
	o.Subscription, o.Topic, o.Partition, o.Position = c.sub, c.q.name, e.partition, e.seq
	o.Redelivered, o.ReceivedAt = e.redelivered, now
	o.LastReturn = p.countsReturns && p.deliveryLimit > 0 && e.count+1 >= p.deliveryLimit
	if e.group != nil {
		o.GroupID = e.group.key
	}
	s.d = d
	return d
}

// attempt is what a delivery of the message carries.
func (c *QueueConfig) attempt(e *entry) int {
	switch {
	case c.Without&Attempts == 0:
		return e.attempt
	case e.redelivered:
		return 2
	}
	return 1
}

// returnBuffer puts buffered deliveries back into the queue.
func (c *consumer) returnBuffer() {
	for _, e := range c.held.takeBuffer() {
		c.q.takeBack(e)
	}
}

// Pause stops the flow into the buffer; what is buffered is still handed out.
func (c *consumer) Pause(context.Context) error { return c.pause(true) }

// Resume ends Pause.
func (c *consumer) Resume(context.Context) error { return c.pause(false) }

func (c *consumer) pause(on bool) error {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.closed() {
		return longshore.ErrClosed
	}
	if c.paused = on; !on && c.idle { // it joins behind all that consume already
		c.idle = false
		c.q.consumers.moveToEnd(c)
		c.standBy()
	}
	c.q.dispatch()
	return nil
}

// Resize follows the container's wish. A smaller window takes nothing back.
func (c *consumer) Resize(_ context.Context, window int) error {
	if c.cfg.Without&LiveResize != 0 {
		return c.q.unsupported("resize the window", "this queue's window is fixed")
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	switch {
	case c.closed():
		return longshore.ErrClosed
	case c.cfg.Prefetch == 0 && window > 0:
		c.window = window
		c.q.dispatch()
	}
	return nil
}
