package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/share"
)

// shareConsumer is one member of a share group, from its opening to its end. The member
// acquires, renews and acknowledges; this makes deliveries of its records and reports to the
// container. It acquires nothing before Receive asks for it, and no more than it asks for.
type shareConsumer struct {
	src     *ShareGroup        // that was opened
	cl      *kgo.Client        // connections for the member, and for what is asked about topics
	kill    context.CancelFunc // ends all requests of the client
	member  *share.Member      // acquires, renews and acknowledges
	topics  *topics            // whether they still exist
	base    context.Context    //nolint:containedctx // the parent of all deliveries, given to Open
	reports *reports           // what the container hears
	facts   shareFacts         // limits of the broker and the group
	parts   int                // partitions of the topics

	mu      sync.Mutex            // guards what follows
	changed chan struct{}         // closed and replaced at each change that Receive waits for
	ready   []*longshore.Delivery // held, and not handed out by Receive
	failed  int                   // settlements that were not carried out since the last Flush
	paused  bool                  // Receive hands out nothing
	ended   error                 // why nothing arrives any more: ErrCanceled, ErrClosed, or what Down was called with
}

// Open connects, checks that topics and group can be used, creates what Declare asks for, and
// joins. Nothing is acquired before Receive asks for it.
func (s *ShareGroup) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := s.ValidateOpen(o); err != nil {
		return nil, err
	}
	c := &shareConsumer{src: s, topics: newTopics(s.at), base: o.Base, reports: newReports(o.Observer), changed: make(chan struct{}), paused: o.Paused}
	if c.base == nil {
		c.base = context.Background()
	}
	// The client comes first, since topics and settings are read through it. What fails from here on
	// has to end it, or its connections would stay.
	unpack, err := c.connect() //nolint:contextcheck // the client outlives the opening
	if err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, o); err != nil {
		c.kill()
		c.cl.Close()
		return nil, s.at.b.opened(s.at.opening(), s.at.name(), err)
	}
	c.member = share.Join(share.Config{Client: c.cl, Group: s.group, Topics: s.at.topics, Unpack: unpack, //nolint:contextcheck // ctx is the opening's
		Absent: o.Paused, Linger: or(s.cfg.SettleLinger, defaultShareLinger), Events: (*shareEvents)(c),
		Called: func(kind longshore.OperationKind, began time.Time, err error) {
			o.Operations.End(kind, began, codeOr(err))
		}})
	return c, nil
}

// connect makes the client. It does no I/O.
func (c *shareConsumer) connect() (kgo.Decompressor, error) {
	opts := append(c.src.at.b.options(), kgo.ConnIdleTimeout(shareIdle)) // a session ends with its connection
	if rack := c.src.at.b.cfg.Rack; rack != "" {
		opts = append(opts, kgo.Rack(rack))
	}
	life, kill := context.WithCancel(context.Background())
	cl, err := kgo.NewClient(append(opts, kgo.WithContext(life))...)
	if err != nil {
		kill()
		return nil, badOptions(err)
	}
	c.cl, c.kill = cl, kill
	// The member decompresses what it fetches itself: it sends share fetches past the client, which
	// knows nothing of them.
	unpack, ok := cl.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		unpack = kgo.DefaultDecompressor()
	}
	return unpack, nil
}

// shareIdle is how long the client keeps a connection without requests. While records are
// held, renewals come sooner; brokers close a connection after 10 minutes by default.
const shareIdle = 9 * time.Minute

// prepare looks at the cluster, and creates and sets what may be.
func (c *shareConsumer) prepare(ctx context.Context, o transport.OpenOptions) error {
	s := c.src
	found, err := s.at.prepare(ctx, c.cl, o.DeadLetter)
	if err != nil {
		return err
	}
	c.topics.adopt(found)
	for _, f := range found.topics {
		c.parts += f.partitions
	}
	// The group's settings belong to all of its members. They are changed only where Declare says that
	// this program may create things.
	settings := settingsCheck
	if s.cfg.Declare.Partitions > 0 {
		settings = settingsSet
	}
	c.facts, err = s.examine(ctx, c.cl, kadm.NewClient(c.cl), settings)
	if err != nil {
		return err
	}
	for _, text := range []string{s.at.declared(o.DeadLetter), c.facts.text(s.group)} {
		if text != "" {
			c.reports.Event(transport.Event{Kind: transport.EventDeclared, Text: text})
		}
	}
	// A user without permission to describe the group can still consume from it, so this is a notice
	// and not an error.
	if c.facts.unread != nil {
		c.reports.notice(fmt.Sprintf("the settings of share group %q may not be read: it may begin at the latest record, show uncommitted records or not renew locks", s.group), c.facts.unread)
	}
	for _, text := range s.at.b.securityNotices() {
		c.reports.notice(text, nil)
	}
	return nil
}

// Capabilities is what this group can do.
func (c *shareConsumer) Capabilities() transport.Capabilities {
	caps := c.src.Capabilities()
	caps.DeliveryLimit, caps.MostHeld = c.facts.limit, c.facts.locks*max(c.parts, 1)
	return caps
}

