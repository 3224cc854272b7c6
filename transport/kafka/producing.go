package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// producing is a client and how many calls use it.
type producing struct {
	cl    *kgo.Client
	users int
	over  bool // another has taken its place
}

// enter returns the client to publish with.
func (p *Publisher) enter() (*producing, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, longshore.ErrClosed
	}
	p.now.users++
	return p.now, nil
}

// leave ends the use of a client. The identity that an idempotent producer is given is
// asked for once: a client that was refused it fails each record from then on, also
// when the permission has come or the broker is well again. So another takes its place.
func (p *Publisher) leave(ctx context.Context, with *producing, failed error) {
	stuck := failed != nil && ctx.Err() == nil && with.refused() //nolint:contextcheck // it answers from memory
	p.mu.Lock()
	with.users--
	if stuck && p.now == with && !p.closed {
		if cl, err := kgo.NewClient(p.opts...); err == nil {
			p.now, with.over = &producing{cl: cl}, true
			p.replaced.Add(1)
		}
	}
	last := with.over && with.users == 0
	p.mu.Unlock()
	if last {
		with.cl.Close() // nothing is under way
		p.replaced.Done()
	}
}

// refused: the client has no identity and never asks again, which it answers from
// memory.
func (w *producing) refused() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _, err := w.cl.ProducerID(ctx)
	var ke *kerr.Error
	return errors.As(err, &ke) && !kerr.IsRetriable(ke)
}
