package container

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/keytext"
)

// EventKind tells events apart.
type EventKind string

// The kinds of events.
const (
	EventState            EventKind = "state"              // the state changed; Text is the new one
	EventSubscribed       EventKind = "subscribed"         // Generation, Workers, Window, Prefetch; Took since the start or the loss before it; Reason = where dead letters go
	EventDeclared         EventKind = "declared"           // queues, topics or exchanges were declared; see Text
	EventConsumer         EventKind = "consumer"           // a consumer was added or cancelled as the workers changed; see Text
	EventDown             EventKind = "down"               // the consumer was lost (with Count deliveries), or could not be opened; Delay until the next try, which is Attempt
	EventLost             EventKind = "lost"               // Count deliveries were taken back by the broker
	EventScaled           EventKind = "scaled"             // workers From, To, Reason
	EventFailed           EventKind = "failed"             // a delivery failed; Delivery, Err, Delay
	EventDiscarded        EventKind = "discarded"          // a failed delivery was acked
	EventDeadLettered     EventKind = "dead-lettered"      // Delivery, Err, Reason = where to
	EventDeadLetterFailed EventKind = "dead-letter-failed" // it stays; Delivery, Err, Delay, Reason = where to
	EventDelayCut         EventKind = "delay-cut"          // a delay was longer than can be held
	EventParkingFull      EventKind = "parking-full"       // no more retries can wait here
	EventParkingFree      EventKind = "parking-free"       // and they can again
	EventGivenBack        EventKind = "given-back"         // a message is released again and again, uncounted; Delivery, Err, Delay, Count of such messages; once a minute for each code
	EventLaneFull         EventKind = "lane-full"          // one key holds half of the window or more; Count
	EventLaneBlocked      EventKind = "lane-blocked"       // what waits behind blocked deliveries has reached 10, 50, 90 or 100 % of its space; Count, Reason = the key with the most
	EventLanesFree        EventKind = "lanes-free"         // and little waits behind them now
	EventStuck            EventKind = "stuck"              // a handler does not return; Delivery, Stack
	EventUnstuck          EventKind = "unstuck"            // it returned after all
	EventHeld             EventKind = "held"               // a middleware holds the intake; Reason
	EventIntakeResumed    EventKind = "released"           // and no longer does
	EventSettleFailed     EventKind = "settle-failed"      // an accepted settlement was not carried out
	EventDrained          EventKind = "drained"            // Report
	EventStandby          EventKind = "standby"            // subscribed, another consumer is the active one
	EventActive           EventKind = "active"             // now the active one
	EventBlocked          EventKind = "blocked"            // the broker blocks publishers
	EventUnblocked        EventKind = "unblocked"          // and no longer does
	EventSkipped          EventKind = "skipped"            // messages were skipped by the broker; see Text
	EventNotice           EventKind = "notice"             // anything else; see Text
	EventCleared          EventKind = "cleared"            // what notices of this Condition reported is over; see Text
)

// Event is something that happened in a container. Fields that its kind does not
// name are zero.
type Event struct {
	Time      time.Time // when it happened, by the container's clock
	Container string    // its name
	Kind      EventKind // says which of the other fields are set
	Text      string    // one line
	Err       error     // the cause; nil: there is none
	Reason    string    // depends on the kind: the policy's word, the dead-letter destination, who holds, the verb
	// Condition names a state that lasts. The event that ends it has the same one.
	Condition string
	From, To  int // the number of workers before and after
	Count     int // of deliveries, messages or positions
	// Generation, Workers and Window are those of a new subscription. Prefetch is what the
	// broker was asked to send ahead, where it has such a limit.
	Generation, Workers, Window, Prefetch int
	// ConsumerTag is the name that RabbitMQ lists a new subscription's consumers under.
	ConsumerTag string
	Took        time.Duration  // how long it took, as a subscription
	Delay       time.Duration  // until the next attempt
	Attempt     int            // to open the consumer
	Delivery    *DeliveryFacts // nil: the event is not about a single one
	Report      *Report        // of the stop; only with EventDrained
	Stack       string         // of the handler that panicked or is stuck
	// Dropped is how many events this subscriber missed before this one.
	Dropped int
}

// DeliveryFacts identifies a delivery in an event without keeping it alive.
type DeliveryFacts struct {
	MessageID  string        // the producer's; empty: it set none
	Key        string        // cut at 64 bytes
	Attempt    int           // from 1
	Of         int           // MaxAttempts
	Partition  int32         // on a log
	Position   uint64        // the offset, delivery tag or sequence number
	ReceivedAt time.Time     // when the container received it
	Age        time.Duration // of the handler call
}

func factsOf(d *longshore.Delivery) *DeliveryFacts {
	return &DeliveryFacts{MessageID: idOf(d), Key: keyOf(d), Attempt: d.Attempt,
		Partition: d.Origin.Partition, Position: d.Origin.Position, ReceivedAt: d.Origin.ReceivedAt}
}

// factsOfItem is factsOf while the handler runs. it is nil when the handler has settled the
// delivery itself; the facts that remain then never change.
func factsOfItem(it *item, d *longshore.Delivery) *DeliveryFacts {
	f := &DeliveryFacts{Attempt: d.Attempt, Partition: d.Origin.Partition, Position: d.Origin.Position, ReceivedAt: d.Origin.ReceivedAt}
	if it == nil {
		return f
	}
	f.MessageID, f.Key = it.identity(), cutText(laneKeyText(it.key, d.Origin.Topic, d.Origin.Partition), 64)
	return f
}

