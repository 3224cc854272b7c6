package amqp

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/codec"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Browse looks at messages by taking them (basic.get) and giving all back at
// once, so each is marked as redelivered. A quorum queue also counts that and in
// some versions puts them behind the others; where the queue is not known to be a classic one that
// needs QueueConfig.BrowseCounts, and where its type is not known at all there is
// one page only. Of several queues it looks at the first.
func (s *Queue) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	at, err := s.browsable(from)
	if err != nil {
		return nil, "", err
	}
	n = max(n, 1)
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return nil, "", s.opening(err)
	}
	found := make(chan page, 1)
	err = sess.Scratch(ctx, func(ch conn.Channel) error { //nolint:contextcheck // what is shown belongs to no call
		var ds []*longshore.Delivery
		p, err := browserOf(s).look(ch, at, n, func(d *longshore.Delivery) bool { ds = append(ds, d); return true })
		found <- page{ds, p}
		return err
	})
	if rerr := s.b.consume.Release(ctx, sess); err == nil {
		err = rerr
	}
	if err != nil {
		return nil, "", s.b.set.brokerError("browse "+s.title(), s.name(), err)
	}
	p := <-found
	next := ""
	if s.cfg.Declare.Type != "" && p.at.seen < p.at.total {
		next = fmt.Sprintf("%d/%d/%d", p.at.seen, p.at.total, p.at.mark)
	}
	return p.ds, next, nil
}

// position is how far a look has come, of how many messages there were at its
// beginning, and what the first of them was.
type position struct {
	seen, total int    // messages shown, and there at the beginning
	mark        uint32 // recognizes the first message: where it is another one, the queue has been reordered
}

// page is what one look has shown.
type page struct {
	ds []*longshore.Delivery // shown
	at position              // where the next page goes on
}

// browsable says where a look begins. AMQP can only take messages and give them back, so a queue
// in which that leaves a trace is refused.
func (s *Queue) browsable(from string) (at position, err error) {
	op := "browse " + s.title()
	switch {
	case s.b.set.problem != nil:
		return at, s.b.set.problem
	case s.cast != nil || len(s.queues) == 0:
		return at, &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(), Err: errors.New("its queue exists only while it is open")}
	case s.cfg.Declare.Type != Classic && !s.cfg.BrowseCounts:
		return at, &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(),
			Err:  errors.New(s.costAhead()),
			Hint: "set BrowseCounts to accept that, or Declare.Type to Classic if it is one"}
	case from == "":
		return at, nil
	}
	_, err = fmt.Sscanf(from, "%d/%d/%d", &at.seen, &at.total, &at.mark)
	if err != nil || at.seen < 1 || at.total < at.seen {
		return at, &longshore.Error{Code: longshore.CodeConfig, Op: op, Source: s.name(), Err: fmt.Errorf("from is %.32q, which no call has returned", from)}
	}
	return at, nil
}

// browser looks into one queue: it takes messages, shows them and gives all back.
type browser struct {
	queue  string // looked into
	source string // as the source calls itself, for what is shown
	key    string // see QueueConfig.Key
	quorum bool   // some versions put what a quorum queue gets back at its end
}

// browserOf is the browser of a source's first queue.
func browserOf(s *Queue) browser {
	return browser{queue: s.queues[0], source: s.name(), key: s.cfg.Key, quorum: s.cfg.Declare.Type == Quorum}
}