// Receive waits for records that the member acquires.
func (c *shareConsumer) Receive(ctx context.Context, limit int) ([]*longshore.Delivery, error) {
	limit = max(limit, 1)
	// Acquire only while a caller waits: each acquisition counts as a delivery at the
	// broker and locks the record for the other members.
	defer c.member.Want(0)
	for {
		c.mu.Lock()
		ds, err := c.take(ctx, limit)
		changed, paused := c.changed, c.paused
		c.mu.Unlock()
		if len(ds) > 0 || err != nil {
			return ds, err
		}
		if !paused {
			// A member that has left for a pause must not acquire; Resume wakes this loop.
			c.member.Want(limit)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// take hands out what is ready, or says why there is nothing. The caller holds mu.
func (c *shareConsumer) take(ctx context.Context, limit int) ([]*longshore.Delivery, error) {
	switch {
	// Close comes before what is ready: those records were given back to the broker.
	case c.closed():
		return nil, c.ended
	case len(c.ready) > 0 && !c.paused:
		n := min(limit, len(c.ready))
		ds := slices.Clone(c.ready[:n])
		c.ready = slices.Delete(c.ready, 0, n)
		return ds, nil
	// After Cancel what is ready is still handed out, hence behind the case above.
	case c.ended != nil:
		return nil, c.ended
	}
	return nil, ctx.Err()
}

// announce wakes Receive. The caller holds mu.
func (c *shareConsumer) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Cancel stops acquiring, and waits for what is on its way.
func (c *shareConsumer) Cancel(ctx context.Context) error {
	if c.isClosed() {
		return longshore.ErrClosed
	}
	err := c.member.Cancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	// A consumer that is cancelled while it is paused is drained like any other.
	c.paused = false // what is ready is handed out
	if c.ended == nil {
		c.ended = longshore.ErrCanceled
	}
	c.announce()
	return err
}

// isClosed is closed for callers without the lock.
func (c *shareConsumer) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed()
}

// closed reports whether Close was called. The caller holds mu.
func (c *shareConsumer) closed() bool { return errors.Is(c.ended, longshore.ErrClosed) }

// Release gives back what Receive has not handed out, and waits until the broker has it.
func (c *shareConsumer) Release(ctx context.Context) error {
	if c.isClosed() {
		return longshore.ErrClosed
	}
	c.giveBack()
	return c.member.Flush(ctx)
}

// giveBack releases what is ready. It counts as a delivery at the broker, not as an attempt.
func (c *shareConsumer) giveBack() {
	c.mu.Lock()
	ds := c.ready
	c.ready = nil
	c.mu.Unlock()
	for _, d := range ds {
		_ = c.member.Settle(d.Token(), share.Release, func(r *share.Record) { // an error: it is lost already
			c.src.attempts.next(r, d.Attempt)
			c.lastDelivery(r, "was given back unhandled")
		})
	}
}

// Pause stops acquiring and handing out, and gives back what is ready. The member leaves the
// group, because Kafka gives a partition to some of the members only.
func (c *shareConsumer) Pause(context.Context) error {
	c.mu.Lock()
	c.paused = true
	c.mu.Unlock()
	c.member.Want(0)
	c.member.Leave()
	c.giveBack()
	return nil
}

// Resume ends a pause.
func (c *shareConsumer) Resume(context.Context) error {
	c.member.Enter()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = false
	c.announce()
	return nil
}

// Resize does nothing: what is held follows what Receive asks for.
func (c *shareConsumer) Resize(context.Context, int) error { return nil }

// Buffered is how many records are held that Receive has not handed out.
func (c *shareConsumer) Buffered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ready)
}

// Backlog is the lag of the group without what is held here.
func (c *shareConsumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	now := time.Now()
	lags, err := c.src.lags(ctx, c.cl, kadm.NewClient(c.cl))
	if err != nil {
		return 0, time.Time{}, c.src.at.b.failure("read the backlog of "+c.src.at.title(), c.src.at.name(), err)
	}
	// The lag of the group includes records that members hold, which are no backlog any more.
	sum := -int64(c.member.Held() - c.Buffered())
	for _, n := range lags {
		sum += n
	}
	return max(0, sum), now, nil
}

// Flush waits until the broker has answered every settlement.
func (c *shareConsumer) Flush(ctx context.Context) error {
	if c.isClosed() {
		return longshore.ErrClosed
	}
	err := c.member.Flush(ctx)
	if err == nil {
		err = c.reports.Wait(ctx)
	}
	c.mu.Lock()
	failed := c.failed
	c.failed = 0
	c.mu.Unlock()
	if failed == 0 && err == nil {
		return nil
	}
	if failed > 0 {
		err = errors.Join(fmt.Errorf("%d settlements were not carried out", failed), err)
	}
	return &longshore.Error{Code: longshore.CodeSettle, Op: "flush settlements of " + c.src.at.title(), Source: c.src.at.name(), Err: err,
		Hint: "what was not settled is delivered again"}
}

// Close leaves the group. What is held goes back to the broker at once.
func (c *shareConsumer) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closed() {
		c.mu.Unlock()
		return nil
	}
	c.ended, c.ready = longshore.ErrClosed, nil
	c.announce()
	c.mu.Unlock()
	// The member goes first: its last acknowledgements need the client's connections.
	c.member.Close(ctx)
	c.kill()
	c.cl.Close()
	_ = c.reports.Wait(ctx)
	return nil
}
