package sqs

import (
	"context"
	"time"

	"github.com/longshore-go/longshore/transport"
)

// countersSettle is how long SQS's counters may be behind.
const countersSettle = time.Minute

// Remaining is what SQS counts in the queue: visible, in flight and delayed. The counters are
// estimates that settle a minute after the last change, and SQS does not know who consumes.
// Errors: those of Open.
func (s *queueSource) Remaining(ctx context.Context) (transport.Remaining, error) {
	p, err := s.place()
	if err != nil {
		return transport.Remaining{}, err
	}
	api, err := s.b.acquire(p)
	if err != nil {
		return transport.Remaining{}, err
	}
	l := &queueHandle{b: s.b, api: api}
	defer l.close()
	var d Depth
	if l.url, err = l.find(ctx, s.ref); err == nil {
		d, err = l.depth(ctx)
	}
	if err != nil {
		return transport.Remaining{}, s.failure("count what remains in "+s.title(), err)
	}
	r := transport.Remaining{Lag: countersSettle}
	r.Add(transport.Place{Name: s.ref.name, Ready: d.Visible, Unsettled: d.Hidden, Delayed: d.Delayed, Consumers: -1})
	return r, nil
}

// Neighbour is another queue of the account and region. Nothing is declared, and its messages
// are taken as they are.
func (s *queueSource) Neighbour(name string) transport.Source {
	cfg := s.cfg
	cfg.Declare, cfg.Envelope = Declare{}, None
	return s.b.Queue(Beside(first(s.ref.url, s.ref.arn, s.ref.name), name), cfg)
}

// Incarnation is when the queue was made. Errors: those of Open.
func (s *queueSource) Incarnation(ctx context.Context) (string, error) {
	attrs, err := s.Settings(ctx)
	return attrs["CreatedTimestamp"], err
}