// identity is longshore.Identity of the message as it came.
func (it *item) identity() string {
	id := it.headers.String(longshore.HeaderID)
	if s := it.d.Origin.Subscription; id == "" && s != nil && s.Identify != nil {
		id = s.Identify(it.d)
	}
	return cutText(first(id, it.id), 256)
}

func idOf(d *longshore.Delivery) string {
	return cutText(longshore.Identity(d), 256)
}

// laneKeyText is a lane's key for people; where partitions are the lanes it is made of
// topic and partition.
func laneKeyText(key []byte, topic string, partition int32) string {
	if n := len(key) - 4; n >= 0 && n == len(topic) && string(key[:n]) == topic && binary.BigEndian.Uint32(key[n:]) == uint32(partition) { //nolint:gosec // the bits
		return fmt.Sprintf("%s/%d", topic, partition)
	}
	return keytext.Of(key)
}

func keyOf(d *longshore.Delivery) string { return cutText(keytext.Of(d.Key), 64) }

// The bounds of event queues.
const (
	eventQueue   = 4096
	onEventQueue = 256
)

// eventHub hands events on. Whoever emits never waits: not for a log, not for a
// subscriber.
type eventHub struct {
	name string      // of the container, in every event
	log  *limitedLog // writes the lines, held back where they repeat

	mu      sync.Mutex               // guards what follows
	queue   []Event                  // events that the pump has not delivered yet
	dropped int                      // events that found no room in queue
	over    map[string]*repeat       // what the log must count of those dropped
	subs    map[*subscriber]struct{} // who gets the events
	signal  chan struct{}            // wakes the pump; has room for one
}

type subscriber struct {
	ch      chan Event // its buffer is the most that it may be behind
	dropped int        // events that found no room, for the next one's Dropped
}

func newEventHub(name string, log *limitedLog) *eventHub {
	h := &eventHub{name: name, log: log, subs: map[*subscriber]struct{}{}, signal: make(chan struct{}, 1)}
	log.repeats.wake = h.wake
	return h
}

func (h *eventHub) wake() {
	select {
	case h.signal <- struct{}{}:
	default:
	}
}

// emit queues an event; it may be called with any lock held.
func (h *eventHub) emit(e Event) {
	e.Container = h.name
	h.mu.Lock()
	if room := eventQueue; len(h.queue) < room || len(h.queue) < 2*room && !phrases[e.Kind].limited { // what is rare has room of its own
		h.queue = append(h.queue, e)
	} else {
		h.drop(e)
	}
	h.mu.Unlock()
	h.wake()
}

// drop counts an event that has no room. The caller holds mu.
func (h *eventHub) drop(e Event) {
	h.dropped++
	if !phrases[e.Kind].limited {
		return
	}
	if h.over == nil {
		h.over = map[string]*repeat{}
	}
	key := repeatKey(e)
	if h.over[key] == nil {
		h.over[key] = &repeat{}
	}
	h.over[key].hold(e, 1)
}

// pump logs events and hands them to subscribers until stop is closed and the
// queue is empty.
func (h *eventHub) pump(stop <-chan struct{}) {
	for {
		select {
		case <-h.signal:
			h.flush()
		case <-stop:
			h.flush()
			h.log.summaries(true)
			return
		}
	}
}

func (h *eventHub) flush() {
	for {
		h.mu.Lock()
		batch, dropped, over := h.queue, h.dropped, h.over
		h.queue, h.dropped, h.over = nil, 0, nil
		h.mu.Unlock()
		if len(batch) == 0 {
			h.log.summaries(false)
			return
		}
		for _, s := range over {
			h.log.repeats.add(s.event, s.held)
		}
		if dropped > 0 {
			batch[len(batch)-1].Dropped += dropped
		}
		for _, e := range batch {
			h.log.event(e)
			h.fanOut(e)
		}
	}
}

func (h *eventHub) fanOut(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		own := e
		own.Dropped += s.dropped
		select {
		case s.ch <- own:
			s.dropped = 0
		default:
			s.dropped++
		}
	}
}

func (h *eventHub) subscribe(buffer int) (*subscriber, func()) {
	s := &subscriber{ch: make(chan Event, max(buffer, 1))}
	h.mu.Lock()
	h.subs[s] = struct{}{}
	h.mu.Unlock()
	return s, sync.OnceFunc(func() {
		h.mu.Lock()
		delete(h.subs, s)
		close(s.ch)
		h.mu.Unlock()
	})
}

// Events subscribes to what happens in the container. A subscriber that is more
// than buffer events behind misses some, and Event.Dropped of the next one says
// how many. stop ends the subscription and closes the channel; it may be called
// more than once.
func (c *ListenerContainer) Events(buffer int) (events <-chan Event, stop func()) {
	s, stop := c.hub.subscribe(buffer)
	return s.ch, stop
}

// reporter emits what happens in one run. It may be used with any lock held.
type reporter struct {
	hub   *eventHub       // nil in tests that look at single parts
	clock longshore.Clock // stamps the events
}

func (r reporter) emit(e Event) {
	e.Time = r.clock.Now()
	r.hub.emit(e)
}

// notice is for what has no kind of its own.
func (r reporter) notice(err error, text string) {
	r.emit(Event{Kind: EventNotice, Err: err, Text: text})
}
