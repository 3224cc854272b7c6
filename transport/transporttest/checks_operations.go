package transporttest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// told keeps what Operations was told.
type told struct {
	mu  sync.Mutex
	ops map[longshore.OperationKind][]longshore.Operation
}

// Operation implements longshore.OperationObserver.
func (o *told) Operation(op longshore.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ops == nil {
		o.ops = map[longshore.OperationKind][]longshore.Operation{}
	}
	o.ops[op.Kind] = append(o.ops[op.Kind], op)
}

func (o *told) kinds() []longshore.OperationKind {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.ops))
}

// Calls at the broker are reported with their time, and as carried out where they were.
func operations(e *env) {
	src := e.h.Source(e)
	var heard told
	s := e.open(src, transport.OpenOptions{Operations: transport.Operations{To: &heard}})
	e.publish(src, bodies(2)...)
	ds := s.take(2)
	s.ack(ds[0])
	_ = e.do("Nack", func(ctx context.Context) error { return ds[1].Nack(ctx, 0) })
	s.flush()
	for _, kind := range e.h.Operations {
		if !e.eventually(func() bool { return slices.Contains(heard.kinds(), kind) }) {
			e.Errorf("no event %s, but %v", kind, heard.kinds())
		}
	}
	s.shut()
	heard.mu.Lock()
	defer heard.mu.Unlock()
	for kind, ops := range heard.ops {
		for _, op := range ops {
			if op.Took < 0 || op.Code != "" {
				e.Errorf("%s took %s and has code %q although nothing went wrong", kind, op.Took, op.Code)
			}
		}
	}
}
