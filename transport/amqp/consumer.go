package amqp

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// consumer is one channel from its opening to its end. Its deliveries are settled
// through its settler and no other, so a late settlement never reaches a tag of
// a later channel.
//
// One goroutine, the sender, owns the channel: it writes settlements and calls
// the methods that wait for an answer, in one order.
type consumer struct {
	b          *Broker
	src        *queueSource
	cfg        *QueueConfig
	sess       *conn.Session
	base       context.Context //nolint:containedctx // parent of the deliveries' contexts
	tell       teller
	operations transport.Operations
	own        settler
	subs       []*longshore.Subscription // one for each queue

	// Owned by the sender.
	ch      conn.Channel
	queues  []string // as the broker calls them
	steps   []*step  // consumers on the channel, oldest first
	qos     int
	batch   tags.Batch
	keep    *keepalive
	limit   int  // the largest window
	fixed   int  // the window where it cannot follow; 0 = unlimited
	first   int  // the least size of the first step
	ordered bool // what is given back at the end must keep its place
	shared  bool // the window is the one that all ordered consumers have
	calm    time.Time
	again   time.Time // when a cancel that was put off is tried again; zero: none was
	burst   int       // settlements written in a short time
	burstAt time.Time
	heavy   bool // there were so many once that the channel may have kept some
	others  int  // consumers of the queue that are not ours; -1: not known
	tagStem string
	made    int // consumers made on the channel, cancelled ones included

	jobs   chan *job
	wake   chan struct{}      // something is to be sent
	ready  chan struct{}      // something is to be received
	fetch  chan struct{}      // something is wanted; for Pull
	stop   chan struct{}      // closed: the sender closes the channel and leaves
	sender chan struct{}      // closed: it has left
	gone   chan struct{}      // closed: end is set
	ends   chan error         // the watcher ends it
	intake context.Context    //nolint:containedctx // its end is the end of pulling
	halt   context.CancelFunc // ends intake: no more pulling
	wg     sync.WaitGroup     // pumps, watcher

	mu           sync.Mutex
	tags         tags.Ring
	stale        uint64 // tags below it came from consumers that were all cancelled
	window       int    // sum of the prefetch of all consumers on the channel
	wanted       int    // as Resize said
	end          error  // what Receive returns for ever; nil while the channel lives
	leaving      bool   // Cancel or Close was called
	canceled     bool   // we have ended all consumers on the channel, or are deaf to them
	ignoring     bool   // they could not be ended: what comes goes back with the channel
	stays        bool   // what is given back waits for the channel's end, to keep its place
	paused       bool
	places       []*place // in the streams among its queues; nil before and after
	limits       []limit  // delivery limits of its queues
	writeStopped bool     // nothing more may be sent
	stopped      bool     // stop is closed
	urgent       bool     // do not linger
	failed       int      // settlements lost since the last Flush
	demand       int      // what a Receive that waits would take; for Pull
	standby      bool
	out          []*longshore.Delivery // what the last Receive returned
	retry        *Publisher            // for copies; made when first needed
	released     bool                  // the session was given back
}

// job is something the sender does between two passes.
type job struct {
	f    func() error
	done chan error
}

func newConsumer(s *queueSource, sess *conn.Session, o transport.OpenOptions) *consumer {
	c := &consumer{b: s.b, src: s, cfg: &s.cfg, sess: sess, base: o.Base, tags: tags.New(),
		jobs: make(chan *job), wake: make(chan struct{}, 1), ready: make(chan struct{}, 1), fetch: make(chan struct{}, 1),
		stop: make(chan struct{}), sender: make(chan struct{}), gone: make(chan struct{}), wanted: o.Window, paused: o.Paused, others: -1, ends: make(chan error, 1)}
	if c.base == nil {
		c.base = context.Background()
	}
	c.tell.obs, c.operations = o.Observer, o.Operations
	c.own.c, c.keep = c, newKeepalive(c)
	c.intake, c.halt = context.WithCancel(context.Background())
	c.bound(o)
	return c
}

// bound sets how far the window may go.
func (c *consumer) bound(o transport.OpenOptions) {
	p := c.cfg.Prefetch
	switch {
	case p > 0:
		c.limit, c.fixed = p, p
	case p == Unlimited || c.cfg.AutoAck:
		c.limit = math.MaxUint16
	default:
		c.limit = max(defaultWindow, 2*max(o.MaxWindow, o.Window))
		c.fixed = max(o.MaxWindow, o.Window)
		if c.fixed == 0 {
			c.fixed = defaultWindow
		}
	}
	if o.Ordered && c.cfg.Declare.Type == Classic && p == 0 {
		c.limit = math.MaxUint16 // what waits behind a blocked one takes no place from the others
	}
	c.first = baseWindow
	if c.shared = c.src.fixesWindow(o); c.shared {
		queues := len(c.src.queues)
		c.limit = queues * orderedWindow(max(o.MaxWindow, o.Window), queues)
		c.fixed = c.limit
	}
	if o.Ordered && c.cfg.Declare.Type != Classic {
		// What a cut connection leaves unsettled a quorum queue takes back consumer by
		// consumer: with several, later messages of a key come before earlier ones. So
		// one consumer has the whole window, room for parked retries included.
		if c.cfg.Prefetch == 0 && c.src.slow.Load() {
			c.limit = c.fixed
		}
		c.first = c.limit
	}
	if c.wanted == 0 { // nobody asks
		c.wanted = min(c.limit, defaultWindow)
	}
}

