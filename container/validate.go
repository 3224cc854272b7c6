package container

import (
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// together refuses settings that are right by themselves and not together; those that
// concern one part of the configuration are refused where it is read.
func (s *settings) together(p *problems, src transport.Source, cfg Config, batch bool) {
	if cfg.Stuck.Action == StuckReplace && cfg.Stuck.After == -1 {
		p.Conflict("Stuck.Action", "replace", "a {Stuck.After} of never{? (-1)}", "no handler is ever found stuck", "leave {Stuck.After} out, or {Stuck.Action}")
	}
	if limit := keepLimit(src.Capabilities()); batch && limit > 0 && cfg.Batch.Linger > limit {
		p.Conflict("Batch.Linger", cfg.Batch.Linger, "the lease of "+problem.Literal(s.name), "a delivery may wait in this process for at most "+limit.String(), "lower it")
	}
}

// fits asks the source whether it can serve what this container will ask of it.
// whole tells that the bounds of workers and window are right.
func (s *settings) fits(p *problems, src transport.Source, w Workers, whole bool) {
	f, ok := src.(transport.Validator)
	if !ok {
		return
	}
	most := w.Max
	if !whole {
		most = 0
	}
	p.Join(f.ValidateOpen(s.wishes(most)))
}

// wishes are the options for a source with at most so many workers; 0 leaves the window to it.
func (s *settings) wishes(workers int) transport.OpenOptions {
	o := transport.OpenOptions{Ordered: s.ordered, Batch: s.batch, Native: s.dead.To == "" && s.dead.Policy == DeadLetterNative}
	if workers > 0 {
		o.MaxWindow, o.MaxWorkers = s.window(workers), workers
	}
	if s.dead.Via == nil {
		o.DeadLetter = s.dead.To
	}
	return o
}
