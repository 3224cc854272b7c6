package kafka

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// producing is a client and how many calls use it.
type producing struct {
	cl    *kgo.Client // not closed while it has users: that would fail their records
	users int         // calls that have records in it
	over  bool        // another has taken its place
}

// identities counts what brokers have said to clients that asked for an identity.
type identities struct{ told atomic.Int64 }

// OnBrokerRead implements kgo.HookBrokerRead.
func (i *identities) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil && key == int16(kmsg.InitProducerID) {
		i.told.Add(1)
	}
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
	stuck := failed != nil && ctx.Err() == nil && cluster.IdentityRefused(with.cl) != nil //nolint:contextcheck // it answers from memory
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

// refusal returns the reason why with was refused an identity, should that happen while
// a Publish waits: the client then fails what it holds, but now and then not what it
// was given at that very moment, which would wait for nothing until its time is over.
// It looks only after a broker has answered for an identity, so it does not ask one itself.
func (p *Publisher) refusal(with *producing) func() error {
	var seen int64
	return func() error {
		told := p.identities.told.Load()
		if told == seen {
			return nil
		}
		seen = told
		return cluster.IdentityRefused(with.cl)
	}
}
