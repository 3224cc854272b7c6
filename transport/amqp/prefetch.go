package amqp

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// A window is made of steps: basic.qos does not change a consumer that runs, so
// growing means one more consumer on the same channel, and shrinking means
// cancelling the newest, whose unsettled deliveries stay valid.

// step is one consumer on each of the source's queues.
type step struct {
	size  int // prefetch of all of them together
	parts []*part
}

// part is one consumer on the channel.
type part struct {
	tag   string
	queue int
	up    bool          // the broker has confirmed it; guarded by consumer.mu
	ours  bool          // we cancelled it; likewise
	done  chan struct{} // all it received is in the ring
}

// begin starts consuming.
func (c *consumer) begin(ctx context.Context) error {
	c.tagStem = c.cfg.Tag
	if c.tagStem == "" {
		c.tagStem = "longshore-" + rand.Text()[:10]
	}
	for _, s := range c.subs {
		s.Tag = c.tagStem
	}
	if c.cfg.Pull {
		c.setSteps(nil)
		c.wg.Go(c.pull)
		return nil
	}
	return c.adjust(ctx)
}

// addStep adds one consumer for each queue; size 0 is unlimited. It runs on the
// sender.
func (c *consumer) addStep(size int) error {
	share := 0
	if size > 0 {
		share = min(max((size+len(c.queues)-1)/len(c.queues), 1), math.MaxUint16)
	}
	if err := c.ch.Qos(share, 0, false); err != nil {
		return err
	}
	c.qos = share
	st := &step{size: share * len(c.queues)}
	for i := range c.queues {
		p := &part{tag: c.tagStem, queue: i, done: make(chan struct{})}
		// A tag is used once on a channel. To a quorum queue a cancelled consumer with
		// unsettled deliveries and a new one of that tag are the same: 3.10 then misses
		// deliveries, sends them again wrongly, and ends the connection over it.
		if c.made++; c.made > 1 {
			p.tag = fmt.Sprintf("%s.%d", c.tagStem, c.made)
		}
		st.parts = append(st.parts, p)
	}
	c.setSteps(append(c.steps[:len(c.steps):len(c.steps)], st)) // before it can be cancelled
	for _, p := range st.parts {
		in, err := c.ch.Consume(c.queues[p.queue], p.tag, c.cfg.AutoAck, c.cfg.Exclusive, false, false, c.arguments(p.queue))
		if err != nil { // the channel has ended
			c.setSteps(c.steps[:len(c.steps)-1])
			return err
		}
		c.mu.Lock()
		p.up = true
		c.mu.Unlock()
		c.wg.Go(func() { c.pump(p, in) })
	}
	return nil
}

func (c *consumer) arguments(queue int) amqp091.Table {
	args := amqp091.Table{}
	maps.Copy(args, c.cfg.Arguments)
	if c.cfg.Priority != 0 {
		args["x-priority"] = int32(c.cfg.Priority)
	}
	if c.src.streams() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if queue >= len(c.places) {
			return args // it has ended
		}
		if at := c.places[queue].offset(args[codec.HeaderOffset]); at != nil {
			args[codec.HeaderOffset] = at
		}
	}
	return args
}

// setSteps changes the steps, which the watcher and Resize read.
func (c *consumer) setSteps(steps []*step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps, c.window = steps, 0
	if c.cfg.Pull {
		c.window = c.limit
	}
	for _, st := range steps {
		c.window += st.size
	}
}

// pump moves deliveries of one consumer from the client to the ring.
func (c *consumer) pump(p *part, in <-chan amqp091.Delivery) {
	defer close(p.done)
	for raw := range in {
		c.arrived(&raw, p.queue)
	}
}

// cancelNewest cancels the consumers of the newest step and waits until all that
// the broker had sent them is in the ring. It runs on the sender.
func (c *consumer) cancelNewest() error {
	st := c.steps[len(c.steps)-1]
	for _, p := range st.parts {
		c.mu.Lock()
		p.ours = true
		c.mu.Unlock()
		if err := c.ch.Cancel(p.tag, false); err != nil {
			return err
		}
		<-p.done // the client has it all; the pump only moves it
	}
	c.setSteps(c.steps[:len(c.steps)-1])
	return nil
}

