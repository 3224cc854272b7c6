package telemetry

import (
	"context"
	"slices"
	"sync"

	"github.com/longshore-go/longshore"
)

// extract reads the producer's context from the headers.
func (t *Telemetry) extract(ctx context.Context, d *longshore.Delivery) context.Context {
	m := d.Received()
	if !t.told(m.Headers) {
		return ctx
	}
	return t.propagator.Extract(ctx, carrier{&m.Headers})
}

// told says whether there is a header that the propagator reads.
func (t *Telemetry) told(hs longshore.Headers) bool {
	for i := range hs {
		if slices.Contains(t.fields, hs[i].Name) {
			return true
		}
	}
	return false
}

// carry is extract for later.
func (t *Telemetry) carry(ctx context.Context, d *longshore.Delivery) context.Context {
	if !t.told(d.Received().Headers) {
		return ctx
	}
	return &carried{Context: ctx, t: t, d: d}
}

// carried is a context that reads the headers when it is first asked for a value.
type carried struct {
	context.Context //nolint:containedctx // it is a context

	t    *Telemetry
	d    *longshore.Delivery
	once sync.Once
	full context.Context //nolint:containedctx // what it is once it was asked
}

// Value is the producer's, or the container's.
func (c *carried) Value(key any) any {
	c.once.Do(func() { c.full = c.t.extract(c.Context, c.d) })
	return c.full.Value(key)
}
