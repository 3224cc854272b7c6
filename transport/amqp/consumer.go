package amqp

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// consumer is one channel from its opening to its end: the public face of the parts that
// do the work. It wires them together and owns the order of opening and closing; the doc
// of the package names the parts.
type consumer struct {
	src     *Queue           // what it was opened from
	cfg     *QueueConfig     // as far as the queue is known now
	sess    *conn.Session    // the connection, shared with other consumers
	notices *notify.Notifier // what the observer hears
	base    context.Context  //nolint:containedctx // the parent of the deliveries' contexts
	queues  []string         // as the broker calls them; known once they are declared

	ch       *consumeChannel // a channel of its own: delivery tags and errors belong to one
	held     *deliveries     // what is buffered or handed out
	writer   *settleWriter   // the only one that writes to the channel
	window   *prefetch       // how much the broker sends ahead
	limits   *returnLimits   // returns that queues still allow
	copies   *copier         // publishes what must not go back as it is
	own      *settler        // settles its deliveries
	failure  *failure        // why it ended
	liveness *liveness       // notices a subscription that brings nothing
	lead     *consumer       // of several on one queue the one that declares, looks and reports for all; nil: this one

	intake   context.Context    //nolint:containedctx // its end is the end of pulling and of late resizing
	halt     context.CancelFunc // ends intake
	wg       sync.WaitGroup     // pumps and watchers
	release  sync.Once          // gives the connections back
	failing  atomic.Bool        // an end that is not ours is being reported, or was
	reported chan struct{}      // closed when that is done: whoever ends the consumer, too, waits for it
}

func newConsumer(s *Queue, cfg *QueueConfig, sess *conn.Session, o transport.OpenOptions, with *placeInCrew) *consumer {
	c := &consumer{src: s, cfg: cfg, sess: sess, base: o.Base, notices: notify.New(o.Observer), ch: &consumeChannel{}, reported: make(chan struct{})}
	if c.base == nil {
		c.base = context.Background()
	}
	c.intake, c.halt = context.WithCancel(context.Background())
	ordered := o.Ordered && !c.cfg.AutoAck
	c.limits = &returnLimits{src: s, version: sess.Version, ordered: ordered}
	rules := returnRules{title: s.title(), ordered: ordered, byClosing: keepsByClosing(c.cfg, ordered, sess.Version), autoAck: c.cfg.AutoAck, refuses: c.cfg.refusesWhenFull()}
	c.held = newDeliveries(c.cfg, rules, c.limits, c.notices, o.Paused)
	c.copies = &copier{src: s, keep: newKeepalive(s, sess, c.notices, c.held.gone)}
	c.own = &settler{src: s, cfg: c.cfg, held: c.held, copies: c.copies, operations: o.Operations}
	c.window = newPrefetch(s.plan(c.cfg, o), c.cfg, o)
	c.window.ch, c.window.held, c.window.gone, c.window.pumps = c.ch, c.held, c.held.gone, &c.wg
	c.failure = &failure{src: s, sess: sess, notices: c.notices, window: c.window.windowPlan, held: c.held}
	c.liveness = &liveness{src: s, counted: c.window.counted, look: func(queue string) (amqp091.Queue, bool, error) { return inspect(sess, queue) }}
	c.writer = &settleWriter{ch: c.ch, held: c.held, window: c.window, intake: c.intake, operations: o.Operations, pause: c.cfg.linger() / 2,
		wake: c.held.wake, gone: c.held.gone, jobs: make(chan *job), quit: make(chan struct{}), left: make(chan struct{}),
		backlog: quorumBacklog{off: c.cfg.Declare.Type == Classic || c.cfg.AutoAck}}
	if with != nil {
		c.join(with)
	}
	return c
}

// join makes it one of several consumers.
func (c *consumer) join(with *placeInCrew) {
	c.held.ready, c.liveness.counted, c.lead = with.ready, with.counted, with.lead
	if c.lead != nil {
		c.limits, c.held.limits = c.lead.limits, c.lead.limits
	}
}