// look takes messages, shows each, and gives them back; it ends early when each returns
// false. They return to their places or before all others, so what was seen is skipped,
// but some versions put those of a quorum queue at its end: then the first message is not
// the first any more.
func (b browser) look(ch conn.Channel, at position, n int, each func(*longshore.Delivery) bool) (position, error) {
	q, err := ask(ch, b.queue)
	if err != nil {
		return at, err
	}
	if at.total == 0 {
		at.total = q.Messages
	}
	skip, first, last := at.seen, at.seen == 0, uint64(0)
	n = min(n, at.total-at.seen)
	for i := 0; i < skip+n; i++ {
		raw, ok, err := ch.Get(b.queue, false)
		if err != nil {
			return at, err
		}
		if !ok {
			at.seen = at.total
			break
		}
		last = raw.DeliveryTag
		switch mark := fingerprint(&raw); {
		case i == 0 && first:
			at.mark = mark
		case i == 0 && b.quorum && mark != at.mark:
			skip = 0
		}
		if i >= skip {
			at.seen++
			if !each(b.shown(&raw, uint64(at.seen-1))) { //nolint:gosec // not negative
				break
			}
		}
	}
	if last == 0 {
		return at, nil
	}
	if err := ch.Nack(last, true, true); err != nil {
		return at, err
	}
	return at, b.back(ch, q.Messages)
}

const (
	// backTime is how long a look waits at most for what it has given back: consumers
	// may have taken some of it.
	backTime  = time.Second
	backPause = 5 * time.Millisecond
)

// back waits until the queue has as many messages again as it had before the look. The
// broker gives them back on its own time, and until then the next look, or the next page,
// would take what has not come back for gone.
func (b browser) back(ch conn.Channel, ready int) error {
	tick := time.NewTicker(backPause)
	defer tick.Stop()
	for end := time.Now().Add(backTime); ; <-tick.C {
		q, err := ask(ch, b.queue)
		if err != nil || q.Messages >= ready || time.Now().After(end) {
			return err
		}
	}
}

// fingerprint recognises a message that comes again: a look has no other way to tell how far it
// went, since a queue has no positions.
func fingerprint(raw *amqp091.Delivery) uint32 {
	h := crc32.NewIEEE()
	_, _ = fmt.Fprintf(h, "%q %q %q %d ", raw.MessageId, raw.RoutingKey, raw.CorrelationId, raw.Timestamp.Unix())
	_, _ = h.Write(raw.Body)
	return h.Sum32()
}

// shown is a message to look at.
func (b browser) shown(raw *amqp091.Delivery, at uint64) *longshore.Delivery {
	d := longshore.NewDelivery(context.Background(), browsed{}, at)
	codec.Decode(d, raw, b.key)
	d.Attempt = codec.Attempt(raw, b.queue)
	d.Origin.Subscription = &longshore.Subscription{Transport: "rabbitmq", Source: b.source}
	d.Origin.Topic, d.Origin.Position = b.queue, at
	d.Origin.Redelivered, d.Origin.ReceivedAt = raw.Redelivered || d.Attempt > 1, time.Now()
	raw.Acknowledger = foreign{}
	d.SetNative(raw)
	return d
}

// browsed is the settler of what was only looked at.
type browsed struct{}

var errBrowsed = &longshore.Error{Code: longshore.CodeUnsupported, Op: "settle a message that was browsed"}

func (browsed) Ack(context.Context, uint64) error                      { return errBrowsed }
func (browsed) Nack(context.Context, uint64, time.Duration, int) error { return errBrowsed }
func (browsed) Reject(context.Context, uint64, error) error            { return errBrowsed }
func (browsed) Extend(context.Context, uint64, time.Duration) error    { return errBrowsed }

// costAhead is what a look would cost.
func (s *Queue) costAhead() string {
	if s.cfg.Declare.Type == Quorum {
		return "looking takes each message and gives it back, which the quorum queue counts towards its delivery limit"
	}
	return "looking takes each message and gives it back, which a quorum queue counts towards its delivery limit; the type of this queue is not known"
}

// BrowseCost is what a look leaves behind.
func (s *Queue) BrowseCost() string {
	const marked = "peeking took each message and gave it back: the messages are now marked as redelivered"
	switch s.cfg.Declare.Type {
	case Classic:
		return marked
	case Quorum:
		return marked + ", and the queue has counted a delivery of each"
	case "", Stream:
	}
	return marked + ", and a quorum queue has counted a delivery of each"
}
