package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// consumer is one subscription. Its deliveries are settled through its settler
// and through no other, so nothing of it can reach a later one.
type consumer struct {
	b    *Broker
	q    *queue
	cfg  QueueConfig
	base context.Context //nolint:containedctx // the parent of all deliveries, given to Open
	sub  *longshore.Subscription
	obs  transport.Observer
	tell notifier
	own  settler

	// The rest is guarded by Broker.mu.
	slots  []slot
	free   []uint32
	buffer deque[uint32] // slots that Receive has not handed out
	held   int           // slots in use
	window int
	want   int // what a Receive that waits would take; for Pull

	waiting  bool
	wake     chan struct{}
	out      []*longshore.Delivery // what the last Receive returned
	leaving  bool                  // Cancel or Close was called
	canceled bool
	paused   bool
	idle     bool // opened paused and not resumed yet: it takes no role
	standby  bool
	ended    error // what Receive returns for ever

	accepted []uint32 // settlements not carried out yet, in order
	linger   longshore.Timer
	failed   int // since the last Flush
}

// slot holds an unsettled message. Its generation makes a token that was used
// up name nothing.
type slot struct {
	e       *entry
	d       *longshore.Delivery // nil while buffered
	gen     uint32
	pending bool // settled, not carried out yet
	verdict longshore.Settlement
	until   time.Time // end of the lease
}

func (s *slot) token(idx uint32) uint64 { return uint64(s.gen)<<32 | uint64(idx) }

func newConsumer(q *queue, cfg QueueConfig, o transport.OpenOptions) *consumer {
	q.b.tags++
	c := &consumer{b: q.b, q: q, cfg: cfg, base: o.Base, obs: o.Observer, wake: make(chan struct{}, 1)}
	if c.base == nil {
		c.base = context.Background()
	}
	c.own.c = c
	c.paused, c.idle = o.Paused, o.Paused
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

// enter makes the queue serve c.
func (c *consumer) enter() {
	c.b.consumers[c] = struct{}{}
	c.q.consumers = append(c.q.consumers, c)
	c.standBy()
	c.q.dispatch()
}

// standBy notes and reports that another consumer has the role.
func (c *consumer) standBy() {
	if c.q.props.singleActive && !c.idle && c.q.active() != c {
		c.standby = true
		c.event(transport.EventStandby, "another consumer is the active one")
	}
}

// begin ends the idleness of a consumer that was opened paused: it comes behind all
// that consume already.
func (c *consumer) begin() {
	if !c.idle {
		return
	}
	q := c.q
	c.idle = false
	if i := slices.Index(q.consumers, c); i >= 0 {
		q.consumers = append(slices.Delete(q.consumers, i, i+1), c)
	}
	c.standBy()
}

// leave makes the queue forget c. What it held is back already.
func (c *consumer) leave() {
	if c.linger != nil {
		c.linger.Stop()
		c.linger = nil
	}
	q := c.q
	for i, x := range q.consumers {
		if x == c {
			q.consumers = append(q.consumers[:i], q.consumers[i+1:]...)
			break
		}
	}
	delete(c.b.consumers, c)
	q.exclusive = q.exclusive && len(q.consumers) > 0
	if q.topic != nil {
		delete(q.topic.queues, q)
		q.discard()
		return
	}
	q.promote()
	q.dispatch()
}

// promote tells the consumer that is now the active one.
func (q *queue) promote() {
	if !q.props.singleActive {
		return
	}
	if a := q.active(); a != nil && a.standby {
		a.standby = false
		a.event(transport.EventActive, "now the active consumer")
	}
}

// room tells whether c may get one more message now.
func (c *consumer) room() bool {
	if c.canceled || c.paused || c.held >= c.window {
		return false
	}
	return !c.cfg.Pull || c.buffer.len() < c.want
}

// push puts a message into the buffer.
func (c *consumer) push(e *entry) {
	var idx uint32
	if n := len(c.free); n > 0 {
		idx = c.free[n-1]
		c.free = c.free[:n-1]
	} else {
		idx = uint32(len(c.slots))
		c.slots = append(c.slots, slot{gen: 1})
	}
	c.slots[idx].e = e
	c.held++
	c.buffer.push(idx)
	if c.q.props.lease > 0 {
		c.lease(idx)
	}
	if c.waiting {
		c.signal()
	}
}

func (c *consumer) signal() {
	c.waiting = false
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// find returns the slot of a token, nil if it holds that no more.
func (c *consumer) find(token uint64) (uint32, *slot) {
	idx, gen := uint32(token), uint32(token>>32)
	if int(idx) >= len(c.slots) || c.slots[idx].gen != gen || c.slots[idx].e == nil {
		return 0, nil
	}
	return idx, &c.slots[idx]
}

// vacate frees a slot; the message has to go somewhere.
func (c *consumer) vacate(idx uint32) (*entry, *longshore.Delivery) {
	s := &c.slots[idx]
	e, d := s.e, s.d
	*s = slot{gen: s.gen + 1}
	c.held--
	c.free = append(c.free, idx)
	return e, d
}

// unbuffer takes one slot out of the buffer.
func (c *consumer) unbuffer(idx uint32) {
	for _, i := range c.buffer.clear() {
		if i != idx {
			c.buffer.push(i)
		}
	}
}

// Receive returns what is buffered, or waits for it.
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
			c.unwait()
			return nil, ctx.Err()
		}
	}
}

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
	n := min(most, c.buffer.len())
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
		c.out = append(c.out, c.deliver(c.buffer.pop(), now))
	}
	return c.out, nil
}

// unwait ends a Receive that got nothing: what came in between stays buffered,
// or goes back where nothing is buffered.
func (c *consumer) unwait() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.waiting = false
	c.want = 0
	if c.cfg.Pull && c.ended == nil {
		c.putBack()
		c.q.dispatch()
	}
}

func (c *consumer) deliver(idx uint32, now time.Time) *longshore.Delivery {
	s := &c.slots[idx]
	d := longshore.NewDelivery(c.base, &c.own, s.token(idx))
	e := s.e
	d.Message = e.msg
	d.Origin.Subscription = c.sub
	d.Origin.Topic = c.q.name
	d.Origin.Partition = e.partition
	d.Origin.Position = e.seq
	d.Origin.Redelivered = e.redelivered
	d.Origin.LastReturn = c.q.props.countsReturns && c.q.props.deliveryLimit > 0 && e.count+1 >= c.q.props.deliveryLimit
	d.Origin.ReceivedAt = now
	if e.group != nil {
		d.Origin.GroupID = e.group.key
	}
	d.Attempt = c.attempt(e)
	s.d = d
	return d
}

// attempt is what a delivery of the message carries.
func (c *consumer) attempt(e *entry) int {
	switch {
	case c.cfg.Without&Attempts == 0:
		return e.attempt
	case e.redelivered:
		return 2
	}
	return 1
}

// putBack returns what is buffered to the queue.
func (c *consumer) putBack() {
	for _, idx := range c.buffer.clear() {
		e, _ := c.vacate(idx)
		c.returned(e)
	}
}

// returned gives a message back that no verdict was made about.
func (c *consumer) returned(e *entry) {
	if c.q.props.countsReturns {
		e.attempt++
	}
	c.q.giveBack(e, false, 0)
}
