package amqp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
// once, so each is marked as redelivered and, on a quorum queue, counted. Where
// the queue is not known to be a classic one that needs QueueConfig.BrowseCounts.
// from is a number of messages to skip. It looks at the first queue of several.
func (s *queueSource) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	op := "browse " + s.title()
	if s.cast != nil || len(s.queues) == 0 {
		return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(), Err: errors.New("its queue exists only while it is open")}
	}
	if s.cfg.Declare.Type != Classic && !s.cfg.BrowseCounts {
		return nil, "", &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(),
			Err:  errors.New("looking takes each message and gives it back, which a quorum queue counts towards its delivery limit"),
			Hint: "set BrowseCounts to accept that, or Declare.Type to Classic if it is one"}
	}
	skip := 0
	if from != "" {
		var err error
		if skip, err = strconv.Atoi(from); err != nil || skip < 0 {
			return nil, "", &longshore.Error{Code: longshore.CodeConfig, Op: op, Source: s.name(), Err: fmt.Errorf("from is %.32q, must be a number", from)}
		}
	}
	sess, err := s.b.consume.acquire(ctx)
	if err != nil {
		return nil, "", s.opening(err)
	}
	found := make(chan []*longshore.Delivery, 1)
	err = sess.scratch(ctx, func(ch channel) error {
		ds, err := s.look(ch, skip, n)
		found <- ds
		return err
	})
	if rerr := s.b.consume.release(ctx, sess); err == nil {
		err = rerr
	}
	if err != nil {
		return nil, "", s.b.set.brokerError(op, s.name(), err)
	}
	ds := <-found
	next := ""
	if len(ds) == n {
		next = strconv.Itoa(skip + n)
	}
	return ds, next, nil
}

func (s *queueSource) look(ch channel, skip, n int) ([]*longshore.Delivery, error) {
	var ds []*longshore.Delivery
	sub := &longshore.Subscription{Transport: "rabbitmq", Source: s.name()}
	last := uint64(0)
	for i := 0; i < skip+n; i++ {
		raw, ok, err := ch.Get(s.queues[0], false)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		last = raw.DeliveryTag
		if i < skip {
			continue
		}
		d := longshore.NewDelivery(context.Background(), browsed{}, raw.DeliveryTag)
		decode(d, &raw, s.cfg.Key)
		d.Origin.Subscription, d.Origin.Topic, d.Origin.Position = sub, s.queues[0], uint64(i)
		d.Origin.Redelivered, d.Origin.ReceivedAt = raw.Redelivered, time.Now()
		raw.Acknowledger = foreign{}
		d.SetNative(&raw)
		ds = append(ds, d)
	}
	if last == 0 {
		return ds, nil
	}
	return ds, ch.Nack(last, true, true)
}

// browsed is the settler of what was only looked at.
type browsed struct{}

var errBrowsed = &longshore.Error{Code: longshore.CodeUnsupported, Op: "settle a message that was browsed"}

func (browsed) Ack(context.Context, uint64) error                      { return errBrowsed }
func (browsed) Nack(context.Context, uint64, time.Duration, int) error { return errBrowsed }
func (browsed) Reject(context.Context, uint64, error) error            { return errBrowsed }
func (browsed) Extend(context.Context, uint64, time.Duration) error    { return errBrowsed }
