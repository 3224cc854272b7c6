package kafka

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// consumer is one member of a group, or one reader of a broadcast, from its opening
// to its end.
//
// Its goroutines: the poller moves records from the client to their partitions,
// the committer commits, the watcher looks whether the cluster still answers. The
// client has its own for heartbeats, which hang on none of them.
type consumer struct {
	src        *groupSource
	cl         *kgo.Client
	kill       context.CancelFunc // ends all that the client does
	base       context.Context    //nolint:containedctx // parent of the deliveries' contexts
	tell       teller
	operations transport.Operations
	link       link
	window     atomic.Int64
	unpack     *unpacker
	facts      cluster

	stop   context.Context //nolint:containedctx // ends at Cancel: no more polling
	halt   context.CancelFunc
	over   context.Context //nolint:containedctx // ends with the consumer
	finish context.CancelFunc
	wg     sync.WaitGroup

	gate      gate
	ready     chan struct{} // something can be received
	needsData chan struct{} // the poller may go on
	urgent    chan struct{} // enough is done for a commit
	moved     chan struct{} // something was settled; for who drains
	commits   chan struct{} // holds one token: one commit at a time
	begun     chan struct{} // closed: it has subscribed

	undrained atomic.Int64 // bytes that wait in partitions which can hand out
	recent    atomic.Int64 // completions since the last commit

	mu       sync.Mutex
	parts    map[tp]*partition
	line     []*partition // those that have got something to hand out
	subs     map[string]*longshore.Subscription
	ids      map[string][16]byte // of the topics
	read     map[topicRead]map[int32]commitRead
	end      error
	leaving  bool // Cancel or Close was called
	canceled bool
	paused   bool
	closed   bool
	away     bool // ended because nobody answers
	failed   int  // settlements lost since the last Flush
	troubles map[string]time.Time
	healing  map[string]*healing
	refused  map[string]refusal
	surveyed time.Time // whether the topics are there
	looked   time.Time // for new partitions of a broadcast

	listened time.Time // when leaders were asked; the watcher's own

	// Receive's own.
	turn []*partition // those with something to hand out, in turn
	out  []*longshore.Delivery
}

func newConsumer(s *groupSource, o transport.OpenOptions) *consumer {
	c := &consumer{src: s, base: o.Base, paused: o.Paused,
		ready: make(chan struct{}, 1), needsData: make(chan struct{}, 1), urgent: make(chan struct{}, 1), moved: make(chan struct{}, 1), commits: make(chan struct{}, 1), begun: make(chan struct{}),
		parts: map[tp]*partition{}, subs: map[string]*longshore.Subscription{}, ids: map[string][16]byte{},
		troubles: map[string]time.Time{}, healing: map[string]*healing{}, refused: map[string]refusal{}}
	if c.base == nil {
		c.base = context.Background()
	}
	c.tell.obs, c.operations = o.Observer, o.Operations
	c.stop, c.halt = context.WithCancel(context.Background())
	c.over, c.finish = context.WithCancel(context.Background())
	c.resize(max(o.Window, o.MaxWindow))
	return c
}

// maxWindow is the most records of one partition in work: above it the text about
// what is done may not fit the broker's limit whole.
const maxWindow = 1 << 16

// resize keeps the window of a partition ahead of what the container may hold: all
// of that can come from one partition.
func (c *consumer) resize(wanted int) {
	w := c.src.cfg.Window
	if w == 0 {
		w = min(max(defaultWindow, 2*wanted), maxWindow)
	}
	c.window.Store(int64(w))
}

// Resize follows what the container wants to hold, where the configuration does not
// fix the window.
func (c *consumer) Resize(_ context.Context, window int) error {
	c.resize(window)
	for _, p := range c.assigned() {
		p.unblock()
	}
	return nil
}

