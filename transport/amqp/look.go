package amqp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-go/longshore"
)

// Backlog is how many messages are ready in the source's queues, not counting
// those that are out to consumers.
func (c *consumer) Backlog(ctx context.Context) (int64, time.Time, error) {
	type reading struct{ ready, consumers int }
	got := make(chan reading, 1)
	err := c.sess.scratch(ctx, func(ch channel) error {
		var r reading
		for _, name := range c.queues {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if err != nil {
				return err
			}
			r.ready += q.Messages
			r.consumers += q.Consumers
		}
		got <- r
		return nil
	})
	if err != nil {
		return 0, time.Time{}, c.b.set.brokerError("read the depth of "+c.src.title(), c.src.name(), err)
	}
	sum := <-got
	c.mu.Lock()
	if c.standby && sum.consumers <= 1 { // nobody else is left
		c.activate()
	}
	c.mu.Unlock()
	return int64(sum.ready), time.Now(), nil
}

// Browse looks at messages by taking them (basic.get) and giving all back at
// once, so each is marked as redelivered. A quorum queue also counts that and, up
// to 3.13, puts them behind the others; where the queue is not known to be a classic one that
// needs QueueConfig.BrowseCounts, and where its type is not known at all there is
// one page only. Of several queues it looks at the first.
func (s *queueSource) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	at, err := s.browsable(from)
	if err != nil {
		return nil, "", err
	}
	n = max(n, 1)
	sess, err := s.b.consume.acquire(ctx)
	if err != nil {
		return nil, "", s.opening(err)
	}
	found := make(chan page, 1)
	err = sess.scratch(ctx, func(ch channel) error {
		p, err := s.look(ch, sess.version, at, n)
		found <- p
		return err
	})
	if rerr := s.b.consume.release(ctx, sess); err == nil {
		err = rerr
	}
	if err != nil {
		return nil, "", s.b.set.brokerError("browse "+s.title(), s.name(), err)
	}
	p := <-found
	next := ""
	if s.cfg.Declare.Type != "" && p.at.seen < p.at.total {
		next = fmt.Sprintf("%d/%d", p.at.seen, p.at.total)
	}
	return p.ds, next, nil
}

// position is how far a look has come, of how many messages there were at its
// beginning.
type position struct{ seen, total int }

type page struct {
	ds []*longshore.Delivery
	at position
}

func (s *queueSource) browsable(from string) (at position, err error) {
	op := "browse " + s.title()
	switch {
	case s.b.set.problem != nil:
		return at, s.b.set.problem
	case s.cast != nil || len(s.queues) == 0:
		return at, &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(), Err: errors.New("its queue exists only while it is open")}
	case s.cfg.Declare.Type != Classic && !s.cfg.BrowseCounts:
		return at, &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(),
			Err:  errors.New("looking takes each message and gives it back, which a quorum queue counts towards its delivery limit"),
			Hint: "set BrowseCounts to accept that, or Declare.Type to Classic if it is one"}
	case from == "":
		return at, nil
	}
	seen, total, _ := strings.Cut(from, "/")
	var err1, err2 error
	at.seen, err1 = strconv.Atoi(seen)
	at.total, err2 = strconv.Atoi(total)
	if err1 != nil || err2 != nil || at.seen < 1 || at.total < at.seen {
		return at, &longshore.Error{Code: longshore.CodeConfig, Op: op, Source: s.name(), Err: fmt.Errorf("from is %.32q, which no call has returned", from)}
	}
	return at, nil
}

// look takes messages and gives them back. They return to their places, or before
// all others, so what was seen is skipped; only quorum queues of 3.x put them at
// the end.
func (s *queueSource) look(ch channel, v version, at position, n int) (p page, err error) {
	p.at = at
	if at.total == 0 {
		q, err := ch.QueueDeclarePassive(s.queues[0], true, false, false, false, nil)
		if err != nil {
			return p, err
		}
		p.at.total = q.Messages
	}
	skip := 0
	if s.cfg.Declare.Type != Quorum || v.atLeast(4, 0) {
		skip = at.seen
	}
	n = min(n, p.at.total-at.seen)
	sub := &longshore.Subscription{Transport: "rabbitmq", Source: s.name()}
	last := uint64(0)
	for i := range skip + n {
		raw, ok, err := ch.Get(s.queues[0], false)
		if err != nil {
			return p, err
		}
		if !ok {
			p.at.seen = p.at.total
			break
		}
		last = raw.DeliveryTag
		if i < skip {
			continue
		}
		d := longshore.NewDelivery(context.Background(), browsed{}, raw.DeliveryTag)
		decode(d, &raw, s.cfg.Key)
		d.Origin.Subscription, d.Origin.Topic, d.Origin.Position = sub, s.queues[0], uint64(p.at.seen)
		d.Origin.Redelivered, d.Origin.ReceivedAt = raw.Redelivered, time.Now()
		raw.Acknowledger = foreign{}
		d.SetNative(&raw)
		p.ds = append(p.ds, d)
		p.at.seen++
	}
	if last == 0 {
		return p, nil
	}
	return p, ch.Nack(last, true, true)
}

// browsed is the settler of what was only looked at.
type browsed struct{}

var errBrowsed = &longshore.Error{Code: longshore.CodeUnsupported, Op: "settle a message that was browsed"}

func (browsed) Ack(context.Context, uint64) error                      { return errBrowsed }
func (browsed) Nack(context.Context, uint64, time.Duration, int) error { return errBrowsed }
func (browsed) Reject(context.Context, uint64, error) error            { return errBrowsed }
func (browsed) Extend(context.Context, uint64, time.Duration) error    { return errBrowsed }
