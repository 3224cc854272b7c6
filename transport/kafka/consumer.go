package kafka

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// consumer is one member of a group, or one reader of a broadcast, from its opening to its
// end. It wires its parts together and does what a container asks for; the parts do the
// work and know nothing of it.
//
// Its goroutines: the poller moves records from the client to their partitions, the
// committer commits, the watcher checks whether the cluster still answers. The client has
// its own for heartbeats, which depend on none of them.
type consumer struct {
	src  *Group             // what it was opened from
	cl   *kgo.Client        // a client each, because a group member is one
	kill context.CancelFunc // ends all requests of the client
	life *lifetime          // shared by all parts: whichever fails ends it
	wg   sync.WaitGroup     // the consumer's goroutines

	reports     *reports      // what the observer hears
	turns       *turns        // which partition hands out next, so that none starves
	flow        *flow         // how much is fetched and not handed out, over all partitions
	with        *surroundings // what the partitions share
	topics      *topics       // identities of the topics, which tell one from its successor
	assignments *assignments  // the partitions it has
	start       *startpoints  // where a partition without a commit begins
	membership  *membership   // what the group decides
	committer   *committer    // makes progress last
	poller      *poller       // moves records from the client
	watcher     *watcher      // notices leaders that are silent
	health      *topicHealth  // topics that vanish and come back
	broadcast   *broadcast    // nil for a group
}

// newConsumer makes the parts, without a client.
func newConsumer(s *Group, o transport.OpenOptions, t *turns) *consumer {
	c := &consumer{src: s, life: newLifetime(), reports: newReports(o.Observer), topics: newTopics(s),
		turns: t, flow: &flow{needed: make(chan struct{}, 1)}}
	c.with = &surroundings{src: s, base: o.Base, turns: c.turns, flow: c.flow, reports: c.reports,
		settled: &settlements{urgent: make(chan struct{}, 1), moved: make(chan struct{}, 1), enough: s.cfg.enough(), each: s.cfg.Commit == AfterEach}}
	if o.Base == nil {
		c.with.base = context.Background()
	}
	c.assignments = newAssignments(c.life, c.flow)
	tx := newTransactions(s, c.with.settled)
	if tx != nil {
		c.with.box = tx.outbox
		c.with.base = context.WithValue(c.with.base, txKey{}, &txScope{tx: tx, assignments: c.assignments})
	}
	c.health = &topicHealth{src: s, life: c.life, topics: c.topics, assignments: c.assignments, reports: c.reports, opened: time.Now()}
	c.start = &startpoints{src: s, with: c.with, topics: c.topics, life: c.life, reports: c.reports, recreated: c.health.recreated}
	if s.cast {
		c.broadcast = &broadcast{src: s, life: c.life, topics: c.topics, start: c.start, assignments: c.assignments}
	}
	c.committer = &committer{src: s, life: c.life, topics: c.topics, assignments: c.assignments, settled: c.with.settled,
		health: c.health, reports: c.reports, operations: o.Operations, tx: tx, turn: make(chan struct{}, 1)}
	c.membership = &membership{src: s, life: c.life, topics: c.topics, start: c.start, assignments: c.assignments,
		committer: c.committer, health: c.health, reports: c.reports}
	c.poller = &poller{src: s, life: c.life, turns: c.turns, flow: c.flow, assignments: c.assignments,
		health: c.health, reports: c.reports, operations: o.Operations}
	c.watcher = &watcher{open: &openTransactions{src: s, reports: c.reports}, src: s, life: c.life, link: &link{}, assignments: c.assignments,
		health: c.health, reports: c.reports, broadcast: c.broadcast}
	c.resize(max(o.Window, o.MaxWindow))
	return c
}

// connect makes the client, and gives it to the parts. It does no I/O.
func (c *consumer) connect() error {
	s := c.src
	unpack, err := cluster.NewUnpacker(s.b.cfg.Options, s.b.cfg.unpacked())
	if err != nil {
		return badOptions(err)
	}
	opts := append(s.consuming(), kgo.WithDecompressor(unpack), kgo.WithHooks(c.watcher.link))
	if !s.cast {
		own, err := cluster.Options(s.b.options())
		if err != nil {
			return badOptions(err)
		}
		opts = append(append(opts, c.membership.options(own)...), own.KeepSession(c.membership.inSession)...)
	}
	life, kill := context.WithCancel(context.Background())
	cl, err := kgo.NewClient(append(opts, kgo.WithContext(life))...)
	if err != nil {
		kill()
		return badOptions(err)
	}
	c.kill, c.poller.unpack = kill, unpack
	c.attach(cl)
	return nil
}

