package amqp

import (
	"context"
	"fmt"
	"maps"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// topology is what a source declares on its broker.
type topology struct {
	b      *Broker      // for exchanges and the dead-letter queue, and its words in errors
	queues []string     // declared alike
	cfg    *QueueConfig // what is declared
}

func (s *Queue) topology() topology { return topology{s.b, s.queues, &s.cfg} }

// prepare makes sure that the source's queues are there, in the order channel,
// queues, exchanges, bindings. ch belongs to the consumer: a refusal ends it, and
// with it the attempt to open.
func (t topology) prepare(ctx context.Context, sess *conn.Session, ch conn.Channel, deadLetter string) ([]amqp091.Queue, error) {
	qs := make([]amqp091.Queue, 0, len(t.queues))
	for _, name := range t.queues {
		q, err := t.declareQueue(ch, name)
		if err != nil {
			return nil, err
		}
		qs = append(qs, q)
	}
	if t.cfg.Declare.isZero() {
		return qs, nil
	}
	for _, b := range t.cfg.Declare.Bindings {
		if err := t.b.declareExchange(ch, b.Exchange, b.Kind, b.ExchangeArguments); err != nil {
			return nil, err
		}
	}
	for _, q := range qs {
		for _, b := range t.cfg.Declare.Bindings {
			if err := ch.QueueBind(q.Name, b.Key, b.Exchange, false, b.Arguments); err != nil {
				return nil, t.b.set.brokerError(fmt.Sprintf("bind rabbitmq queue %q to exchange %q", q.Name, b.Exchange), q.Name, err)
			}
		}
	}
	return qs, t.b.declareDeadLetter(ctx, sess, deadLetter, t.cfg.Declare.Type)
}

// declared is what prepare makes sure of and what retries will need, for people; "" for
// neither. Policies apply to all of it, and AMQP does not show them: where they cannot be
// read, that is said here.
func (s *Queue) declared(deadLetter string, ordered bool) string {
	if s.cast != nil {
		return fmt.Sprintf("an own queue on exchange %q", s.cast.exchange)
	}
	text := s.topology().describe(deadLetter)
	if s.Capabilities().Delay && !ordered {
		text = joined(text, fmt.Sprintf("delay queues %q when a retry needs one", codec.DelayStem(s.queues[0])+"*"))
	}
	if text != "" && s.b.set.Management == "" {
		text += "; policies on these queues cannot be read without Management, and one with expires deletes waiting retries and dead letters while no consumer is open"
	}
	return text
}

// joined lists two texts, of which the first may be empty.
func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

// describe names what is declared, for people.
func (t topology) describe(deadLetter string) string {
	if t.cfg.Declare.isZero() {
		return ""
	}
	parts := make([]string, len(t.queues), len(t.queues)+len(t.cfg.Declare.Bindings)+1)
	for i, q := range t.queues {
		parts[i] = fmt.Sprintf("queue %q", q)
	}
	for _, b := range t.cfg.Declare.Bindings {
		parts = append(parts, fmt.Sprintf("binding %q to exchange %q", b.Key, b.Exchange))
	}
	if exchange, queue := parseDest(deadLetter); queue != "" && exchange == "" {
		parts = append(parts, fmt.Sprintf("dead-letter queue %q", queue))
	}
	return strings.Join(parts, ", ")
}

// Declares are the arguments with which the source declares its queues, for tools that
// compare them with what is there; nil: it declares none.
func (s *Queue) Declares() map[string]any { return s.cfg.arguments() }

// arguments are those of the declaration; nil: none is made.
func (c *QueueConfig) arguments() map[string]any {
	d := &c.Declare
	if d.isZero() {
		return nil
	}
	args := maps.Clone(d.Arguments)
	if args == nil {
		args = map[string]any{}
	}
	if d.Type != "" {
		args["x-queue-type"] = string(d.Type)
	}
	if c.SingleActive {
		args["x-single-active-consumer"] = true
	}
	return args
}

// declareQueue declares the queue, or looks whether it is there.
func (t topology) declareQueue(ch conn.Channel, name string) (amqp091.Queue, error) {
	d := &t.cfg.Declare
	if d.isZero() {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil {
			return q, t.b.set.brokerError(fmt.Sprintf("open rabbitmq queue %q in vhost %q", name, t.b.set.addr.VHost), name, err)
		}
		return q, nil
	}
	args := t.cfg.arguments()
	q, err := ch.QueueDeclare(name, !d.Transient, d.AutoDelete, false, false, args)
	if err != nil {
		return q, t.b.set.brokerError(fmt.Sprintf("declare rabbitmq queue %q", name), name, err)
	}
	return q, nil
}

// declareExchange declares a durable exchange, or looks whether it is there if
// kind is empty.
func (b *Broker) declareExchange(ch conn.Channel, name string, kind ExchangeKind, args amqp091.Table) error {
	if kind == "" {
		if err := ch.ExchangeDeclarePassive(name, string(Direct), true, false, false, false, nil); err != nil {
			return b.set.brokerError(fmt.Sprintf("use rabbitmq exchange %q in vhost %q", name, b.set.addr.VHost), name, err)
		}
		return nil
	}
	if err := ch.ExchangeDeclare(name, string(kind), true, false, false, false, args); err != nil {
		return b.set.brokerError(fmt.Sprintf("declare rabbitmq exchange %q", name), name, err)
	}
	return nil
}

// declareDeadLetter creates the container's dead-letter queue if it is missing.
// One that exists is used whatever its properties are. A destination with an
// exchange in it is for others to create.
func (b *Broker) declareDeadLetter(ctx context.Context, sess *conn.Session, dest string, kind QueueType) error {
	exchange, queue := parseDest(dest)
	if queue == "" || exchange != "" {
		return nil
	}
	err := sess.Scratch(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		return err
	})
	if e, ok := conn.AsAMQP(err); !ok || e.Code != amqp091.NotFound {
		if err != nil {
			return b.set.brokerError(fmt.Sprintf("use rabbitmq dead-letter queue %q", queue), queue, err)
		}
		return nil
	}
	var args amqp091.Table
	if kind != "" {
		args = amqp091.Table{"x-queue-type": string(kind)}
	}
	err = sess.Scratch(ctx, func(ch conn.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, args)
		return err
	})
	if err != nil {
		return b.set.brokerError(fmt.Sprintf("declare rabbitmq dead-letter queue %q", queue), queue, err)
	}
	return nil
}
