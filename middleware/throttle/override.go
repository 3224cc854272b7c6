package throttle

import (
	"time"

	"github.com/longshore-go/longshore"
)

// The layers over what the program configured, the stronger ones later.
const (
	layerFleet = iota
	layerOperator
	layerCount
)

// Override is a change by an operator that lies over what the program configured
// and over the fleet's value, for a time or until it is cleared.
type Override struct {
	// Permits, Rate and Burst; nil: not touched. Negative means 0 here too.
	Permits *int     `json:"permits,omitempty"`
	Rate    *float64 `json:"rate,omitempty"`
	Burst   *int     `json:"burst,omitempty"`
	// Until is when it ends. Zero: when it is cleared.
	Until time.Time `json:"until,omitzero"`
	// At is when it began; zero: now.
	At time.Time `json:"at,omitzero"`
	// By and Reason are for people.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

type layer struct {
	o     *Override
	timer *time.Timer
}

// over lays what the layer says over the limits.
func (y *layer) over(m *Limits) {
	if y.o == nil {
		return
	}
	if y.o.Permits != nil {
		m.Permits = max(*y.o.Permits, 0)
	}
	if y.o.Rate != nil {
		m.Rate = sane(*y.o.Rate)
	}
	if y.o.Burst != nil {
		m.Burst = max(*y.o.Burst, 0)
	}
}

// Override puts o in the place of the operator's override that is in force. What o
// does not touch falls back to the fleet's or the configured value.
func (l *Limiter) Override(o Override) { l.setLayer(layerOperator, o.copy()) }

// ClearOverride ends the operator's override.
func (l *Limiter) ClearOverride() { l.setLayer(layerOperator, nil) }

func (l *Limiter) setLayer(i int, o *Override) {
	l.mu.Lock()
	y := &l.layers[i]
	if y.timer != nil {
		y.timer.Stop()
		y.timer = nil
	}
	if o != nil && o.At.IsZero() && y.o != nil && same(y.o, o) {
		o.At = y.o.At // said once more
	}
	if o != nil && o.At.IsZero() {
		o.At = time.Now()
	}
	y.o = o
	if o != nil && !o.Until.IsZero() && i != layerFleet { // a fleet looks after its own, to come back gently
		y.timer = time.AfterFunc(time.Until(o.Until), func() { l.expire(i, o) })
	}
	l.apply()
}

// expire ends an override, if it is still that one.
func (l *Limiter) expire(i int, o *Override) {
	l.mu.Lock()
	if l.layers[i].o == o {
		l.layers[i] = layer{}
	}
	l.apply()
}

// State is what a limiter does now.
type State struct {
	Limits            // in force
	InUse      int    `json:"in_use"`
	Waiting    int    `json:"waiting"` // in Acquire
	Configured Limits `json:"configured"`
	// Fleet and Operator are the overrides in force; nil: none.
	Fleet    *Override `json:"fleet,omitempty"`
	Operator *Override `json:"operator,omitempty"`
}

// State returns a snapshot. After permits were taken away InUse may be more than
// Permits until what runs has ended.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{Limits: l.now, InUse: l.inUse, Waiting: len(l.queue), Configured: l.base,
		Fleet: l.layers[layerFleet].o.copy(), Operator: l.layers[layerOperator].o.copy()}
}

// Intervention is the strongest override in force; it implements longshore.Intervened.
func (l *Limiter) Intervention() (longshore.Intervention, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := layerCount - 1; i >= 0; i-- {
		if o := l.layers[i].o; o != nil {
			return longshore.Intervention{By: o.By, Reason: o.Reason, Since: o.At, Until: o.Until, Fleet: i == layerFleet}, true
		}
	}
	return longshore.Intervention{}, false
}

func (o *Override) copy() *Override {
	if o == nil {
		return nil
	}
	c := *o
	c.Permits, c.Rate, c.Burst = clone(o.Permits), clone(o.Rate), clone(o.Burst)
	return &c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
