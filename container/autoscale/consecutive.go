package autoscale

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore/internal/problem"
)

// Consecutive adds a worker after so many active cycles of one worker in a row and
// takes one away after so many idle ones, one at a time and not too often: the rule
// of Spring AMQP's SimpleMessageListenerContainer, with the same settings.
//
// It differs where that rule fails. A cycle is active only if work was waiting when
// the worker asked; a message that came while it waited counts as neither active
// nor idle, so that one message a second keeps no worker and adds none. The one
// that leaves is idle and not just any. A failed call does not count as active.
// Permits, window and lanes are ceilings.
//
// It reaches 30 workers after some five minutes, where [Adaptive] takes seconds,
// and knows no knee.
type Consecutive struct {
	// StartInterval is the least time between two workers that are added. Zero: 10 s.
	StartInterval time.Duration
	// StopInterval is the least time between two that are taken away. Zero: 60 s.
	StopInterval time.Duration
	// ActiveTrigger is how many active cycles in a row add a worker: one more than
	// this number, as in Spring. Zero: 10.
	ActiveTrigger int
	// IdleTrigger is the same for idle cycles. Zero: 10.
	IdleTrigger int
	// ReceiveTimeout without work is one idle cycle. Zero: 1 s.
	ReceiveTimeout time.Duration
}

const (
	startDefault   = 10 * time.Second
	stopDefault    = 60 * time.Second
	triggerDefault = 10
	receiveDefault = time.Second
)

func (c Consecutive) filled() Consecutive {
	c.StartInterval = orDefault(c.StartInterval, startDefault)
	c.StopInterval = orDefault(c.StopInterval, stopDefault)
	c.ActiveTrigger = orDefault(c.ActiveTrigger, triggerDefault)
	c.IdleTrigger = orDefault(c.IdleTrigger, triggerDefault)
	c.ReceiveTimeout = orDefault(c.ReceiveTimeout, receiveDefault)
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Check refuses what is negative.
func (c Consecutive) Check() error {
	var errs []error
	for _, f := range []struct {
		name string
		bad  bool
		v    any
	}{
		{"StartInterval", c.StartInterval < 0, c.StartInterval}, {"StopInterval", c.StopInterval < 0, c.StopInterval},
		{"ActiveTrigger", c.ActiveTrigger < 0, c.ActiveTrigger}, {"IdleTrigger", c.IdleTrigger < 0, c.IdleTrigger},
		{"ReceiveTimeout", c.ReceiveTimeout < 0, c.ReceiveTimeout},
	} {
		if f.bad {
			errs = append(errs, problem.Range(f.name, f.v, "positive, or 0 for the default"))
		}
	}
	return errors.Join(errs...)
}

// Cycles implements [Cycler].
func (c Consecutive) Cycles() Cycles {
	c = c.filled()
	return Cycles{Active: c.ActiveTrigger, Idle: c.IdleTrigger, Wait: c.ReceiveTimeout}
}

// New returns the state of one run.
func (c Consecutive) New() Scaler { return &consecutive{set: c.filled()} }

type consecutive struct {
	set              Consecutive // the user's settings with their defaults
	lanes            recently    // how many workers the order lets run at once
	started, stopped time.Time   // zero: never, so that the first of each need not wait
}

// Next implements [Scaler].
func (c *consecutive) Next(s Sample) Decision {
	d := Decision{Target: s.Workers}
	if s.Paused {
		d.Limit = LimitPaused
		return d
	}
	top, limit := ceiling(s)
	grow, laneLimit := c.lanes.cap(s, top, limit)
	switch {
	case s.Workers > top:
		return Decision{Target: top, Reason: FewerMay, Limit: limit}
	case s.ActiveTripped > 0:
		switch {
		case s.Workers >= grow:
			d.Limit = laneLimit
		case !passed(s.Now, c.started, c.set.StartInterval):
			d.Limit = LimitPace
		default:
			c.started = s.Now
			return Decision{Target: s.Workers + 1, Reason: Saturated}
		}
	case s.IdleTripped > 0 && s.Workers > s.Min && passed(s.Now, c.stopped, c.set.StopInterval):
		c.stopped = s.Now
		return Decision{Target: s.Workers - 1, Reason: Idle}
	}
	return d
}

// passed is strict, as in Spring: at the interval to the nanosecond it is too early.
func passed(now, last time.Time, interval time.Duration) bool {
	return last.IsZero() || now.Sub(last) > interval
}