// setUp opens the channel, declares and consumes. It runs on the sender.
func (c *consumer) setUp(ctx context.Context, o transport.OpenOptions) error {
	ch, err := c.sess.AMQP.Channel()
	if err != nil {
		return err
	}
	c.ch = ch
	closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
	cancels := c.hearCancels(ch.NotifyCancel(make(chan string)))
	var declared []amqp091.Queue
	if c.src.cast != nil {
		declared, err = c.src.cast.prepare(c.b, ch)
	} else {
		declared, err = c.src.prepare(ctx, c.sess, ch, o.DeadLetter)
	}
	if err != nil {
		return err
	}
	if text := c.src.declared(o.DeadLetter); text != "" {
		c.tell.event(transport.Event{Kind: transport.EventDeclared, Text: text})
	}
	source := c.src.name() // once: of many queues it is a long list
	for _, q := range declared {
		c.queues = append(c.queues, q.Name)
		c.subs = append(c.subs, &longshore.Subscription{Transport: "rabbitmq", Source: source, Tag: c.cfg.Tag})
	}
	c.ordered = o.Ordered && !c.cfg.AutoAck
	c.tellPolicies(o.DeadLetter) //nolint:contextcheck // has a time of its own
	c.keep.begin(o.DeadLetter)
	c.learnLimits(c.queues) //nolint:contextcheck // has a time of its own
	if c.b.set.Management != "" {
		c.wg.Go(c.followLimits)
	}
	c.findPlaces()
	c.stays = c.keepsByClosing()
	c.standby = c.cfg.SingleActive && declared[0].Consumers > 0 && !o.Paused // else it waits for no role yet
	if err := c.begin(ctx); err != nil {
		return err
	}
	if text := c.src.orderNotice(o); text != "" && !c.src.opened.Load() {
		c.tell.event(transport.Event{Kind: transport.EventNotice, Text: text})
	}
	if c.standby {
		c.tell.event(transport.Event{Kind: transport.EventStandby,
			Text: fmt.Sprintf("%s has an active consumer already; this one takes over when it ends", c.src.title())})
	}
	if t := c.b.set.TLS; t != nil && t.InsecureSkipVerify {
		c.tell.event(transport.Event{Kind: transport.EventNotice,
			Text: fmt.Sprintf("the certificate of rabbitmq at %s is NOT verified: TLS.InsecureSkipVerify is set", c.sess.Node)})
	}
	if text := c.b.set.clearNotice(c.sess.Node); text != "" && !c.src.opened.Load() {
		c.tell.event(transport.Event{Kind: transport.EventNotice, Text: text})
	}
	c.wg.Go(func() { c.watch(closes, cancels) }) //nolint:contextcheck // outlives the opening
	return nil
}

// keepsByClosing: without a delivery limit, which up to 3.13 is the default, a quorum
// queue puts what basic.nack gives back at its end, behind messages of the same key, and
// what a closing channel leaves at its front. A stream ends the connection over a
// basic.nack.
func (c *consumer) keepsByClosing() bool {
	return c.src.streams() || c.ordered && c.cfg.Declare.Type != Classic && c.sess.Version[0] < 4
}

// abort ends a consumer that was never handed out.
func (c *consumer) abort(ctx context.Context) {
	c.abandonOpen(longshore.ErrClosed, longshore.ErrLost)
	c.stopSender()
	select {
	case <-c.sender:
		c.wg.Wait()
	case <-ctx.Done(): // the sender ends with the connection at the latest
	}
	_ = c.release(ctx)
}

// Receive returns what is buffered, in the order of the queue.
func (c *consumer) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	n = max(n, 1)
	for {
		ds, err := c.takeBuffered(n)
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		select {
		case <-c.ready:
		case <-c.gone:
		case <-ctx.Done():
			c.want(0)
			return nil, ctx.Err()
		}
	}
}

func (c *consumer) takeBuffered(n int) ([]*longshore.Delivery, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return nil, c.end
	}
	clear(c.out)
	c.out = c.out[:0]
	if c.paused && !c.leaving && c.inPlace() {
		return nil, nil
	}
	c.out = c.tags.Take(c.out, n)
	c.demand = 0
	switch {
	case len(c.out) > 0:
		return c.out, nil
	case c.canceled:
		return nil, longshore.ErrCanceled
	}
	c.demand = n
	if c.cfg.Pull {
		signal(c.fetch)
	}
	return nil, nil
}

func (c *consumer) want(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.demand = n
}

// Buffered is how many deliveries Receive has not handed out.
func (c *consumer) Buffered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return 0
	}
	return c.tags.Buffered()
}

// Capabilities is what this queue can do on this version of the broker.
func (c *consumer) Capabilities() transport.Capabilities {
	caps := c.src.Capabilities()
	if asOne := caps.SingleActive && caps.KeepsPlace; c.sess.Version.CountsRejectsOnly() && !asOne {
		caps.CountsReturns = false // basic.nack does not count any more; what goes back with the channel does
	}
	caps.DeliveryLimit = c.deliveryLimit()
	caps.Lease = c.src.patience.lease(caps.Lease)
	caps.MaxMessageBytes = int64(c.sess.MaxBytes())
	if caps.MostHeld = c.limit; c.cfg.AutoAck || c.cfg.Prefetch == Unlimited {
		caps.MostHeld = 0
	}
	return caps
}

// signal wakes whoever reads c, now or later.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
