// Package perbacklog is a scaling policy: a worker for each so many messages.
package perbacklog

import (
	"errors"

	"github.com/longshore-go/longshore/container/autoscale"
)

// Policy wants a worker for each Messages that wait. It holds no state of its own:
// each run of a container gets its own scaler.
type Policy struct {
	// Messages for one worker; must be at least 1.
	Messages int
	// Patience is for how many samples in a row, two a second, less must be wanted
	// before workers go.
	Patience int
}

// Check is asked by container.New.
func (p Policy) Check() error {
	if p.Messages < 1 || p.Patience < 0 {
		return errors.New("perbacklog: Messages must be at least 1, Patience not negative")
	}
	return nil
}

// New is called at each start.
func (p Policy) New() autoscale.Scaler { return &scaler{Policy: p} }

type scaler struct {
	Policy

	fewer int // samples in a row that wanted less
}

// Next decides by a sample alone: no clock, no goroutine. The container keeps the
// target within its bounds.
func (s *scaler) Next(in autoscale.Sample) autoscale.Decision {
	if in.Paused { // nothing can be learned now
		return autoscale.Decision{Target: in.Workers}
	}
	waiting := int64(in.Queued)
	if in.BacklogAge >= 0 { // negative: not known
		waiting += in.Backlog
	}
	want := max(int((waiting+int64(s.Messages)-1)/int64(s.Messages)), in.Busy)
	switch {
	case want > in.Workers:
		s.fewer = 0
		return autoscale.Decision{Target: want, Reason: "backlog"}
	case want < in.Workers && s.fewer >= s.Patience:
		s.fewer = 0
		return autoscale.Decision{Target: in.Workers - 1, Reason: "backlog small"}
	case want < in.Workers:
		s.fewer++
	default:
		s.fewer = 0
	}
	return autoscale.Decision{Target: in.Workers}
}
