package amqp

import (
	"errors"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// A broker does not tell of everything: a consumer may be forgotten, when a queue
// fails over or is replaced, without basic.cancel and with a connection in perfect
// health. So we look at the queue now and then.
//
// One case cannot be seen. Where a quorum queue is deleted and created again at
// once, RabbitMQ 3.10 goes on to count the consumer on the new queue, hands
// messages to it and drops them on the way, as it takes their numbers for ones
// that it has sent before. The documentation of the transport tells of it.

const (
	patrolEvery  = 5 * time.Second
	patrolShort  = 2 // so many looks with too few consumers
	patrolStill  = 4 // or with messages ready, nothing in work and nothing coming
	orphanReason = "the broker no longer counts this consumer"
)

// patrol is what the watcher remembers from look to look.
type patrol struct {
	top          uint64
	short, still int
}

// look asks for the queues and returns why the consumer is at its end, nil while
// it is not. What cannot be known now is no reason.
func (p *patrol) look(c *consumer) error {
	want, top, open := c.footprint()
	if want == 0 {
		*p = patrol{top: top}
		return nil
	}
	short, ready := false, false
	for _, name := range c.queues {
		st, known, err := c.inspect(name)
		if e, ok := conn.AsAMQP(err); ok && e.Code == amqp091.NotFound {
			return c.orphaned(fmt.Errorf("queue %q was deleted", name))
		}
		if err != nil || !known {
			return nil
		}
		short = short || st.Consumers < want
		ready = ready || st.Messages > 0
	}
	p.short = next(p.short, short)
	p.still = next(p.still, ready && open == 0 && top == p.top)
	if top != p.top {
		c.src.starved.Store(0)
	}
	p.top = top
	switch {
	case p.short >= patrolShort:
		return c.orphaned(errors.New(orphanReason))
	case p.still >= patrolStill<<c.src.starved.Load():
		// Nothing is lost by subscribing again; but where others have priority, or are
		// the single active one, it helps nothing either, and comes ever more seldom.
		c.src.starved.Store(min(c.src.starved.Load()+1, 5))
		return c.orphaned(errors.New("messages are ready and the broker sends none"))
	}
	return nil
}

func next(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

// footprint is how many consumers each queue should count for us, 0 if that is
// not known, the highest tag that came and what is in work.
func (c *consumer) footprint() (consumers int, top uint64, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.paused && !c.inPlace() || c.standby || c.end != nil || c.cfg.Pull || c.cfg.Declare.Type == Classic {
		return 0, c.tags.Top(), c.tags.Outstanding()
	}
	for _, st := range c.steps {
		if st.live() {
			consumers++
		}
	}
	return consumers, c.tags.Top(), c.tags.Outstanding()
}

// live tells whether the broker has been asked for all of it, and not to cancel it.
func (s *step) live() bool {
	for _, p := range s.parts {
		if !p.up || p.ours {
			return false
		}
	}
	return true
}

func (c *consumer) orphaned(why error) error {
	return &longshore.Error{Code: longshore.CodeCanceledBy, Op: "consume from " + c.src.title(), Source: c.src.name(),
		Err: why, Hint: "it is opened again by itself"}
}
