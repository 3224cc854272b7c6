package kafka

import (
	"context"

	"github.com/longshore-go/longshore/transport"
)

var _ transport.Follower = (*Group)(nil)

// Follow returns a source of the records that are written from now on. It joins no group and
// commits nothing. What exactly "from now on" is, is decided by Open.
func (s *Group) Follow(context.Context) (copies transport.Source, missing string, err error) {
	if err := s.Check(); err != nil {
		return nil, "", err
	}
	cfg := BroadcastConfig{Start: Latest, OutOfRange: ToLatest, Isolation: s.cfg.Isolation, Window: s.cfg.Window, OversizedBatch: s.cfg.OversizedBatch}
	return s.b.Broadcast(s.topics, cfg), "", nil
}