// keepsByClosing: without a delivery limit, which up to 3.13 is the default, a quorum queue
// puts what basic.nack gives back at its end, behind messages of the same key, and what a
// closing channel leaves at its front. A stream ends the connection over a basic.nack.
func keepsByClosing(cfg *QueueConfig, ordered bool, v conn.Version) bool {
	return cfg.stream() || ordered && cfg.Declare.Type != Classic && v[0] < 4
}

// setUp opens the channel, declares and consumes. It runs as a job of the settle writer.
func (c *consumer) setUp(ctx context.Context, o transport.OpenOptions) error {
	ch, err := c.sess.AMQP.Channel()
	if err != nil {
		return err
	}
	c.ch.Channel = ch
	closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
	cancels := c.hearCancels(ch.NotifyCancel(make(chan string)))
	standby, err := c.findQueues(ctx, o)
	if err != nil {
		return err
	}
	source := c.src.name() // once: of many queues it is a long list
	r := &receiver{base: c.base, own: c.own, key: c.cfg.Key, held: c.held, queues: c.queues}
	for range c.queues {
		r.subs = append(r.subs, &longshore.Subscription{Transport: "rabbitmq", Source: source, Tag: c.window.tagStem})
	}
	c.window.receive = r.receive
	c.learn(o) //nolint:contextcheck // has a time of its own
	c.held.begin(newStreamReader(c.src, c.cfg, c.queues), standby)
	if err := c.window.begin(ctx, c.queues); err != nil {
		return err
	}
	if c.cfg.Pull {
		p := &puller{ch: c.ch, writer: c.writer, held: c.held, window: c.window, receive: r.receive, queues: c.queues,
			pause: c.cfg.pullInterval(), autoAck: c.cfg.AutoAck, operations: o.Operations}
		c.wg.Go(func() { p.run(c.intake) })
	}
	c.report(o, standby)
	c.wg.Go(func() { c.watch(closes, cancels) }) //nolint:contextcheck // outlives the opening
	return nil
}

// findQueues declares the queues and notes their names. It reports whether another consumer
// has the role of the single active one.
func (c *consumer) findQueues(ctx context.Context, o transport.OpenOptions) (standby bool, err error) {
	if c.lead != nil {
		c.queues = c.lead.queues
		return false, nil
	}
	declared, err := c.declare(ctx, o)
	if err != nil {
		return false, err
	}
	for _, q := range declared {
		c.queues = append(c.queues, q.Name)
	}
	return c.cfg.SingleActive && declared[0].Consumers > 0 && !o.Paused, nil // a paused one does not wait for the role yet
}

// declare makes sure that the queues are there.
func (c *consumer) declare(ctx context.Context, o transport.OpenOptions) (declared []amqp091.Queue, err error) {
	if c.src.cast != nil {
		declared, err = c.src.cast.prepare(c.src.b, c.ch.Channel)
	} else {
		declared, err = c.src.topology().prepare(ctx, c.sess, c.ch.Channel, o.DeadLetter)
	}
	if text := c.src.declared(o.DeadLetter, c.limits.ordered); err == nil && text != "" {
		c.notices.Event(transport.Event{Kind: transport.EventDeclared, Text: text})
	}
	return declared, err
}

// learn reads what the management API knows of the queues, and begins to keep from
// expiring what holds messages of ours.
func (c *consumer) learn(o transport.OpenOptions) {
	if c.lead != nil {
		c.copies.keep.begin(c.queues[0], "")
		c.wg.Go(c.copies.keep.run)
		return
	}
	c.src.learnPolicies(c.queues, o.DeadLetter, c.limits.ordered, c.notices)
	c.copies.keep.begin(c.queues[0], o.DeadLetter)
	c.wg.Go(c.copies.keep.run)
	c.limits.learn(c.queues, c.src.askFacts(c.queues, c.held.gone, c.notices), c.notices)
	if c.src.b.set.Management != "" {
		c.wg.Go(func() { c.limits.follow(c.held.gone, c.notices) })
	}
}

