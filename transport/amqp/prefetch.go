package amqp

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
)

// shrinkAfter is how long a window must be far too large before it shrinks.
const shrinkAfter = 10 * time.Second

// A window is made of steps: basic.qos does not change a consumer that runs, so growing
// means one more consumer on the same channel, and shrinking means cancelling the newest,
// whose unsettled deliveries stay valid.

// step is one consumer on each of the source's queues.
type step struct {
	size  int     // prefetch of all of them together
	parts []*part // those that exist after it
}

// part is one consumer on the channel.
type part struct {
	tag   string        // under which it is cancelled
	queue int           // its index
	up    bool          // the broker has confirmed it; guarded by prefetch.mu
	ours  bool          // we cancelled it; likewise
	done  chan struct{} // closed when everything it received was taken in
}

// live reports whether the broker counts the whole step: it has confirmed it, and was not
// asked to cancel it.
func (s *step) live() bool {
	for _, p := range s.parts {
		if !p.up || p.ours {
			return false
		}
	}
	return true
}

// intake is what a window needs to know of the deliveries.
type intake interface {
	mayConsume(consuming bool) bool
	arrivals(from uint64) arrivals
	setWindow(n int)
	streamOffset(queue int, configured any) any
}

// windowPlan is how far a window may go. It never changes.
type windowPlan struct {
	limit  int  // the largest window
	fixed  int  // the window where it cannot follow the workers; 0: unlimited
	first  int  // the least size of the first step
	shared bool // the window is the one that all ordered consumers have
	keeps  bool // deliveries have an order that a cancel must not break
	live   bool // it follows the workers
}

// plan says how far the window of a consumer may go.
func (s *Queue) plan(cfg *QueueConfig, o transport.OpenOptions) windowPlan {
	w := windowPlan{first: baseWindow, live: cfg.live(), keeps: o.Ordered && !cfg.AutoAck}
	switch p := cfg.Prefetch; {
	case p > 0:
		w.limit, w.fixed = p, p
	case p == Unlimited || cfg.AutoAck:
		w.limit = math.MaxUint16
	default:
		w.limit = max(defaultWindow, 2*max(o.MaxWindow, o.Window))
		w.fixed = max(o.MaxWindow, o.Window)
		if w.fixed == 0 {
			w.fixed = defaultWindow
		}
	}
	if o.Ordered && cfg.Declare.Type == Classic && cfg.Prefetch == 0 {
		w.limit = math.MaxUint16 // what waits behind a blocked key takes no place from the other keys
	}
	if w.shared = s.fixesWindow(o); w.shared {
		queues := len(s.queues)
		w.limit = queues * orderedWindow(max(o.MaxWindow, o.Window), queues)
		w.fixed = w.limit
	}
	if o.Ordered && cfg.Declare.Type != Classic {
		// A quorum queue takes back what a cut connection leaves unsettled consumer by
		// consumer: with several, later messages of a key come before earlier ones. So one
		// consumer has the whole window, room for parked retries included.
		if cfg.Prefetch == 0 && s.slow.Load() {
			w.limit = w.fixed
		}
		w.first = w.limit
	}
	return w
}

// prefetch is the window of one consumer: how many messages the broker sends ahead of
// settling. Only the settle writer's goroutine changes it; others read it under mu.
type prefetch struct {
	windowPlan
	cfg     *QueueConfig                           // what is fixed
	ch      *consumeChannel                        // where its consumers are
	held    intake                                 // what is in hand counts
	receive func(raw *amqp091.Delivery, queue int) // takes what the broker sends
	gone    <-chan struct{}                        // the channel is gone
	pumps   *sync.WaitGroup                        // the consumer waits for the pumps
	queues  []string                               // as the broker calls them; set when they are declared

	// Only the settle writer's goroutine uses these.
	shrinkSince time.Time // since when the window is far too large; zero: it is not
	again       time.Time // when a cancel that was put off is tried again; zero: none was
	others      int       // consumers of the queue that are not ours; -1: not known
	tagStem     string    // of the consumer tags
	made        int       // consumers made on the channel, cancelled ones included
	stale       uint64    // tags below it came from consumers that were all cancelled

	mu     sync.Mutex // guards what follows
	wanted int        // as Resize said
	steps  []*step    // oldest first
}

