package amqp

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// A quorum queue gives a message up when it has come back more often than its delivery limit
// says: to its dead-letter exchange, or it drops the message. Up to 4.2 every return counts,
// later the end of a channel does. The limit is therefore known here: messages that are one
// return away from it are marked, and never returned: a copy takes their place.

// defaultLimit is RabbitMQ's own from 4.0 on.
const defaultLimit = 20

// limitBasis is how a limit is known.
type limitBasis uint8

const (
	limitNone    limitBasis = iota // there is none, or none that is known
	limitAssumed                   // the queue may be one that has it
	limitKnown                     // the queue has it
)

// limit is the number of returns at which a queue has still not given a message up; the
// next one is the last.
type limit struct {
	basis limitBasis // whether the number counts
	n     int        // returns that the queue allows
	from  string     // the source of the number, for people
}

// last reports whether the next return of a message is the one too many.
func (l limit) last(returns int) bool { return l.basis == limitKnown && returns >= l.n }

// renews reports whether a copy should take the place of a message that goes back: it would
// be given up, or the next return would be its last. A message with a place to keep keeps
// it as long as it can.
func (l limit) renews(returns int, place bool) bool {
	switch {
	case l.basis == limitNone:
		return false
	case place:
		return returns >= l.n
	}
	return returns >= l.n-1
}

// declaredLimit is what the configuration and the broker's version tell.
func declaredLimit(c *QueueConfig, v conn.Version) limit {
	n, said := c.Declare.Arguments["x-delivery-limit"]
	switch {
	case c.AutoAck || c.Declare.Type == Classic || c.stream():
		return limit{}
	case said && codec.Integer(n) < 0:
		return limit{}
	case said:
		return limit{limitKnown, codec.Capped(codec.Integer(n)), "x-delivery-limit"}
	case v[0] < 4:
		return limit{}
	case c.Declare.Type == Quorum:
		return limit{limitKnown, defaultLimit, "the default from RabbitMQ 4.0 on"}
	}
	return limit{limitAssumed, defaultLimit, "the default of quorum queues from RabbitMQ 4.0 on"}
}

// factualLimit is what the management API reports about the queue.
func factualLimit(f *queueFacts, v conn.Version) limit {
	if f.Type != string(Quorum) {
		return limit{}
	}
	if text, ok := f.Limit.(string); ok && text != "" { // "unlimited"
		return limit{}
	}
	if n, ok := jsonNumber(f.Limit); ok { // from 4.0 on, a few seconds after the declaration
		return limit{limitKnown, codec.Capped(n), "its arguments and policies"}
	}
	found, best := false, int64(math.MaxInt64)
	for _, v := range []any{f.Arguments["x-delivery-limit"], f.policy()["delivery-limit"]} {
		n, ok := jsonNumber(v)
		if ok && n < 0 {
			return limit{}
		}
		if ok {
			found, best = true, min(best, n)
		}
	}
	switch {
	case found:
		return limit{limitKnown, codec.Capped(best), "its arguments and policies"}
	case v[0] >= 4:
		return limit{limitKnown, defaultLimit, "the default from RabbitMQ 4.0 on"}
	}
	return limit{}
}

// warning is for a limit that loses messages; "" for none.
func (l limit) warning(queue string, caught bool) string {
	switch {
	case l.basis == limitNone || caught:
		return ""
	case l.basis == limitAssumed:
		return fmt.Sprintf("whether rabbitmq queue %q drops messages that were returned too often is not known: if it is a quorum queue it does after %d returns (%s), and nothing is known to catch them; set Declare.Type, or Management",
			queue, l.n, l.from)
	}
	return fmt.Sprintf("rabbitmq queue %q drops a message that was returned %d times (%s), and nothing is known to catch it: a container with a dead-letter destination moves it there before; set x-dead-letter-exchange, or x-delivery-limit -1 from 4.0 on",
		queue, l.n, l.from)
}

// limitEvery is how often the management API is asked while a consumer lives: policies
// change, and of a new queue it knows them after some seconds.
const limitEvery = 10 * time.Second

// returnLimits holds the known facts about the delivery limits of one consumer's queues. It is
// read for every delivery, so it has no lock.
type returnLimits struct {
	src     *Queue                  // what it declares
	version conn.Version            // up to 4.2 every return counts, later the end of a channel
	ordered bool                    // a message with a place keeps it as long as it can
	queues  []string                // as the broker calls them; set by learn, before anything is received
	known   atomic.Pointer[[]limit] // by index of the queue; replaced as a whole
}

// learn fills in the known facts when the source is opened, and warns once.
func (l *returnLimits) learn(queues []string, facts []*queueFacts, notices *notify.Notifier) {
	l.queues = queues
	known := make([]limit, len(queues))
	for i := range queues {
		known[i] = declaredLimit(&l.src.cfg, l.version)
		if facts[i] != nil {
			known[i] = factualLimit(facts[i], l.version)
		}
	}
	l.known.Store(&known)
	if l.src.opened.Load() {
		return
	}
	for i, name := range queues {
		if text := known[i].warning(name, l.src.cfg.caught(facts[i])); text != "" {
			notices.Event(transport.Event{Kind: transport.EventNotice, Text: text})
		}
	}
}

// follow keeps the known facts about the limits up to date until the channel is gone.
func (l *returnLimits) follow(gone <-chan struct{}, notices *notify.Notifier) {
	tick := time.NewTicker(limitEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-gone:
			return
		}
		known := slices.Clone(*l.known.Load())
		for i, f := range l.src.askFacts(l.queues, gone, notices) {
			if f != nil {
				known[i] = factualLimit(f, l.version)
			}
		}
		l.known.Store(&known)
	}
}

// of is the limit of a queue by its index; none for one that is not known.
func (l *returnLimits) of(queue int) limit {
	known := l.known.Load()
	if known == nil || queue < 0 || queue >= len(*known) {
		return limit{}
	}
	return (*known)[queue]
}

// last reports whether the next return of a message is the one too many.
func (l *returnLimits) last(queue int, raw *amqp091.Delivery) bool {
	return l.of(queue).last(codec.Returns(raw))
}

// exhausted reports whether a delivery must not go back to the broker as it is.
func (l *returnLimits) exhausted(d *longshore.Delivery) bool {
	return l.of(slices.Index(l.queues, d.Origin.Topic)).renews(codec.Returns(nativeOf(d)), l.ordered)
}

// smallest is the smallest limit that is known, 0 for none.
func (l *returnLimits) smallest() int {
	n := 0
	for i := range l.queues {
		if x := l.of(i); x.basis == limitKnown && (n == 0 || x.n < n) {
			n = max(x.n, 1)
		}
	}
	return n
}

// caught reports whether something is known to catch what the broker gives up.
func (c *QueueConfig) caught(f *queueFacts) bool {
	if f == nil {
		return c.deadLettered()
	}
	_, byArgument := f.Arguments["x-dead-letter-exchange"]
	_, byPolicy := f.policy()["dead-letter-exchange"]
	return c.deadLettered() || byArgument || byPolicy
}
