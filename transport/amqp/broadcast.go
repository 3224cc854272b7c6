package amqp

import (
	"crypto/rand"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// BroadcastConfig is the configuration of a broadcast source. The zero value
// works.
type BroadcastConfig struct {
	// Kind declares the exchange, durable. Zero: it must exist.
	Kind ExchangeKind
	// Keys are the binding keys; patterns on a topic exchange. Zero: everything
	// ("" on a fanout, "#" on a topic exchange).
	Keys []string
	// Prefetch, SettleLinger, AutoAck and Key are those of [QueueConfig].
	Prefetch     int
	SettleLinger time.Duration
	AutoAck      bool
	Key          string
}

// broadcast is a queue of our own, bound to an exchange.
type broadcast struct {
	exchange string          // whose messages are copied
	cfg      BroadcastConfig // of the queue that is made for each consumer
	// bindings take the place of exchange and Keys where a queue is followed; exchange is
	// the name of that queue then.
	bindings []Binding
}

// Broadcast is a source of which every consumer, so every instance of a program,
// gets every message of the exchange while it is open. Each has a queue of its
// own that goes away with it: what it has not settled then is gone.
func (b *Broker) Broadcast(exchange string, cfg BroadcastConfig) *Queue {
	return &Queue{b: b, cast: &broadcast{exchange: exchange, cfg: cfg},
		cfg: cfg.queue()}
}

// queue is the settings of the queue that each consumer makes for itself.
func (c *BroadcastConfig) queue() QueueConfig {
	return QueueConfig{Prefetch: c.Prefetch, SettleLinger: c.SettleLinger, AutoAck: c.AutoAck, Key: c.Key}
}

// keys are the binding keys: without any, those that bring every message.
func (s *broadcast) keys() []string {
	switch {
	case len(s.cfg.Keys) > 0:
		return s.cfg.Keys
	case s.cfg.Kind == Fanout:
		return []string{""}
	}
	return []string{"#"} // means nothing special to a fanout exchange
}

// sample is a routing key that leads to the queue where the bindings are plain.
func (s *broadcast) sample() string { return s.keys()[0] }

// check reports every mistake in the settings at once.
func (s *broadcast) check() error {
	l := &problem.List{Op: fmt.Sprintf("rabbitmq broadcast %q", s.exchange), Source: s.exchange}
	if s.exchange == "" || len(s.exchange) > codec.MaxShort {
		l.Range("the exchange's name", fmt.Sprintf("%d bytes long", len(s.exchange)), "1 to 255 bytes long")
	}
	for i, k := range s.cfg.Keys {
		if len(k) > codec.MaxShort {
			l.Range(fmt.Sprintf("Keys[%d]", i), fmt.Sprintf("%d bytes long", len(k)), "at most 255 bytes long")
		}
	}
	s.together(l)
	cfg := s.cfg.queue()
	l.Join(cfg.check(s.exchange))
	return l.Err()
}

// prepare makes queue, exchange and bindings. The queue is exclusive, so it ends
// with the connection, but not auto-deleted, so that a pause keeps it.
func (s *broadcast) prepare(b *Broker, ch conn.Channel) ([]amqp091.Queue, error) {
	name := "longshore.broadcast." + s.exchange
	if len(name) > 200 {
		name = name[:200]
	}
	q, err := ch.QueueDeclare(name+"."+rand.Text()[:10], false, false, true, false, s.limits())
	if err != nil {
		return nil, b.set.brokerError(fmt.Sprintf("declare a queue for rabbitmq broadcast %q", s.exchange), s.exchange, err)
	}
	bindings := s.bindings
	if bindings == nil {
		if err := b.declareExchange(ch, s.exchange, s.cfg.Kind, nil); err != nil {
			return nil, err
		}
		for _, key := range s.keys() {
			bindings = append(bindings, Binding{Exchange: s.exchange, Key: key})
		}
	}
	for _, to := range bindings {
		if err := ch.QueueBind(q.Name, to.Key, to.Exchange, false, to.Arguments); err != nil {
			return nil, b.set.brokerError(fmt.Sprintf("bind to rabbitmq exchange %q", to.Exchange), to.Exchange, err)
		}
	}
	return []amqp091.Queue{q}, nil
}
