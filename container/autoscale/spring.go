package autoscale

import (
	"errors"
	"time"

	"github.com/longshore-go/longshore/internal/problem"
)

// Spring is the rule of Spring AMQP's SimpleMessageListenerContainer exactly as it is, for
// services whose settings must keep their meaning. [Consecutive] has the same settings
// without the rule's defects, and [Adaptive] is much faster.
//
// Each worker counts its own cycles. A cycle ends after BatchSize messages, or when none
// came for ReceiveTimeout; it is active if it had a message at all. A failed message counts
// as no cycle. The 12th active cycle in a row (ActiveTrigger + 2) adds a worker, the 12th
// idle one removes one, unless the last such step was StartInterval or StopInterval ago or
// less; the count starts again either way. Work goes to the worker that has waited longest,
// as RabbitMQ spreads it over consumers. So a trickle of messages keeps every worker: none of
// them sees 12 idle cycles.
//
// Steps are taken twice a second. Nothing but Workers.Min and Max bounds them.
type Spring struct {
	// StartInterval is startConsumerMinInterval. Zero: 10 s.
	StartInterval time.Duration
	// StopInterval is stopConsumerMinInterval. Zero: 60 s.
	StopInterval time.Duration
	// ActiveTrigger is consecutiveActiveTrigger. Zero: 10.
	ActiveTrigger int
	// IdleTrigger is consecutiveIdleTrigger. Zero: 10.
	IdleTrigger int
	// ReceiveTimeout is receiveTimeout. Zero: 1 s.
	ReceiveTimeout time.Duration
	// BatchSize is batchSize: handler calls in a cycle. Zero: 1. With container.NewBatch a
	// cycle of 1 is one batch.
	BatchSize int
}

func (r Spring) filled() Spring {
	c := r.consecutive().filled()
	return Spring{c.StartInterval, c.StopInterval, c.ActiveTrigger, c.IdleTrigger, c.ReceiveTimeout, orDefault(r.BatchSize, 1)}
}

// consecutive has the settings that both policies share.
func (r Spring) consecutive() Consecutive {
	return Consecutive{r.StartInterval, r.StopInterval, r.ActiveTrigger, r.IdleTrigger, r.ReceiveTimeout}
}

// Check refuses what is negative.
func (r Spring) Check() error {
	err := r.consecutive().Check()
	if r.BatchSize < 0 {
		err = errors.Join(err, problem.Range("BatchSize", r.BatchSize, "positive, or 0 for the default"))
	}
	return err
}

// Cycles implements [Cycler].
func (r Spring) Cycles() Cycles {
	r = r.filled()
	return Cycles{Active: r.ActiveTrigger, Idle: r.IdleTrigger, Wait: r.ReceiveTimeout, Batch: r.BatchSize}
}

// New returns the state of one run.
func (r Spring) New() Scaler { return &spring{set: r.filled()} }

type spring struct {
	set              Spring    // the user's settings with their defaults
	started, stopped time.Time // zero: never, so that the first of each need not wait
}

// Next implements [Scaler]. A worker that trips its idle trigger and one that trips its
// active trigger are two decisions, in one tick too.
func (r *spring) Next(s Sample) Decision {
	d := Decision{Target: s.Workers}
	if s.Paused {
		d.Limit = LimitPaused
		return d
	}
	if s.ActiveTripped > 0 {
		switch {
		case s.Workers >= s.Max:
			d.Limit = LimitMax
		case !passed(s.Now, r.started, r.set.StartInterval):
			d.Limit = LimitPace
		default:
			r.started = s.Now
			d.Target, d.Reason = d.Target+1, Saturated
		}
	}
	if s.IdleTripped > 0 && s.Workers > s.Min && passed(s.Now, r.stopped, r.set.StopInterval) {
		r.stopped = s.Now
		if d.Target, d.Reason = d.Target-1, Idle; d.Target == s.Workers {
			d.Reason = ""
		}
	}
	return d
}
