package amqp

import (
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// Consumers says how many consumers at the broker serve the workers of a container.
type Consumers uint8

const (
	// OneChannel has one channel and one prefetch for all workers. It is the default: it is as
	// fast with few workers and faster with many, and a slow handler never keeps messages from
	// the other workers.
	OneChannel Consumers = iota
	// PerWorker has as many consumers as there are workers, each with its own channel, prefetch
	// and buffer, as SimpleMessageListenerContainer has. They are added and cancelled one by one
	// with the workers; what a cancelled one had received is handled first. Any worker handles
	// what any of them received. Messages of one key are in several buffers then, so a container
	// with an order refuses it.
	PerWorker
)

const (
	channelMax    = 2047 // RabbitMQ's default limit of a connection
	spareChannels = 16   // for looks at queues, and other consumers of the connection
	perWorkerLead = 2    // the prefetch of each: the message in work and the next one
)

// checkPerWorker refuses settings with which only one consumer is served, or each one would
// get everything.
func (c *QueueConfig) checkPerWorker(l *problem.List) {
	if c.Consumers > PerWorker {
		l.Add(problem.Bad("Consumers", "use one of its constants", "has an unknown value").OfKind(problem.UnknownWord))
	}
	if c.Consumers != PerWorker {
		return
	}
	for _, p := range []struct {
		field, why string
		value      any
		set        bool
	}{
		{"Exclusive", "an exclusive consumer allows no other on its queue", nil, c.Exclusive},
		{"SingleActive", "only one consumer of the queue would receive messages", nil, c.SingleActive},
		{"Pull", "basic.get has no consumers", nil, c.Pull},
		{"Arguments", "every consumer of a stream reads all of it", "x-stream-offset", c.stream()},
		{"Prefetch", "the first consumer would take the whole queue", "unlimited", c.Prefetch == Unlimited},
	} {
		if p.set {
			l.Conflict(p.field, p.value, "{Consumers} per worker", p.why, "leave {Consumers} out, or {"+p.field+"}")
		}
	}
}

// servesPerWorker refuses what a container wants and several channels cannot give.
func (c *QueueConfig) servesPerWorker(l *problem.List, o transport.OpenOptions) {
	if c.Consumers != PerWorker {
		return
	}
	if o.Ordered {
		l.Conflict("Consumers", "per worker", "an {Order} by key or partition", "the messages of a key would be in the buffers of several consumers",
			"leave {Consumers} out: one channel keeps the order")
	}
	if most := channelMax - spareChannels; o.MaxWorkers > most {
		l.Conflict("Consumers", "per worker", fmt.Sprintf("{Workers.Max} %d", o.MaxWorkers), fmt.Sprintf("each needs a channel, and a connection has %d", channelMax),
			fmt.Sprintf("set {Workers.Max} to at most %d, or leave {Consumers} out", most))
	}
}

// starvesBatches refuses a prefetch with which no consumer could fill a batch.
func (s *Queue) starvesBatches(o transport.OpenOptions) error {
	if s.cfg.Prefetch <= 0 || o.Batch <= s.cfg.Prefetch || s.cfg.AutoAck || s.opened.Load() {
		return nil
	}
	e := problem.Bad("Prefetch", fmt.Sprintf("set {Prefetch} to at least %d, or to 0", o.Batch),
		"is %d for each consumer, less than a batch of %d", s.cfg.Prefetch, o.Batch).Of("open "+s.title(), s.name())
	e.Code = longshore.CodeWindow
	return e
}

// ofOneWorker are the settings of one of the consumers.
func (c *QueueConfig) ofOneWorker(tag string, queues, batch int) *QueueConfig {
	one := *c
	one.Consumers, one.Tag = OneChannel, tag
	if one.Prefetch == 0 && !one.AutoAck {
		one.Prefetch = max(perWorkerLead, batch)
	}
	one.Prefetch *= queues // it is shared out among them again
	return &one
}

// change is what brings a number of consumers nearer to the wanted one: one more, or the one
// to cancel. The idlest is cancelled, of several the newest; the first, which reports for all,
// only if it is the last.
type change struct {
	add    bool // one more is opened
	cancel int  // its index; -1: none
}

func nextChange(wanted int, unsettled []int) change {
	switch have := len(unsettled); {
	case have < wanted:
		return change{add: true, cancel: -1}
	case have == wanted || have == 0:
		return change{cancel: -1}
	}
	least := len(unsettled) - 1
	for i := least; i > 0; i-- {
		if unsettled[i] < unsettled[least] {
			least = i
		}
	}
	return change{cancel: least}
}