// report says what an operator has to know about this opening.
func (c *consumer) report(o transport.OpenOptions, standby bool) {
	if c.lead != nil {
		return
	}
	notice := func(text string) {
		if text != "" {
			c.notices.Event(transport.Event{Kind: transport.EventNotice, Text: text})
		}
	}
	first := !c.src.opened.Load()
	if first {
		notice(c.src.orderNotice(o))
	}
	if standby {
		c.notices.Event(transport.Event{Kind: transport.EventStandby,
			Text: fmt.Sprintf("%s has an active consumer already; this one takes over when it ends", c.src.title())})
	}
	if t := c.src.b.set.TLS; t != nil && t.InsecureSkipVerify {
		notice(fmt.Sprintf("the certificate of rabbitmq at %s is NOT verified: TLS.InsecureSkipVerify is set", c.sess.Node))
	}
	if first {
		notice(c.src.b.set.clearNotice(c.sess.Node))
	}
}

// abort ends a consumer that was never handed out.
func (c *consumer) abort(ctx context.Context) {
	c.end(longshore.ErrClosed, longshore.ErrLost)
	c.writer.stop()
	select {
	case <-c.writer.left:
		c.wg.Wait()
	case <-ctx.Done(): // the writer ends with the connection at the latest
	}
	_ = c.giveBackConnections(ctx)
}

// Receive returns buffered deliveries, in the order of the queue.
func (c *consumer) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	n = max(n, 1)
	for {
		ds, err := c.held.take(n)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		select {
		case <-c.held.ready:
		case <-c.held.gone:
		case <-ctx.Done():
			c.held.stopWaiting()
			return nil, ctx.Err()
		}
	}
}

// Buffered is the number of deliveries that Receive has not handed out.
func (c *consumer) Buffered() int { return c.held.buffered() }

// Capabilities is what this queue can do on this version of the broker.
func (c *consumer) Capabilities() transport.Capabilities {
	caps := c.src.Capabilities()
	if asOne := caps.SingleActive && caps.KeepsPlace; c.sess.Version.CountsRejectsOnly() && !asOne {
		caps.CountsReturns = false // basic.nack does not count any more; what goes back with the channel does
	}
	caps.DeliveryLimit = c.limits.smallest()
	caps.Lease = c.src.patience.lease(caps.Lease)
	caps.MaxMessageBytes = int64(c.sess.MaxBytes())
	if caps.MostHeld = c.window.limit; c.cfg.AutoAck || c.cfg.Prefetch == Unlimited {
		caps.MostHeld = 0
	}
	return caps
}

// Backlog is how many messages are ready in the source's queues, without those that are
// out to consumers.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	sum, err := countReady(ctx, c.sess, c.queues)
	if err != nil {
		return 0, time.Time{}, c.src.b.set.brokerError("read the depth of "+c.src.title(), c.src.name(), err)
	}
	// A quorum queue counts no consumer that stands by, so there one consumer is not a sign
	// that the others have left; the first delivery is.
	if sum.consumers <= 1 && c.cfg.Declare.Type == Classic {
		c.held.alone()
	}
	return int64(sum.ready), time.Now(), nil
}

// Resize makes the window follow the container's wish; 0 takes nothing more.
func (c *consumer) Resize(ctx context.Context, window int) error {
	c.window.resize(window)
	return c.reshape(ctx, "resize")
}

// Pause takes nothing more from the broker, or hands out nothing more where a consumer
// that is cancelled would lose its role. What was received stays ours.
func (c *consumer) Pause(ctx context.Context) error {
	c.held.setPaused(true)
	return c.reshape(ctx, "pause")
}

// Resume takes messages again.
func (c *consumer) Resume(ctx context.Context) error {
	c.held.setPaused(false)
	return c.reshape(ctx, "resume")
}

// reshape follows a change of the window. A consumer that pulls only asks again.
func (c *consumer) reshape(ctx context.Context, what string) error {
	if c.cfg.Pull {
		signal(c.held.fetch)
		return nil
	}
	if err := c.writer.do(ctx, func() error { return c.window.adjust(ctx) }); err != nil {
		return c.src.b.set.brokerError(what+" "+c.src.title(), c.src.name(), err)
	}
	return nil
}
