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
)

// A stream keeps the messages that it sent, does not remember its readers, and sends
// nothing twice to one consumer: an ack only asks for more. The place of a reader is
// therefore kept here, in the source, over its reopenings. A new process begins where
// x-stream-offset says.

// places are how far a source's streams were read, between two openings.
type places struct {
	mu   sync.Mutex        // consumers of one source may overlap
	left map[string]*place // by queue; a consumer takes its own out
}

// take gives the place of a queue to the consumer that owns it from now on.
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

// leave keeps the place of a queue for the next consumer.
func (p *places) leave(queue string, at *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = map[string]*place{}
	}
	p.left[queue] = at
}

// place is how far a stream was read. The consumer that reads it guards it.
type place struct {
	since time.Time      // when it was first opened: what was written after that is to be read
	known bool           // a message has come, so top and open are the stream's
	fresh bool           // the stream was deleted: the next one of its name is read from its beginning
	top   int64          // above the highest offset that has arrived
	open  map[int64]bool // offsets that have arrived and are not done
	// resumed: nothing has come since it was opened again. What is open below the first
	// offset that comes then is no longer in the stream.
	resumed bool
	done    map[int64]bool // offsets above an open one that are done
	prune   int            // the size of done at which offsets below the place are dropped
}

const (
	// maxAhead bounds what is remembered to be done above an offset that is not.
	maxAhead = 1 << 16
	// firstPrune is how many offsets are remembered before those below the place are dropped.
	firstPrune = 1024
)

func newPlace() *place { return &place{prune: firstPrune} }

// recreatedPlace is the place in a stream that was deleted: the next one of its name is
// read from its beginning.
func recreatedPlace() *place { return &place{fresh: true, prune: firstPrune} }

// gone notes that a queue was deleted while it was not read.
func (p *places) gone(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left[queue] != nil {
		p.left[queue] = recreatedPlace()
	}
}

// deleted reports whether an error says that a queue is no more, not only out of reach.
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

// settle notes an offset as done. A stream goes on from one offset, so what is done above the first
// one that is not is only remembered here.
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
		p.prune = max(firstPrune, 2*len(p.done))
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
	case p.fresh:
		return "first"
	case opened.IsZero():
		p.since = time.Now()
	case configured == nil || configured == "next": // nothing has come yet, but may have been written
		return opened
	}
	return configured
}

// config is how one consumes, as far as is known: a queue that has turned out to be a
// stream is used as one from the next opening on.
func (s *Queue) config() *QueueConfig {
	if !s.streamed.Load() || s.cfg.stream() {
		return &s.cfg
	}
	cfg := s.cfg
	cfg.Arguments = maps.Clone(cfg.Arguments)
	if cfg.Arguments == nil {
		cfg.Arguments = amqp091.Table{}
	}
	cfg.Arguments[codec.HeaderOffset] = nil // the broker's default
	return &cfg
}

// streamMode holds the known facts about the queues of a reader.
type streamMode uint8

const (
	streamNever    streamMode = iota // they are not streams
	streamPossible                   // the configuration does not say; a delivery may show it
	streamLearned                    // a delivery has shown it, or was forwarded from a stream
	streamDeclared                   // the configuration says so
)

// streamArrival is what a delivery means for a reader.
type streamArrival uint8

const (
	streamNone       streamArrival = iota // it does not come from a stream
	streamNew                             // it is to be handled
	streamDone                            // it was handled before the source was opened again
	streamUndeclared                      // it shows that the queue is a stream, which several consumers would all read
)

// streamReader is how far one consumer has read its streams. The deliveries guard it. The
// zero mode is for queues.
type streamReader struct {
	mode    streamMode // whether offsets are remembered
	several bool       // the consumer would use more than one consumer on its channel
	source  *Queue     // keeps the places over reopenings
	queues  []string   // as the broker calls them
	places  []*place   // one for each queue; nil after the end
}

func newStreamReader(source *Queue, cfg *QueueConfig, queues []string) *streamReader {
	r := &streamReader{source: source, queues: queues, several: cfg.live()}
	switch {
	case cfg.AutoAck || cfg.Pull:
		return r
	case source.cfg.stream():
		r.mode = streamDeclared
	case cfg.stream():
		r.mode = streamLearned
	case cfg.Declare.Type == "" && !cfg.SingleActive && !cfg.Exclusive && cfg.Priority == 0:
		r.mode = streamPossible
	}
	for _, q := range queues {
		r.places = append(r.places, source.places.take(q))
	}
	return r
}

// is reports whether the queues are streams, as far as is known.
func (r *streamReader) is() bool { return r != nil && r.mode >= streamLearned }

// arrive notes what has come. Only where the configuration says that the queue is a stream
// an offset is believed to be the queue's own: a message that was forwarded from a stream
// carries one too.
func (r *streamReader) arrive(raw *amqp091.Delivery, queue int) streamArrival {
	at, ok := codec.Offset(raw)
	if !ok || r == nil || r.mode == streamNever || queue >= len(r.places) {
		return streamNone
	}
	isNew := r.places[queue].arrive(at)
	switch r.mode {
	case streamDeclared:
		if !isNew {
			return streamDone
		}
	case streamPossible:
		r.mode = streamLearned
		r.source.streamed.Store(true)
		if r.several {
			return streamUndeclared
		}
	case streamNever, streamLearned:
	}
	return streamNew
}

// settle notes that a delivery is done.
func (r *streamReader) settle(d *longshore.Delivery) {
	if d == nil || !r.is() {
		return
	}
	if at, ok := codec.Offset(nativeOf(d)); ok {
		if i := slices.Index(r.queues, d.Origin.Topic); i >= 0 && i < len(r.places) {
			r.places[i].settle(at)
		}
	}
}

// offset is where a consumer of a queue begins; nil: where the broker decides.
func (r *streamReader) offset(queue int, configured any) any {
	if !r.is() || queue >= len(r.places) {
		return configured
	}
	return r.places[queue].offset(configured)
}

// deleted notes that a stream is gone while it was read.
func (r *streamReader) deleted(queue string) {
	if i := slices.Index(r.queues, queue); i >= 0 && i < len(r.places) && r.is() {
		r.places[i] = recreatedPlace()
	}
}

// leave leaves the places to the next opening.
func (r *streamReader) leave() {
	if r == nil {
		return
	}
	for i, p := range r.places {
		if p.known || p.fresh || !p.since.IsZero() {
			r.source.places.leave(r.queues[i], p)
		}
	}
	r.places = nil
}

var (
	errUndeclaredStream = &longshore.Error{Code: longshore.CodeState, Err: errors.New("the queue is a stream, and the configuration does not say so"),
		Hint: `the source is opened again as a stream; set Declare.Type to Stream, or Arguments: {"x-stream-offset": "first"} (or "next", or an offset)`}
	errReread = &longshore.Error{Code: longshore.CodeState, Err: errors.New("a message of a stream was given back, and a stream does not send it again by itself"),
		Hint: "the source is opened again at that message"}
)
