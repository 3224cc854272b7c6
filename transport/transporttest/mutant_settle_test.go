package transporttest

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

type mutantSettler struct{ c *mutantConsumer }

// find returns the inner delivery of a tag.
func (s *mutantSettler) find(tag uint64) *longshore.Delivery {
	c := s.c
	if c.bug() == "stale-tag-settles-new-delivery" {
		c.m.mu.Lock()
		c = c.m.last
		c.m.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[tag]
}

// refused is where bugs live that concern all verbs alike. done means that the
// verb has had its answer.
func (s *mutantSettler) refused(ctx context.Context, d *longshore.Delivery) (done bool, err error) {
	c := s.c
	switch c.bug() {
	case "dead-context-refused":
		if err := ctx.Err(); err != nil {
			return true, err
		}
	case "loss-accepts-late-settlements":
		if !d.Owned() {
			return true, nil
		}
	case "settle-hangs-after-loss":
		if !d.Owned() {
			<-c.m.untilCleanup().Done()
		}
	case "cancel-closes-settlement-path":
		if c.canceled.Load() {
			return true, longshore.ErrClosed
		}
	case "settle-after-close-accepted":
		if c.closed.Load() {
			return true, nil
		}
	}
	return false, nil
}

// told tells of a call, which took no time.
func (s *mutantSettler) told(kind longshore.OperationKind) {
	var code longshore.Code
	switch bug := s.c.bug(); {
	case bug == "operations-without-nack" && kind == longshore.OperationNack:
		return
	case bug == "operations-all-fail":
		code = longshore.CodeSettle
	}
	s.c.ops.End(kind, s.c.ops.Begin(), code)
}

func (s *mutantSettler) Ack(ctx context.Context, tag uint64) error {
	d := s.find(tag)
	if d == nil {
		return longshore.ErrLost
	}
	s.told(longshore.OperationAck)
	if done, err := s.refused(ctx, d); done {
		return err
	}
	switch s.c.bug() {
	case "ack-is-not-sent":
		return nil
	case "ack-nacks":
		return d.Nack(ctx, 0)
	case "observer-called-inside-verb":
		err := d.Ack(ctx)
		select {
		case tell := <-s.c.untold:
			tell()
		case <-time.After(time.Millisecond):
		}
		return err
	case "ack-is-asked-twice":
		// An answer that is no sentinel opens the delivery again.
		if s.c.first(tag) {
			_ = d.Ack(ctx)
			return errors.New("try again")
		}
		return nil
	}
	return d.Ack(ctx)
}

// first tells whether the tag was not asked for before.
func (c *mutantConsumer) first(tag uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := tag | 1<<63
	_, was := c.held[key]
	c.held[key] = nil
	return !was
}

func (s *mutantSettler) Nack(ctx context.Context, tag uint64, delay time.Duration, attempt int) error {
	d := s.find(tag)
	if d == nil {
		return longshore.ErrLost
	}
	s.told(longshore.OperationNack)
	if done, err := s.refused(ctx, d); done {
		return err
	}
	switch s.c.bug() {
	case "nack-acks":
		return d.Ack(ctx)
	case "nack-behind-cancel-acks":
		if s.c.canceled.Load() {
			return d.Ack(ctx)
		}
	case "nack-ignores-delay":
		delay = 0
	case "nack-always-counts":
		attempt = d.Attempt + 1
	case "nack-opens-again":
		if err := d.Nack(ctx, delay); err != nil {
			return err
		}
		return errors.New("no answer")
	case "delay-unlimited":
		if delay > time.Minute {
			return d.Nack(ctx, time.Minute)
		}
	}
	return d.Apply(ctx, longshore.Settlement{Verb: longshore.VerbNack, Delay: delay, Attempt: attempt})
}

func (s *mutantSettler) Reject(ctx context.Context, tag uint64, reason error) error {
	d := s.find(tag)
	if d == nil {
		return longshore.ErrLost
	}
	if done, err := s.refused(ctx, d); done {
		return err
	}
	switch s.c.bug() {
	case "reject-acks":
		return d.Ack(ctx)
	case "reject-requeues":
		return d.Nack(ctx, 0)
	}
	return d.Reject(ctx, reason)
}

func (s *mutantSettler) Extend(ctx context.Context, tag uint64, lease time.Duration) error {
	d := s.find(tag)
	if d == nil {
		return longshore.ErrLost
	}
	if done, err := s.refused(ctx, d); done {
		return err
	}
	if s.c.bug() == "extend-refused" {
		return &longshore.Error{Code: longshore.CodeUnsupported, Op: "extend"}
	}
	return d.Extend(ctx, lease)
}

type mutantPublisher struct {
	transport.Publisher
	m *mutant
}

func (p *mutantPublisher) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	switch p.m.bug {
	case "publish-hides-partial-failure":
		err := p.Publisher.Publish(ctx, dest, msgs...)
		var partial *transport.PartialError
		if errors.As(err, &partial) && partial.Total > 1 {
			return nil
		}
		return err
	case "publish-fails-all-for-one":
		for i, m := range msgs {
			if m.Headers.Check() != nil {
				return &transport.PartialError{Failed: map[int]error{i: m.Headers.Check()}, Total: len(msgs)}
			}
		}
	case "publish-returns-before-confirm":
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		err := p.Publisher.Publish(short, dest, msgs...)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		return err
	case "publish-hides-refusal":
		err := p.Publisher.Publish(ctx, dest, msgs...)
		if len(msgs) == 1 {
			return nil
		}
		return err
	case "publish-twice":
		if len(msgs) == 1 && len(msgs[0].Headers) == 1 {
			_ = p.Publisher.Publish(ctx, dest, msgs...)
		}
	case "publish-loses-every-20th":
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		if len(msgs) == 1 && string(msgs[0].Body) == "m3-7" {
			return nil
		}
	}
	return p.Publisher.Publish(ctx, dest, msgs...)
}

func (p *mutantPublisher) Close(ctx context.Context) error {
	if p.m.bug == "publisher-stays-open" {
		return nil
	}
	return p.Publisher.Close(ctx)
}
