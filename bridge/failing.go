package bridge

import (
	"context"
	"sync/atomic"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// failing is why nothing can be forwarded at present: the latest error of the target or of the
// ledger. The breaker counts such errors, and does not keep their texts.
type failing struct{ last atomic.Pointer[error] }

// note takes the outcome of a call; nil ends the failure.
func (f *failing) note(err error) {
	switch {
	case err != nil:
		f.last.Store(&err)
	case f.last.Load() != nil:
		f.last.Store(nil)
	}
}

// probing is p's probe, with its outcomes noted.
func (f *failing) probing(p transport.Prober) func(context.Context) error {
	return func(ctx context.Context) error {
		err := p.Probe(ctx)
		if err == nil || ctx.Err() == nil {
			f.note(err)
		}
		return err
	}
}

// text says why the route is held; "" = it is not held by a side that fails.
func (f *failing) text(b container.Bottleneck) string {
	err := f.last.Load()
	switch {
	case b.By == container.ByBroker:
		return "source: " + b.Text
	case err != nil:
		return "target: " + (*err).Error()
	}
	return ""
}
