package mutex

import (
	"context"
	"errors"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// sending is what became of rows that were given to the publisher.
type sending struct {
	o       *Outbox
	done    []*record
	refused map[*record]error // the row's own fault
	err     error             // the broker's: nothing of it counts
	stopped map[string]bool   // keys that must not go on
}

// send publishes rows in their order: at most one of each key at a time, so that none
// is confirmed while the one before it is refused.
func (o *Outbox) send(ctx context.Context, rs []*record) *sending {
	s := &sending{o: o, refused: map[*record]error{}, stopped: map[string]bool{}}
	for len(rs) > 0 && s.err == nil {
		var wave, later []*record
		used := map[string]bool{}
		for _, r := range rs {
			switch {
			case r.key != "" && s.stopped[r.key]:
			case r.key != "" && used[r.key]:
				later = append(later, r)
			default:
				used[r.key] = true
				wave = append(wave, r)
			}
		}
		s.wave(ctx, wave)
		rs = later
	}
	return s
}

// wave publishes rows of different keys, one call for each destination.
func (s *sending) wave(ctx context.Context, rs []*record) {
	var dests []string
	by := map[string][]*record{}
	for _, r := range rs {
		if by[r.dest] == nil {
			dests = append(dests, r.dest)
		}
		by[r.dest] = append(by[r.dest], r)
	}
	for _, dest := range dests {
		if s.err != nil {
			return
		}
		s.batch(ctx, by[dest])
	}
}

func (s *sending) batch(ctx context.Context, rs []*record) {
	err := s.publish(ctx, rs)
	var partial *transport.PartialError
	switch {
	case err == nil:
		s.confirmed(rs...)
	case errors.As(err, &partial):
		s.partial(rs, partial)
	case len(rs) == 1:
		s.note(rs[0], err)
	case ofTheChannel(err) || !ofTheBroker(err):
		s.oneByOne(ctx, rs)
	default:
		s.err = err
	}
}

func (s *sending) publish(ctx context.Context, rs []*record) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.cfg.PublishTimeout)
	defer cancel()
	msgs := make([]*longshore.Message, len(rs))
	for i, r := range rs {
		msgs[i] = r.msg
	}
	return s.o.pub.Publish(ctx, rs[0].dest, msgs...)
}

func (s *sending) partial(rs []*record, p *transport.PartialError) {
	for i, r := range rs {
		if err, bad := p.Failed[i]; bad {
			s.note(r, err)
		} else {
			s.confirmed(r)
		}
	}
}

func (s *sending) confirmed(rs ...*record) {
	s.done = append(s.done, rs...)
	s.o.suspects.passed()
}

// note says whose fault it was.
func (s *sending) note(r *record, err error) {
	if r.key != "" {
		s.stopped[r.key] = true
	}
	if ofTheBroker(err) && (!ofTheChannel(err) || !s.o.suspects.again(r)) {
		s.err = err
		return
	}
	s.refused[r] = err
}

// oneByOne looks for the row that took a whole batch with it: with some brokers a
// message to a missing exchange closes the channel. Who closes it again, while others
// pass, is at fault.
func (s *sending) oneByOne(ctx context.Context, rs []*record) {
	suspects := map[*record]error{}
	passed, before := false, s.err
	for _, r := range rs {
		s.err = before
		n := len(s.done)
		s.batch(ctx, []*record{r})
		switch {
		case len(s.done) > n:
			passed = true
		case s.err != nil && !ofTheChannel(s.err):
			return
		case s.err != nil:
			suspects[r] = s.err
			if len(suspects) > 1 && !passed {
				return // it is the broker
			}
		}
	}
	s.err = before
	for r, err := range suspects {
		if passed {
			s.refused[r] = err
		} else {
			s.err = err
		}
	}
}

// ofTheBroker: the message is not at fault, another may fare no better.
func ofTheBroker(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, longshore.ErrClosed) {
		return true
	}
	switch longshore.CodeOf(err) {
	case longshore.CodeUnreachable, longshore.CodeAuth, longshore.CodeTLS, longshore.CodeVhost, longshore.CodeBlocked,
		longshore.CodeTimeout, longshore.CodeMaybeSent, longshore.CodeConnLost, longshore.CodeCanceledBy, longshore.CodeState:
		return true
	default:
		return false
	}
}

func ofTheChannel(err error) bool { return errors.Is(err, longshore.CodeConnLost) }