func newPrefetch(plan windowPlan, cfg *QueueConfig, o transport.OpenOptions) *prefetch {
	w := &prefetch{windowPlan: plan, cfg: cfg, wanted: o.Window, others: -1, tagStem: cfg.Tag}
	if w.wanted == 0 { // there is no container
		w.wanted = min(w.limit, defaultWindow)
	}
	if w.tagStem == "" {
		w.tagStem = "longshore-" + rand.Text()[:10]
	}
	return w
}

// begin starts consuming. Pull fetches within the largest window.
func (w *prefetch) begin(ctx context.Context, queues []string) error {
	w.queues = queues
	if w.cfg.Pull {
		w.held.setWindow(w.limit)
		return nil
	}
	return w.adjust(ctx)
}

// addStep adds one consumer for each queue; size 0 is unlimited.
func (w *prefetch) addStep(size int) error {
	share := 0
	if size > 0 {
		share = min(max((size+len(w.queues)-1)/len(w.queues), 1), math.MaxUint16)
	}
	if err := w.ch.setPrefetch(share); err != nil {
		return err
	}
	st := &step{size: share * len(w.queues)}
	for i := range w.queues {
		p := &part{tag: w.tagStem, queue: i, done: make(chan struct{})}
		// A tag is used once on a channel. To a quorum queue a cancelled consumer with
		// unsettled deliveries and a new one of that tag are the same: 3.10 then misses
		// deliveries, sends them again wrongly, and ends the connection over it.
		if w.made++; w.made > 1 {
			p.tag = fmt.Sprintf("%s.%d", w.tagStem, w.made)
		}
		st.parts = append(st.parts, p)
	}
	w.setSteps(append(w.steps[:len(w.steps):len(w.steps)], st)) // before it can be cancelled
	for _, p := range st.parts {
		in, err := w.ch.Consume(w.queues[p.queue], p.tag, w.cfg.AutoAck, w.cfg.Exclusive, false, false, w.arguments(p.queue))
		if err != nil { // the channel has ended
			w.setSteps(w.steps[:len(w.steps)-1])
			return err
		}
		w.mark(func() { p.up = true })
		w.pumps.Go(func() { w.pump(p, in) })
	}
	return nil
}

// arguments of a subscription. A stream goes on behind what is settled, whatever was configured
// for the first time.
func (w *prefetch) arguments(queue int) amqp091.Table {
	args := amqp091.Table{}
	maps.Copy(args, w.cfg.Arguments)
	if w.cfg.Priority != 0 {
		args["x-priority"] = int32(w.cfg.Priority)
	}
	delete(args, codec.HeaderOffset)
	if at := w.held.streamOffset(queue, w.cfg.Arguments[codec.HeaderOffset]); at != nil {
		args[codec.HeaderOffset] = at
	}
	return args
}