// subscribe looks, declares and subscribes.
func (c *consumer) subscribe(ctx context.Context, o transport.OpenOptions) error {
	found, err := c.src.prepare(ctx, c.cl, o.DeadLetter)
	if err != nil {
		return err
	}
	if text := c.src.declared(o.DeadLetter); text != "" {
		c.tell.event(transport.Event{Kind: transport.EventDeclared, Text: text})
	}
	c.facts = found
	c.mu.Lock()
	for name, t := range found.topics {
		c.ids[name] = t.id
		c.src.starts.read(name, t.id)
		c.src.starts.seen(name, t.partitions)
	}
	c.mu.Unlock()
	if t := c.src.b.cfg.tls(); t != nil && t.InsecureSkipVerify {
		c.tell.event(transport.Event{Kind: transport.EventNotice, Text: "the certificates of kafka at " + c.src.b.address() + " are NOT verified: TLSConfig.InsecureSkipVerify is set"})
	}
	if text := c.src.b.clearNotice(); text != "" {
		c.tell.event(transport.Event{Kind: transport.EventNotice, Text: text})
	}
	if c.src.cast {
		return c.broadcast(ctx)
	}
	if err := c.listTopics(ctx); err != nil {
		return err
	}
	c.cl.AddConsumeTopics(c.src.topics...)
	return nil
}

// run starts the goroutines.
func (c *consumer) run() {
	close(c.begun)
	c.link.alive()
	c.wg.Go(c.pollAll)
	c.wg.Go(c.watch)
	if !c.src.cast {
		c.wg.Go(c.commitAll)
	}
}

// abandon ends a consumer that was never handed out.
func (c *consumer) abandon() {
	c.mu.Lock()
	c.leaving, c.closed = true, true
	c.mu.Unlock()
	c.halt()
	c.finish()
	late, cancel := context.WithCancel(context.Background())
	cancel()
	c.leaveGroup(late) // a pattern's client may have joined
}

// assigned lists the partitions.
func (c *consumer) assigned() []*partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	ps := make([]*partition, 0, len(c.parts))
	for _, p := range c.parts {
		ps = append(ps, p)
	}
	return ps
}

// Receive hands out records of all partitions that have some, in turn.
func (c *consumer) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	clear(c.out)
	c.out = c.out[:0]
	for {
		paused, err := c.next()
		if err != nil {
			return nil, err
		}
		if len(c.turn) > 0 && !paused {
			if c.takeTurns(max(n, 1)); len(c.out) > 0 {
				return c.out, nil
			}
			continue // all of it was done before, or taken away
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// next lets those that have got something to hand out join the others.
func (c *consumer) next() (paused bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end != nil:
		return false, c.end
	case c.canceled:
		return false, longshore.ErrCanceled
	}
	if len(c.line) > 0 {
		c.turn = append(c.turn, c.line...)
		clear(c.line)
		c.line = c.line[:0]
	}
	return c.paused, nil
}

// takeTurns shares n out. Who was not asked comes first the next time, who has more
// comes last. A share is no smaller than a few: to ask a partition costs as much.
func (c *consumer) takeTurns(n int) {
	line := c.turn
	share := max(minShare, (n+len(line)-1)/len(line))
	for range len(line) {
		left := n - len(c.out)
		if left == 0 {
			break
		}
		p := line[0]
		line[0] = nil
		line = line[1:]
		var more bool
		if c.out, more = p.take(min(share, left), c.out); more {
			line = append(line, p)
		}
	}
	c.turn = line
}

const minShare = 16

// requeue puts partitions at the end of the line. They count as queued.
func (c *consumer) requeue(ps []*partition) {
	c.mu.Lock()
	c.line = append(c.line, ps...)
	c.mu.Unlock()
	signal(c.ready)
}

// Pause stops fetching and handing out. The member stays in the group.
func (c *consumer) Pause(context.Context) error { c.setPaused(true); return nil }

// Resume ends a pause.
func (c *consumer) Resume(context.Context) error { c.setPaused(false); return nil }

func (c *consumer) setPaused(on bool) {
	c.mu.Lock()
	c.paused = on
	c.mu.Unlock()
	signal(c.ready)
	signal(c.needsData)
}

func (c *consumer) isPaused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.paused
}

// signal wakes whoever reads ch, now or later.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
