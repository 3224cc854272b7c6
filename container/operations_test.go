package container_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// timed is a source that tells of one call when it is opened.
type timed struct {
	transport.Source
	wanted bool // somebody listens
}

func (s *timed) Describe() transport.Description {
	return transport.Description{Transport: "slow", Name: "orders"}
}

func (s *timed) Open(ctx context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	s.wanted = o.Operations.To != nil
	o.Operations.End(longshore.OperationAck, o.Operations.Begin(), longshore.CodeTimeout)
	return s.Source.Open(ctx, o)
}

// hears is a middleware that hears of calls at the broker.
type hears struct{ ops []longshore.Operation }

func (*hears) Wrap(next longshore.Handler) longshore.Handler { return next }
func (h *hears) Operation(o longshore.Operation) {
	h.ops = append(h.ops, o)
	panic("a defect in a middleware must not end the transport")
}

func TestOperationsReachTheMiddlewares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		src := &timed{Source: b.Queue("q", memory.QueueConfig{})}
		nothing := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { return nil })
		c := start(t, src, nothing, container.Config{})
		wait(time.Second)
		stop(t, c)
		if src.wanted {
			t.Error("clocks are read for nobody")
		}
		h := &hears{}
		c = start(t, src, nothing, container.Config{Middleware: []longshore.Middleware{h}})
		wait(time.Second)
		stop(t, c)
		want := longshore.Operation{Transport: "slow", Source: "orders", Kind: longshore.OperationAck, Code: longshore.CodeTimeout}
		if len(h.ops) != 1 || h.ops[0] != want {
			t.Errorf("told %+v", h.ops)
		}
	})
}
