package scalesim

import (
	"time"

	"github.com/longshore-go/longshore/container/autoscale"
)

// spring is the rule of SimpleMessageListenerContainer as it is: every unit that
// came within the receive timeout is active, work goes round, and whoever trips
// leaves.
type spring struct{}

func (spring) Check() error { return nil }

func (spring) Cycles() autoscale.Cycles {
	return autoscale.Cycles{Active: 10, Idle: 10, Wait: time.Second}
}

func (spring) New() autoscale.Scaler { return &springState{} }

type springState struct{ started, stopped time.Time }

func (p *springState) Next(s autoscale.Sample) autoscale.Decision {
	switch {
	case s.ActiveTripped > 0 && s.Workers < s.Max && (p.started.IsZero() || s.Now.Sub(p.started) > 10*time.Second):
		p.started = s.Now
		return autoscale.Decision{Target: s.Workers + 1, Reason: "active"}
	case s.IdleTripped > 0 && s.Workers > s.Min && (p.stopped.IsZero() || s.Now.Sub(p.stopped) > 60*time.Second):
		p.stopped = s.Now
		return autoscale.Decision{Target: s.Workers - 1, Reason: "idle"}
	}
	return autoscale.Decision{Target: s.Workers}
}