// mark changes what others read of the steps.
func (w *prefetch) mark(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// setSteps changes the consumers that share the window, and what may be held with them.
func (w *prefetch) setSteps(steps []*step) {
	w.mark(func() { w.steps = steps })
	w.held.setWindow(w.size())
}

// size is the sum of the prefetch of all consumers.
func (w *prefetch) size() (sum int) {
	for _, st := range w.steps {
		sum += st.size
	}
	return sum
}

// Prefetch is what the broker was asked to send ahead: the sum of its consumers' prefetch
// counts in the management interface.
func (c *consumer) Prefetch() (n int) {
	c.window.mark(func() { n = c.window.size() })
	return n
}

// ConsumerTag is the consumer tag, or what its tags begin with where the prefetch has grown
// in steps. With Pull there is no consumer, and no tag.
func (c *consumer) ConsumerTag() string {
	if c.window.cfg.Pull {
		return ""
	}
	return c.window.tagStem
}

// pump moves deliveries of one consumer from the client to the ring.
func (w *prefetch) pump(p *part, in <-chan amqp091.Delivery) {
	defer close(p.done)
	for raw := range in {
		w.receive(&raw, p.queue)
	}
}

// cancelNewest cancels the consumers of the newest step and waits until everything that
// the broker had sent them was taken in.
func (w *prefetch) cancelNewest() error {
	st := w.steps[len(w.steps)-1]
	for _, p := range st.parts {
		w.mark(func() { p.ours = true })
		if err := w.ch.Cancel(p.tag, false); err != nil {
			return err
		}
		<-p.done // the client has it all; the pump only moves it
	}
	w.setSteps(w.steps[:len(w.steps)-1])
	return nil
}

// dropAll cancels all consumers: the broker sends no more. It leaves them (gone is false)
// where the cancel would have to wait for a queue that does not answer, or would meet
// deliveries that have an order to keep.
func (w *prefetch) dropAll(ctx context.Context) (gone bool, err error) {
	if len(w.steps) > 0 {
		if quiet, answers := w.quiet(ctx); !answers || !quiet && w.keeps {
			return false, nil
		}
	}
	for len(w.steps) > 0 && !w.held.arrivals(0).over {
		if err := w.cancelNewest(); err != nil {
			return false, err
		}
	}
	w.stale = w.held.arrivals(0).top
	return true, nil
}

// goal is the wanted window within its bounds, 0 if nothing may come.
func (w *prefetch) goal() int {
	w.mu.Lock()
	wanted := w.wanted
	w.mu.Unlock()
	if wanted <= 0 || !w.held.mayConsume(len(w.steps) > 0) {
		return 0
	}
	return min(max(wanted, baseWindow), w.limit)
}

// adjust makes the window follow. It grows at once, at least to the double so that it
// takes few consumers, and shrinks when it was four times too large for a while.
func (w *prefetch) adjust(ctx context.Context) error {
	goal := w.goal()
	w.again = time.Time{}
	switch {
	case goal == 0:
		w.shrinkSince = time.Time{}
		gone, err := w.dropAll(ctx)
		if err == nil && !gone {
			w.again = time.Now().Add(putOff)
		}
		return err
	case !w.live && len(w.steps) == 0:
		return w.addStep(w.fixed)
	case !w.live:
		return nil
	}
	for have := w.size(); have < goal; have = w.size() {
		grow := min(w.first, w.limit)
		if have > 0 {
			grow = min(max(goal-have, have), w.limit-have)
		}
		if err := w.addStep(grow); err != nil {
			return err
		}
	}
	return w.shrink(ctx, goal)
}

// shrink cancels the newest consumers of a window that was too large for a while.
func (w *prefetch) shrink(ctx context.Context, goal int) error {
	if w.size() < 4*goal || len(w.steps) < 2 {
		w.shrinkSince = time.Time{}
		return nil
	}
	if w.shrinkSince.IsZero() {
		w.shrinkSince = time.Now()
	}
	if time.Since(w.shrinkSince) < shrinkAfter {
		return nil
	}
	w.shrinkSince = time.Time{}
	for len(w.steps) > 1 && w.size()-w.steps[len(w.steps)-1].size >= goal {
		if quiet, answers := w.quiet(ctx); !quiet || !answers {
			w.again = time.Now().Add(putOff)
			w.shrinkSince = time.Now().Add(-shrinkAfter)
			return nil
		}
		if err := w.cancelNewest(); err != nil {
			return err
		}
	}
	return nil
}

// due is when adjust has something to do by itself; zero: nothing.
func (w *prefetch) due() time.Time {
	switch {
	case !w.again.IsZero():
		return w.again
	case !w.shrinkSince.IsZero():
		return w.shrinkSince.Add(shrinkAfter)
	}
	return time.Time{}
}

// resize notes the wanted window; adjust makes it so.
func (w *prefetch) resize(n int) { w.mark(func() { w.wanted = max(n, 0) }) }

// open reports whether anything is wanted.
func (w *prefetch) open() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted > 0
}

// counted is how many consumers each queue should count for us.
func (w *prefetch) counted() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.steps {
		if st.live() {
			n++
		}
	}
	return n
}

// queueOf returns the queue of a consumer tag; ours is false if we cancelled it.
func (w *prefetch) queueOf(tag string) (queue string, ours bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.steps {
		for _, p := range st.parts {
			if p.tag == tag {
				return w.queues[p.queue], !p.ours
			}
		}
	}
	return w.queues[0], false
}
