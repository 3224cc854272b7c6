package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// queueSource is a queue with the way to consume from it.
type queueSource struct {
	b    *Broker     // where it is
	name string      // of the queue
	cfg  QueueConfig // as given
}

// Open subscribes to the queue.
func (s *queueSource) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := s.b.slow(ctx, OpOpen); err != nil {
		return nil, err
	}
	if err := s.b.faults.opening(s.name); err != nil {
		return nil, err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q, err := s.declare(o.DeadLetter)
	if err != nil {
		return nil, err
	}
	if q.consumers.exclusive || (s.cfg.Exclusive && len(q.consumers.all) > 0) {
		return nil, &longshore.Error{Code: longshore.CodeExclusive, Op: "open " + q.title(), Source: q.name,
			Err: errors.New("another consumer holds it")}
	}
	q.consumers.exclusive = s.cfg.Exclusive
	c := newConsumer(q, s.cfg, o)
	c.join()
	return c, nil
}

// declare finds or makes the queue and those it dead-letters to.
func (s *queueSource) declare(deadLetter string) (*queue, error) {
	q := s.b.queues[s.name]
	if q == nil && s.cfg.MustExist {
		return nil, s.b.notFound(s.name)
	}
	q = s.b.queue(s.name)
	if err := q.declare(s.cfg.props()); err != nil {
		return nil, err
	}
	for _, name := range []string{q.props.deadLetter, deadLetter} {
		if name != "" && s.b.topics[name] == nil {
			s.b.queue(name)
		}
	}
	return q, nil
}

// Capabilities is what the configuration asks for. An open consumer knows what
// the queue has.
func (s *queueSource) Capabilities() transport.Capabilities {
	caps := s.cfg.capabilities()
	caps.MaxMessageBytes = s.b.cfg.MaxMessageBytes
	return caps
}

// Describe names the queue.
func (s *queueSource) Describe() transport.Description {
	return transport.Description{Transport: "memory", Kind: "queue", Name: s.name, Address: s.b.cfg.Name, InProcess: true}
}

// Check reports all that is wrong with the configuration.
func (s *queueSource) Check() error { return s.cfg.check(s.name) }

// Publisher returns a publisher of the broker, and the queue's name.
func (s *queueSource) Publisher(context.Context) (transport.Publisher, string, error) {
	p, err := s.b.Publisher(PublisherConfig{})
	return p, s.name, err
}

// topic is what a broadcast source consumes from.
type topic struct {
	name   string               // unique in the broker
	retain bool                 // keeps the last message of each key for later subscriptions
	queues map[*queue]struct{}  // one for each subscription
	last   []*longshore.Message // one of each key, oldest first
}

type topicSource struct {
	b     *Broker         // where it is
	topic *topic          // whose messages it copies
	cfg   BroadcastConfig // as given
}

// Broadcast is a source of which every consumer gets every message that is
// published to the topic while it is open, and with Retain the last one of each
// key from before. The topic exists from now on; a queue of the same name is not
// published to any more.
//
// A consumer's messages are its own: what it has not settled is gone when it ends.
func (b *Broker) Broadcast(name string, cfg BroadcastConfig) transport.Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.topics[name]
	if t == nil {
		t = &topic{name: name, queues: map[*queue]struct{}{}}
		b.topics[name] = t
	}
	t.retain = t.retain || cfg.Retain
	return &topicSource{b: b, topic: t, cfg: cfg}
}

// Open subscribes to the topic.
func (s *topicSource) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := s.Probe(ctx); err != nil {
		return nil, err
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q := &queue{b: s.b, name: s.topic.name, topic: s.topic}
	s.topic.queues[q] = struct{}{}
	for _, m := range s.topic.last {
		q.publish(m)
	}
	if o.DeadLetter != "" && s.b.topics[o.DeadLetter] == nil {
		s.b.queue(o.DeadLetter)
	}
	c := newConsumer(q, s.queueConfig(), o)
	c.join()
	return c, nil
}

func (s *topicSource) queueConfig() QueueConfig { return QueueConfig{Prefetch: s.cfg.Prefetch} }

// Probe reports whether the broker would let a consumer in.
func (s *topicSource) Probe(ctx context.Context) error {
	if err := s.b.slow(ctx, OpOpen); err != nil {
		return err
	}
	return s.b.faults.opening(s.topic.name)
}

// Capabilities is that of a queue with default settings.
func (s *topicSource) Capabilities() transport.Capabilities {
	cfg := s.queueConfig()
	caps := cfg.capabilities()
	caps.KeepsPlace = true // what comes without a subscriber is not for us
	caps.MaxMessageBytes = s.b.cfg.MaxMessageBytes
	return caps
}

// Describe names the topic.
func (s *topicSource) Describe() transport.Description {
	return transport.Description{Transport: "memory", Kind: "broadcast", Name: s.topic.name, Address: s.b.cfg.Name}
}

// Check reports all that is wrong with the configuration.
func (s *topicSource) Check() error {
	cfg := s.queueConfig()
	return cfg.check(s.topic.name)
}

// Publisher returns a publisher of the broker, and the topic's name.
func (s *topicSource) Publisher(context.Context) (transport.Publisher, string, error) {
	p, err := s.b.Publisher(PublisherConfig{})
	return p, s.topic.name, err
}

// publish gives the message to all who are there.
func (t *topic) publish(m *longshore.Message) {
	for q := range t.queues {
		q.publish(m)
		q.dispatch()
	}
	if !t.retain {
		return
	}
	keep := m.Clone()
	for i, old := range t.last {
		if string(old.Key) == string(m.Key) && (old.Key == nil) == (m.Key == nil) {
			t.last = append(t.last[:i], t.last[i+1:]...)
			break
		}
	}
	t.last = append(t.last, keep)
}

// identify is the broker's own id of a delivery.
func identify(d *longshore.Delivery) string {
	return fmt.Sprintf("memory/%s/%d", d.Origin.Topic, d.Origin.Position)
}
