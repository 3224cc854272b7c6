package bridge

import (
	"context"
	"sync/atomic"

	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// failing is why nothing can be forwarded at present: the latest error of the target or of the
// ledger. The breaker counts such errors, and does not keep their texts.
type failing struct{ last atomic.Pointer[failure] }

// failure is an error of one side.
type failure struct {
	side string // target or ledger
	err  error
}

// note takes the error of a side.
func (f *failing) note(side string, err error) { f.last.Store(&failure{side, err}) }

// clear ends the failure of whatever side.
func (f *failing) clear() {
	if f.last.Load() != nil { // each forwarded message ends it
		f.last.Store(nil)
	}
}

// probing is p's probe, with its outcomes noted. That the target answers says nothing of the
// ledger.
func (f *failing) probing(p transport.Prober) func(context.Context) error {
	return func(ctx context.Context) error {
		err := p.Probe(ctx)
		switch last := f.last.Load(); {
		case err != nil && ctx.Err() == nil:
			f.note("target", err)
		case err == nil && last != nil && last.side == "target":
			f.last.CompareAndSwap(last, nil)
		}
		return err
	}
}

// text says why the route is held; "" = it is not held by a side that fails.
func (f *failing) text(b container.Bottleneck) string {
	last := f.last.Load()
	switch {
	case b.By == container.ByBroker:
		return "source: " + b.Text
	case last != nil:
		return last.side + ": " + last.err.Error()
	}
	return ""
}
