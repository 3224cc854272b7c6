package memory

import (
	"context"

	"github.com/longshore-go/longshore/transport"
)

// Remaining counts what the queue holds. Errors: those of Open.
func (s *queueSource) Remaining(ctx context.Context) (transport.Remaining, error) {
	if err := s.b.slow(ctx, OpBrowse); err != nil {
		return transport.Remaining{}, err
	}
	s.b.mu.Lock()
	exists := s.b.queues[s.name] != nil
	s.b.mu.Unlock()
	if !exists {
		return transport.Remaining{}, s.b.notFound(s.name)
	}
	info := s.b.Inspect(s.name)
	r := transport.Remaining{Exact: true}
	r.Add(transport.Place{Name: s.name, Ready: int64(info.Ready), Unsettled: int64(info.Unsettled), Delayed: int64(info.Delayed), Consumers: int64(info.Consumers)})
	return r, nil
}

// Neighbour is another queue of the broker.
func (s *queueSource) Neighbour(name string) transport.Source {
	cfg := s.cfg
	cfg.DeadLetter = ""
	return s.b.Queue(name, cfg)
}