// attach hands the client to the parts. They are made before it, because the client calls
// membership as soon as it exists.
func (c *consumer) attach(cl *kgo.Client) {
	c.membership.cl.Store(cl)
	c.cl, c.flow.client, c.start.cl, c.health.cl, c.poller.cl, c.watcher.cl, c.watcher.open.cl = cl, cl, cl, cl, cl, cl, cl
	c.committer.member = cluster.Member{Client: cl, Group: c.src.group, InstanceID: c.src.cfg.InstanceID}
	if c.committer.tx != nil {
		c.committer.tx.connect(cl)
	}
	if c.broadcast != nil {
		c.broadcast.cl, c.health.subscribe = cl, c.broadcast
	} else {
		c.health.subscribe = groupTopics{cl}
	}
}

// groupTopics subscribes a group to a topic again.
type groupTopics struct{ cl *kgo.Client }

// subscribe makes the client look for the topic again: it had purged what it knew of it.
func (g groupTopics) subscribe(_ context.Context, topic string) { g.cl.AddConsumeTopics(topic) }

// resize keeps the window of a partition ahead of what the container may hold: all of that
// can come from one partition.
func (c *consumer) resize(wanted int) {
	w := c.src.cfg.Window
	if w == 0 {
		w = min(max(defaultWindow, 2*wanted), maxWindow)
	}
	c.with.window.Store(int64(w))
}

// Resize follows what the container wants to hold, where the configuration does not fix the
// window.
func (c *consumer) Resize(_ context.Context, window int) error {
	c.resize(window)
	for _, p := range c.assignments.all() {
		p.checkAgain()
	}
	return nil
}

// subscribe checks, declares and subscribes.
func (c *consumer) subscribe(ctx context.Context, o transport.OpenOptions) error {
	s := c.src
	found, err := s.prepare(ctx, c.cl, o.DeadLetter)
	if err != nil {
		return err
	}
	if text := s.declared(o.DeadLetter); text != "" {
		c.reports.Event(transport.Event{Kind: transport.EventDeclared, Text: text})
	}
	c.topics.adopt(found)
	s.starts.adopt(found)
	for _, text := range s.b.securityNotices() {
		c.reports.notice(text, nil)
	}
	if c.broadcast != nil {
		return c.broadcast.takeAll(ctx)
	}
	if err := c.committer.tx.open(ctx); err != nil {
		return err
	}
	if err := s.listTopics(ctx, c.cl); err != nil {
		return err
	}
	c.cl.AddConsumeTopics(s.topics...)
	return nil
}

// run starts the goroutines.
func (c *consumer) run() {
	close(c.life.begun)
	c.watcher.link.answered()
	c.wg.Go(c.awaitFailure)
	c.wg.Go(c.poller.run)
	c.wg.Go(c.watcher.run)
	if !c.src.cast {
		c.wg.Go(c.committer.run)
	}
}

// Receive hands out records of all partitions that have some, in turn.
func (c *consumer) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	if err := c.committer.awaitCommit(ctx); err != nil {
		return nil, err
	}
	return c.turns.receive(ctx, n, c.life)
}

// Pause stops fetching and handing out. The member stays in the group.
func (c *consumer) Pause(context.Context) error { c.turns.setPaused(true); return nil }

// Resume ends a pause.
func (c *consumer) Resume(context.Context) error {
	c.turns.setPaused(false)
	c.flow.wake()
	return nil
}

// Flush commits until everything that was acknowledged is committed.
func (c *consumer) Flush(ctx context.Context) error { return c.committer.flush(ctx) }

// BlockedPartitions names the partitions that are held back by a record that is not done,
// the longest first.
func (c *consumer) BlockedPartitions() []transport.BlockedPartition {
	now := time.Now()
	var blocked []transport.BlockedPartition
	for _, p := range c.assignments.all() {
		if h, is := p.blocked(now); is {
			blocked = append(blocked, h)
		}
	}
	blocked = append(blocked, c.watcher.open.blocked()...)
	slices.SortFunc(blocked, func(a, b transport.BlockedPartition) int { return a.Since.Compare(b.Since) })
	return blocked
}
