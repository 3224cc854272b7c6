package amqp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Queue is one or several queues of a [Broker], or the queue of a broadcast, and the way to
// consume from them. It is a transport.Source, made by [Broker.Queue], [Broker.Queues] and
// [Broker.Broadcast]; besides opening it can be described, checked, probed, browsed and
// measured. All methods are safe for concurrent use.
type Queue struct {
	b      *Broker     // whose connections and login it uses
	queues []string    // consumed side by side; none with cast
	cfg    QueueConfig // the same for all of them
	cast   *broadcast  // the queue of a broadcast, in place of queues
	lock   string      // an exclusive queue that must be had to consume; "": none

	// What earlier openings have shown.
	opened   atomic.Bool     // once at least: what is reported once has been
	unasked  atomic.Bool     // the management API did not answer, which was reported
	starved  atomic.Int32    // subscriptions in a row that got nothing though messages were ready
	expiry   expiry          // whether policies delete unused queues, and with them retries that wait
	slow     atomic.Bool     // the ack timeout ran out on messages that waited in the shared window
	streamed atomic.Bool     // a delivery came from a stream
	patience patience        // how long the broker waits for an acknowledgement
	places   places          // how far streams were read
	listed   listedConsumers // who consumes, by the management API
}

// Open connects, declares and consumes.
func (s *Queue) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := s.ValidateOpen(o); err != nil {
		return nil, err
	}
	if s.cfg.Consumers == PerWorker {
		return s.openPerWorker(ctx, o)
	}
	c, err := s.openChannel(ctx, s.config(), o, nil)
	if err != nil {
		return nil, err
	}
	s.opened.Store(true)
	return c, nil
}

// openChannel opens one consumer on a channel of its own. One of
// several leaves to the first what is done once for all.
func (s *Queue) openChannel(ctx context.Context, cfg *QueueConfig, o transport.OpenOptions, with *placeInCrew) (*consumer, error) {
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return nil, s.opening(err)
	}
	if s.lock != "" {
		if err := s.b.lock(ctx, sess, s.lock); err != nil {
			return nil, errors.Join(err, s.b.consume.Release(ctx, sess))
		}
	}
	c := newConsumer(s, cfg, sess, o, with) //nolint:contextcheck // a consumer outlives its opening
	sess.Go(c.writer.run)
	if err := c.writer.do(ctx, func() error { return c.setUp(ctx, o) }); err != nil {
		c.abort(ctx)
		if deleted(err) && len(s.queues) == 1 {
			s.places.gone(s.queues[0])
		}
		return nil, s.b.set.brokerError("open "+s.title(), s.name(), err)
	}
	if c.lead == nil {
		s.b.listen(c.notices)
	}
	return c, nil
}

// opening names the source in an error of its connection.
func (s *Queue) opening(err error) error {
	return onConnect(err, "open "+s.title(), s.name())
}

// starves refuses a prefetch that would starve the workers. Later openings go on: whoever
// asks for more workers in a running container gets as many as the prefetch feeds.
func (s *Queue) starves(o transport.OpenOptions) error {
	if s.cfg.Consumers == PerWorker {
		return s.starvesBatches(o)
	}
	if s.cfg.Prefetch <= 0 || s.cfg.Pull || s.cfg.AutoAck || o.MaxWindow <= s.cfg.Prefetch || s.opened.Load() {
		return nil
	}
	e := problem.Bad("Prefetch", fmt.Sprintf("set {Prefetch} to at least %d, or to 0 to follow the workers", o.MaxWindow),
		"is %d, less than the %d deliveries that workers and lookahead can hold", s.cfg.Prefetch, o.MaxWindow).Of("open "+s.title(), s.name())
	e.Code = longshore.CodeWindow
	return e
}

// Capabilities is what the configuration reports.
func (s *Queue) Capabilities() transport.Capabilities {
	cfg := s.config()
	caps := cfg.capabilities()
	caps.KeepsPlace = caps.KeepsPlace || s.cast != nil // the queue of a broadcast goes with its consumer
	if cfg.stream() {                                  // a copy would come to all who read it, and a second consumer would read it all again
		caps.Delay, caps.MaxDelay, caps.LiveResize, caps.KeepsPlace = false, 0, false, true
	}
	return caps
}

// Describe names the source.
func (s *Queue) Describe() transport.Description {
	d := transport.Description{Transport: "rabbitmq", Kind: "queue", Name: s.name(), Address: s.b.address(), Namespace: s.b.set.addr.VHost, Bindings: s.cfg.Declare.bindings()}
	if s.cast != nil {
		d.Kind = "broadcast"
	}
	return d
}

// bindings names the exchanges that lead to the queue, as they are declared.
func (d *Declare) bindings() string {
	parts := make([]string, 0, len(d.Bindings))
	for _, b := range d.Bindings {
		text := fmt.Sprintf("exchange %q", b.Exchange)
		if b.Key != "" {
			text += fmt.Sprintf(" with key %q", b.Key)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// name is the queue, all of several, or the exchange of a broadcast.
func (s *Queue) name() string {
	if s.cast != nil {
		return s.cast.exchange
	}
	return strings.Join(s.queues, ",")
}

// title is the name with its kind, for errors and the log.
func (s *Queue) title() string {
	switch {
	case s.cast != nil:
		return fmt.Sprintf("rabbitmq broadcast %q", s.cast.exchange)
	case len(s.queues) > 1:
		return fmt.Sprintf("rabbitmq queues %q", s.queues)
	}
	return fmt.Sprintf("rabbitmq queue %q", s.name())
}

// Check reports all that is wrong with the configuration, the broker's included.
func (s *Queue) Check() error {
	l := &problem.List{Op: s.title()}
	l.Join(s.b.set.problem)
	if s.cast != nil {
		l.Join(s.cast.check())
	} else if len(s.queues) == 0 {
		l.Add(problem.Bad("", "name at least one", "no queue is named").OfKind(problem.Missing))
	}
	seen := map[string]bool{}
	for _, q := range s.queues {
		l.Join(s.cfg.check(q))
		if seen[q] {
			l.Bad("", "name it once", "queue %q is named twice", q)
		}
		seen[q] = true
	}
	return l.Err()
}

// Publisher returns a publisher on the same broker and the destination that leads
// back here: the first queue, or the exchange of a broadcast.
func (s *Queue) Publisher(context.Context) (transport.Publisher, string, error) {
	p, err := s.b.Publisher(PublisherConfig{})
	if s.cast != nil {
		return p, To(s.cast.exchange, s.cast.sample()), err
	}
	return p, To("", s.queues[0]), err
}

// Probe connects and looks whether the queues are there.
func (s *Queue) Probe(ctx context.Context) error {
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return s.opening(err)
	}
	err = sess.Scratch(ctx, func(ch conn.Channel) error {
		if s.cast != nil {
			return s.b.declareExchange(ch, s.cast.exchange, "", nil)
		}
		for _, q := range s.queues {
			if _, err := ch.QueueDeclarePassive(q, true, false, false, false, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		err = s.b.set.brokerError("probe "+s.title(), s.name(), err)
	}
	return errors.Join(err, s.b.consume.Release(ctx, sess))
}

// RemovalCommand implements [transport.Removable].
func (s *Queue) RemovalCommand() string {
	if vhost := s.b.set.addr.VHost; vhost != "" && vhost != "/" {
		return fmt.Sprintf("rabbitmqctl delete_queue --vhost %s %s", vhost, s.name())
	}
	return "rabbitmqctl delete_queue " + s.name()
}