// dropAll cancels all consumers: the broker sends no more. It leaves them (gone is
// false) where the cancel would have to wait for a queue that does not answer, or would
// meet deliveries that have an order to keep.
func (c *consumer) dropAll(ctx context.Context) (gone bool, err error) {
	if len(c.steps) > 0 {
		if quiet, answers := c.quiet(ctx); !answers || !quiet && c.ordered {
			return false, nil
		}
	}
	for len(c.steps) > 0 && !c.over() {
		if err := c.cancelNewest(); err != nil {
			return false, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale = c.tags.Top()
	return true, nil
}

// goal is the wanted window within its bounds, 0 if nothing may come.
func (c *consumer) goal() (goal, have int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// One that was opened paused has no place to keep before it is resumed.
	if c.wanted <= 0 || c.paused && (!c.inPlace() || len(c.steps) == 0) || c.leaving {
		return 0, c.window
	}
	return min(max(c.wanted, baseWindow), c.limit), c.window
}

// adjust makes the window follow. It grows at once, at least to the double so
// that it takes few consumers, and shrinks when it was four times too large for a
// while. It runs on the sender.
func (c *consumer) adjust(ctx context.Context) error {
	goal, have := c.goal()
	c.again = time.Time{}
	if goal == 0 {
		c.calm = time.Time{}
		gone, err := c.dropAll(ctx)
		if err == nil && !gone {
			c.again = time.Now().Add(putOff)
		}
		return err
	}
	if !c.live() {
		if len(c.steps) == 0 {
			return c.addStep(c.fixed)
		}
		return nil
	}
	for have < goal {
		grow := min(c.first, c.limit)
		if have > 0 {
			grow = min(max(goal-have, have), c.limit-have)
		}
		if err := c.addStep(grow); err != nil {
			return err
		}
		_, have = c.goal()
	}
	if have < 4*goal || len(c.steps) < 2 {
		c.calm = time.Time{}
		return nil
	}
	if c.calm.IsZero() {
		c.calm = time.Now()
	}
	if time.Since(c.calm) < shrinkAfter {
		return nil
	}
	c.calm = time.Time{}
	for len(c.steps) > 1 && have-c.steps[len(c.steps)-1].size >= goal {
		if quiet, answers := c.quiet(ctx); !quiet || !answers {
			c.again = time.Now().Add(putOff)
			c.calm = time.Now().Add(-shrinkAfter)
			return nil
		}
		if err := c.cancelNewest(); err != nil {
			return err
		}
		_, have = c.goal()
	}
	return nil
}

// Resize makes the window follow the container's wish; 0 takes nothing more.
func (c *consumer) Resize(ctx context.Context, window int) error {
	c.mu.Lock()
	c.wanted = max(window, 0)
	c.mu.Unlock()
	return c.reshape(ctx, "resize")
}

// Pause takes nothing more from the broker, or hands out nothing more where a consumer
// that is cancelled would lose its role. What was received stays ours.
func (c *consumer) Pause(ctx context.Context) error {
	c.mu.Lock()
	c.paused = true
	c.mu.Unlock()
	return c.reshape(ctx, "pause")
}

// Resume takes messages again.
func (c *consumer) Resume(ctx context.Context) error {
	c.mu.Lock()
	c.paused = false
	signal(c.ready)
	c.mu.Unlock()
	return c.reshape(ctx, "resume")
}

func (c *consumer) reshape(ctx context.Context, what string) error {
	if c.cfg.Pull {
		signal(c.fetch)
		return nil
	}
	err := c.do(ctx, func() error { return c.adjust(ctx) })
	if err != nil {
		return c.b.set.brokerError(what+" "+c.src.title(), c.src.name(), err)
	}
	return nil
}

// isOurs tells whether the tag is a consumer that we did not cancel.
func (c *consumer) isOurs(tag string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.steps {
		for _, p := range st.parts {
			if p.tag == tag {
				return !p.ours
			}
		}
	}
	return false
}

func (c *consumer) queueOf(tag string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.steps {
		for _, p := range st.parts {
			if p.tag == tag {
				return c.queues[p.queue]
			}
		}
	}
	return c.queues[0]
}
