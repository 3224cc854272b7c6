package amqp

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

// A stream keeps what it gave out, remembers nothing of who read it, and gives nothing
// twice to one consumer: an ack only asks for more. So the place of a reader is kept
// here, in the source, over its reopenings, as a broadcast of Kafka keeps its own. A
// new process begins where x-stream-offset says.

// places are how far a source's streams were read, between two openings.
type places struct {
	mu   sync.Mutex
	left map[string]*place
}

// take hands a place on to the one consumer that has it from now on.
func (p *places) take(queue string) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.left[queue]
	delete(p.left, queue)
	if at == nil {
		return newPlace()
	}
	at.resumed = true
	return at
}

func (p *places) leave(queue string, at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = map[string]*place{}
	}
	p.left[queue] = at
}

// place is how far a stream was read. The consumer's mu guards it while it has one.
type place struct {
	since time.Time      // first opened
	known bool           // something has come
	anew  bool           // the stream was deleted: what is in the next one came while it was read
	top   int64          // above the highest offset that arrived
	open  map[int64]bool // arrived and not done
	// resumed: nothing has come since it was opened again. What is below the first that
	// comes then is in the stream no more.
	resumed bool
	done    map[int64]bool // above an open one
	prune   int
}

// maxAhead bounds what is remembered to be done behind one that is not.
const maxAhead = 1 << 16

func newPlace() *place { return &place{prune: 1024} }

// gone notes that a queue was deleted while nobody read it.
func (p *places) gone(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left[queue] != nil {
		p.left[queue] = &place{anew: true, prune: 1024}
	}
}

// queueGone is the same while it was read.
func (c *consumer) queueGone(queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queues, queue); i >= 0 && i < len(c.places) && c.src.streams() {
		c.places[i] = &place{anew: true, prune: 1024}
	}
}

// deleted tells whether an error says that a queue is no more, not only out of reach.
func deleted(err error) bool {
	e, ok := conn.AsAMQP(err)
	return ok && e.Code == amqp091.NotFound && strings.Contains(e.Reason, "no queue")
}

// arrive notes an offset; false if it was done before.
func (p *place) arrive(at int64) bool {
	if p.resumed {
		p.resumed = false
		maps.DeleteFunc(p.open, func(open int64, _ bool) bool { return open < at })
	}
	p.known, p.top = true, max(p.top, at+1)
	if p.done[at] {
		return false
	}
	if p.open == nil {
		p.open, p.done = map[int64]bool{}, map[int64]bool{}
	}
	p.open[at] = true
	return true
}

func (p *place) settle(at int64) {
	delete(p.open, at)
	if len(p.open) == 0 {
		clear(p.done)
		return
	}
	if len(p.done) < maxAhead {
		p.done[at] = true
	}
	if len(p.done) >= p.prune {
		low := p.next()
		maps.DeleteFunc(p.done, func(at int64, _ bool) bool { return at < low })
		p.prune = max(1024, 2*len(p.done))
	}
}

// next is the lowest offset that is not done.
func (p *place) next() int64 {
	low := int64(math.MaxInt64)
	for at := range p.open {
		low = min(low, at)
	}
	return min(low, p.top)
}

// offset is where a consumer begins that is to begin at configured.
func (p *place) offset(configured any) any {
	switch opened := p.since; {
	case p.known:
		return p.next()
	case p.anew:
		return "first"
	case opened.IsZero():
		p.since = time.Now()
	case configured == nil || configured == "next": // nothing has come yet, but may have been written
		return opened
	}
	return configured
}

// streams tells whether the queues are streams as far as is known: the configuration
// says so, or what came from them.
func (s *queueSource) streams() bool { return s.cfg.stream() || s.streamed.Load() }

// inPlace and live are the configuration's, but for a stream of which it says nothing.
func (c *consumer) inPlace() bool {
	return c.cfg.inPlace() || c.src.streamed.Load() && c.cfg.Prefetch != Unlimited
}

func (c *consumer) live() bool { return c.cfg.live() && !c.src.streamed.Load() }

// read notes what arrived from a stream. It is not to be handled if it was done before,
// or if it shows that the queue is a stream of which nobody has said so: with more than
// one consumer on the channel each message would come to each of them. mu is held.
func (c *consumer) read(raw *amqp091.Delivery, queue int) (again, unknown bool) {
	at, ok := codec.Offset(raw)
	if !ok || c.cfg.AutoAck || c.cfg.Pull {
		return false, false
	}
	if c.src.streams() {
		// A queue into which somebody has forwarded a stream's messages is not known for one.
		return !c.places[queue].arrive(at) && c.cfg.stream(), false
	}
	if c.cfg.Declare.Type != "" || c.cfg.SingleActive || c.cfg.Exclusive || c.cfg.Priority != 0 {
		return false, false // no stream: the header came along from one
	}
	c.src.streamed.Store(true)
	c.places[queue].arrive(at)
	return false, c.cfg.live()
}

// passes tells that what arrived is not handed out. mu is held.
func (c *consumer) passes(raw *amqp091.Delivery, tag uint64, queue int) bool {
	again, unknown := c.read(raw, queue)
	if !again && !unknown {
		return false
	}
	_, state := c.tags.Find(tag)
	switch {
	case state == tags.Absent:
		return false
	case unknown:
		c.tags.Keep(tag)
		c.ignoring = true // nor is what comes behind it
		c.endsAs("the queue is a stream, which the configuration does not say", `it is opened again as one by itself; set Arguments: {"x-stream-offset": "first"} (or "next", or an offset) to say so`)
	case again:
		c.tags.Disown(tag)
		c.accept(tag, nil, longshore.Settlement{Verb: longshore.VerbAck}, tags.Ack)
	}
	return true
}

// readTo is told of what is done. mu is held.
func (c *consumer) readTo(d *longshore.Delivery) {
	if d == nil || !c.src.streams() {
		return
	}
	if at, ok := codec.Offset(nativeOf(d)); ok {
		if i := slices.Index(c.queues, d.Origin.Topic); i >= 0 && i < len(c.places) {
			c.places[i].settle(at)
		}
	}
}

func (c *consumer) findPlaces() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		c.places = append(c.places, c.src.places.take(q))
	}
}

// keepPlaces leaves the places for the next opening. mu is held.
func (c *consumer) keepPlaces() {
	for i, p := range c.places {
		if p.known || p.anew || !p.since.IsZero() {
			c.src.places.leave(c.queues[i], p)
		}
	}
	c.places = nil
}

// endsAs ends the consumer from within: its channel closes, and the container opens the
// source again. mu may be held.
func (c *consumer) endsAs(err string, hint string) {
	select {
	case c.ends <- &longshore.Error{Code: longshore.CodeState, Op: "consume from " + c.src.title(), Source: c.src.name(), Err: errors.New(err), Hint: hint}:
	default: // it ends already
	}
}

// reread gives back a delivery of a stream: it comes again where the source is opened
// again, at the oldest that is not done. mu is held.
func (c *consumer) reread(tag uint64) {
	c.tags.Keep(tag)
	if !c.leaving {
		c.endsAs("a message of a stream was given back, which the stream itself does not send again", "it is opened again by itself, at that message")
	}
}
