package amqp

import (
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// deliveries are what one consumer holds, from arrival to the confirmation of the
// settlement, and how far the consumer is on its way out. Handlers, the receiver, the
// settle writer and the public methods meet here and nowhere else. It calls no other part while
// it holds its lock, but for the notifier, which only queues.
type deliveries struct {
	cfg     *QueueConfig     // how one consumes; never changes
	rules   returnRules      // what of the consumer decides how a message goes back
	limits  *returnLimits    // how often the broker lets a message come back
	notices *notify.Notifier // activity of a single active consumer

	ready chan struct{} // woken when there may be something to receive
	fetch chan struct{} // woken when something is wanted; for Pull
	wake  chan struct{} // woken when the settle writer has something to write
	gone  chan struct{} // closed when the channel is gone
	ends  chan error    // the reason when the deliveries themselves show that the channel has to end

	mu      sync.Mutex            // guards everything below
	ring    tags.Ring             // delivery tags, in the order in which the broker gave them
	state   endState              // decides what may be taken and settled
	streams *streamReader         // how far the streams were read; nil where the queues are none
	out     []*longshore.Delivery // what the last Receive returned; reused
	waiting int                   // how many a Receive that waits would take; for Pull
	window  int                   // sum of the prefetch of all consumers on the channel; 0: unlimited
	failed  int                   // settlements that were lost since the last Flush
	paused  bool                  // hands out nothing, and keeps what it has
	standby bool                  // another consumer of a single active queue has the role
	urgent  bool                  // the settle writer must not wait for more
}

func newDeliveries(cfg *QueueConfig, rules returnRules, limits *returnLimits, notices *notify.Notifier, paused bool) *deliveries {
	return &deliveries{cfg: cfg, rules: rules, limits: limits, notices: notices, paused: paused, ring: tags.New(),
		ready: make(chan struct{}, 1), fetch: make(chan struct{}, 1), wake: make(chan struct{}, 1), gone: make(chan struct{}), ends: make(chan error, 1)}
}

// begin notes the known facts once the queues are declared.
func (h *deliveries) begin(streams *streamReader, standby bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams, h.standby = streams, standby
}

// signal wakes the reader of c, now or later.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// arrive takes a delivery in. The attempt and the origin are already decoded.
func (h *deliveries) arrive(tag uint64, d *longshore.Delivery, raw *amqp091.Delivery, queue int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return // it goes back with the channel
	}
	d.Origin.LastReturn = h.limits.last(queue, raw)
	h.ring.Arrive(tag, d)
	switch h.streams.arrive(raw, queue) {
	case streamDone: // handled before the source was opened again: ask for the next
		h.ring.Disown(tag)
		h.accept(tag, nil, longshore.Settlement{Verb: longshore.VerbAck}, tags.Ack)
		return
	case streamUndeclared:
		h.ring.Keep(tag)
		h.state.cancel(false) // nothing behind it is handed out either
		h.endFor(errUndeclaredStream)
		return
	case streamNew, streamNone:
	}
	if h.state.intake == intakeIgnoring {
		h.ring.Hold(tag)
		return
	}
	if h.standby {
		h.activate()
	}
	signal(h.ready)
}

// activate notes that this is the active consumer. The caller holds mu.
func (h *deliveries) activate() {
	h.standby = false
	h.notices.Event(transport.Event{Kind: transport.EventActive, Text: h.rules.title + ": now the active consumer"})
}

// alone notes that no other consumer is left on the queue.
func (h *deliveries) alone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.standby {
		h.activate()
	}
}

// take returns up to n deliveries, in the order of the queue. None and no error mean that
// the caller waits for ready or gone.
func (h *deliveries) take(n int) ([]*longshore.Delivery, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return nil, h.state.err
	}
	clear(h.out)
	h.out = h.out[:0]
	if h.paused && !h.state.leaving() && h.cfg.inPlace() {
		return nil, nil
	}
	h.out = h.ring.Take(h.out, n)
	h.waiting = 0
	switch {
	case len(h.out) > 0:
		return h.out, nil
	case h.state.exhausted():
		return nil, longshore.ErrCanceled
	}
	h.waiting = n
	if h.cfg.Pull {
		signal(h.fetch)
	}
	return nil, nil
}

// stopWaiting notes that no Receive waits any more.
func (h *deliveries) stopWaiting() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting = 0
}

// wants reports whether one more message is to be fetched now.
func (h *deliveries) wants() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting > h.ring.Buffered() && h.ring.Outstanding() < h.window && !h.paused && !h.state.leaving() && !h.state.ended()
}

// buffered is the number of deliveries that Receive has not handed out.
func (h *deliveries) buffered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state.ended() {
		return 0
	}
	return h.ring.Buffered()
}

// arrivals is what can be seen of the deliveries at one moment.
type arrivals struct {
	top         uint64 // grows with every delivery
	outstanding int    // from the tag that was asked for, not settled at the broker
	over        bool   // the channel is gone
	leaving     bool   // Cancel or Close was called
	standby     bool   // another consumer is the active one
	paused      bool   // arrivals wait
}

// arrivals shows the deliveries, counted from a tag on.
func (h *deliveries) arrivals(from uint64) arrivals {
	h.mu.Lock()
	defer h.mu.Unlock()
	return arrivals{top: h.ring.Top(), outstanding: h.ring.OutstandingFrom(from), over: h.state.ended(), leaving: h.state.leaving(), standby: h.standby, paused: h.paused}
}

// over reports whether the channel is gone.
func (h *deliveries) over() bool { return h.arrivals(0).over }

// setPaused pauses or resumes; a Receive that waits looks again.
func (h *deliveries) setPaused(paused bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.paused = paused
	if !paused {
		signal(h.ready)
	}
}

// mayConsume reports whether consumers are to be on the channel. A pause leaves those that
// would lose their role; one that was opened paused has no role yet.
func (h *deliveries) mayConsume(consuming bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.state.leaving() && (!h.paused || h.cfg.inPlace() && consuming)
}

// setWindow notes the sum of the prefetch of all consumers.
func (h *deliveries) setWindow(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window = n
}

// streamOffset is where a consumer of a stream begins, nil where the broker decides.
func (h *deliveries) streamOffset(queue int, configured any) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams.offset(queue, configured)
}

// streamDeleted notes that a stream was deleted while it was read.
func (h *deliveries) streamDeleted(queue string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams.deleted(queue)
}

// oldest returns the oldest delivery that was handed out and the oldest that was not, nil
// where there is none.
func (h *deliveries) oldest() (handed, buffered *longshore.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ring.Oldest(), h.ring.OldestBuffered()
}

// isStream reports whether the queues are streams, as far as is known.
func (h *deliveries) isStream() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streams.is()
}
