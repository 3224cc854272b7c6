package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/internal/logs"
)

// control obeys control messages, wherever they come from.
type control struct {
	cfg  FleetConfig
	ring keyring
	now  func() time.Time

	mu      sync.Mutex
	book    book
	limits  map[string]*obeying
	applied time.Time // when something was last obeyed
	counts  map[string]int64
	quiet   map[string]*hush // by kind of refusal
	away    logs.Alarm       // the control topic or address is not read
	changed chan struct{}    // wakes whoever waits for the next moment

	// outdated hears of targets for which an instance has said what is older than what is
	// obeyed here; nil: no observer.
	outdated func(key string)
}

// obeying is a limiter under control.
type obeying struct {
	l         *Limiter
	want      *Override
	ramp      *ramp
	sum       Limits // what the last want makes of it
	undivided bool
}

// hush keeps a flood of refusals out of the log.
type hush struct {
	last  time.Time
	count int
}

const hushFor = 10 * time.Second

func newControl(cfg FleetConfig) *control {
	return &control{cfg: cfg, ring: cfg.Keys, now: time.Now, limits: map[string]*obeying{}, counts: map[string]int64{},
		quiet: map[string]*hush{}, changed: make(chan struct{}, 1),
		book: book{scope: cfg.Scope, instance: cfg.Instance, last: map[string]*entry{}, members: map[string]*peer{},
			bounds: bounds{cfg.MinPermits, cfg.MaxPermits, cfg.MaxRate}}}
}

// Add puts a limiter under the fleet's control, under the name of its container. It
// may be called at any time; a limiter of that name that was there before is left
// as it is configured.
func (c *control) Add(container string, l *Limiter) {
	c.mu.Lock()
	was := c.limits[container]
	c.limits[container] = &obeying{l: l, sum: l.State().Configured}
	events := c.refresh(c.now())
	c.mu.Unlock()
	if was != nil && was.l != l {
		was.l.setLayer(layerFleet, nil)
	}
	c.wake()
	c.tell(events)
}

func (c *control) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// read obeys one control message, or says why not. live is one that was said after we
// came. fresh is a directive that was not known before.
func (c *control) read(ctx context.Context, raw []byte, live bool) (d *Directive, fresh bool) {
	d, err := parse(raw)
	switch {
	case err != nil:
		c.refused(nil, refuse(refusedMalformed, "%v", err))
		return nil, false
	case d.Scope != c.cfg.Scope:
		return nil, false // another owner's
	}
	if err := c.ring.verify(ctx, d); err != nil {
		c.refused(d, refuse(refusedSignature, "%v", err))
		return nil, false
	}
	now := c.now()
	c.mu.Lock()
	if d.Member != nil {
		heard, joined, err := c.book.meet(d, now, live)
		if heard {
			c.book.announced(d.Member, now)
		}
		events := c.refresh(now)
		c.mu.Unlock()
		if err != nil {
			c.refused(d, err)
			return nil, false
		}
		if !heard {
			return nil, false
		}
		switch {
		case joined:
			events = append(events, FleetEvent{Kind: FleetJoined, Instance: d.Member.Instance})
		case d.Member.Leaving:
			events = append(events, FleetEvent{Kind: FleetLeft, Instance: d.Member.Instance, Reason: "it said so"})
		}
		c.tell(events)
		return d, joined
	}
	before := c.book.before(d, now)
	repeated, err := c.book.take(d, raw, now)
	if err == nil && !repeated {
		c.applied = now
	}
	events := c.refresh(now)
	c.mu.Unlock()
	switch {
	case err != nil:
		c.tell(events)
		c.refused(d, err)
		if live && c.outdated != nil && isStale(err) {
			c.outdated(d.Target.key(d.Scope))
		}
		return nil, false
	case !repeated:
		events = append(events, FleetEvent{Kind: FleetApplied, Directive: d, Before: before, Reason: d.Reason})
	}
	c.tell(events)
	return d, !repeated
}

// refresh lets every limiter follow the book. The caller holds mu and tells the
// events after it has given it up.
func (c *control) refresh(now time.Time) []FleetEvent {
	var events []FleetEvent
	for _, e := range c.book.last {
		if !e.told && !e.d.Unset && !e.live(now) {
			e.told = true
			events = append(events, FleetEvent{Kind: FleetExpired, Directive: e.d, Reason: "its time is over"})
		}
	}
	for name, o := range c.limits {
		want, undivided := c.book.wanted(name, now)
		if undivided && !o.undivided {
			events = append(events, FleetEvent{Kind: FleetUndivided, Reason: "who shares the total of " + name + " is not known yet; it is not obeyed"})
		}
		o.undivided = undivided
		o.follow(want, now)
	}
	return events
}

// follow moves the limiter to the wanted value: at once, or step by step where it
// rises steeply.
func (o *obeying) follow(want *Override, now time.Time) {
	goal := o.l.State().Configured
	(&layer{o: want}).over(&goal)
	if !same(want, o.want) {
		if goal != o.sum || o.ramp == nil {
			from := o.sum
			if o.ramp != nil {
				from, _ = o.ramp.at(now)
			}
			o.ramp = newRamp(from, goal, now)
		}
		o.want, o.sum = want, goal
	} else if o.ramp == nil {
		o.sum = goal
		return
	}
	if o.ramp == nil {
		o.l.setLayer(layerFleet, want)
		return
	}
	m, next := o.ramp.at(now)
	if next.IsZero() {
		o.ramp = nil
		o.l.setLayer(layerFleet, want)
		return
	}
	step := &Override{}
	if want != nil {
		step = want.copy()
	}
	if m.Permits >= 0 {
		step.Permits = &m.Permits
	}
	if m.Rate >= 0 {
		step.Rate = &m.Rate
	}
	o.l.setLayer(layerFleet, step)
}

func same(a, b *Override) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equal(a.Permits, b.Permits) && equal(a.Rate, b.Rate) && equal(a.Burst, b.Burst) &&
		a.Until.Equal(b.Until) && a.By == b.By && a.Reason == b.Reason
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// next is when refresh has something to do again; zero: not by itself.
func (c *control) next(now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.book.next(now)
	for _, o := range c.limits {
		if o.ramp == nil {
			continue
		}
		if _, t := o.ramp.at(now); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}

// pass is called at the moments that next names.
func (c *control) pass() {
	c.mu.Lock()
	now := c.now()
	events := c.refresh(now)
	for _, id := range c.book.lapsed(now) {
		events = append(events, FleetEvent{Kind: FleetLeft, Instance: id, Reason: "it was not heard of any more"})
	}
	c.mu.Unlock()
	c.tell(events)
}

func isStale(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.kind == refusedStale
}

func (c *control) refused(d *Directive, err error) {
	e := FleetEvent{Kind: FleetRefused, Reason: err.Error(), Directive: d}
	var r *refusal
	if errors.As(err, &r) {
		e.Refused = r.kind
	}
	c.tell([]FleetEvent{e})
}

// tell hands events on; the caller does not hold mu.
func (c *control) tell(events []FleetEvent) {
	for _, e := range events {
		e.Time = c.now()
		c.log(e)
		if c.cfg.OnEvent != nil {
			c.cfg.OnEvent(e)
		}
	}
}

func (c *control) log(e FleetEvent) {
	c.mu.Lock()
	key := string(e.Kind)
	if e.Refused != "" {
		key = e.Refused
	}
	c.counts[key]++
	h := c.quiet[key]
	if h == nil {
		h = &hush{}
		c.quiet[key] = h
	}
	h.count++
	if e.Kind == FleetRefused && e.Time.Sub(h.last) < hushFor {
		c.mu.Unlock()
		return
	}
	stands := h.count
	h.count, h.last = 0, e.Time
	c.mu.Unlock()
	fields := []zap.Field{zap.String("scope", c.cfg.Scope), zap.String("reason", e.Reason)}
	if d := e.Directive; d != nil {
		fields = append(fields, zap.String("directive_id", cut(d.ID)), zap.Int64("seq", d.Seq), zap.String("by", cut(d.Issuer)), zap.String("target", cut(d.Target.key(d.Scope))))
		fields = append(fields, e.span()...)
		if !d.ExpiresAt.IsZero() {
			fields = append(fields, zap.Time("until", d.ExpiresAt))
		}
	}
	if e.Instance != "" {
		fields = append(fields, zap.String("instance", cut(e.Instance)))
	}
	switch e.Kind {
	case FleetRefused:
		c.cfg.Logger.Warn("throttle control message ignored", append(fields, zap.String("refused", e.Refused), logs.Repeated(stands))...)
	case FleetLost:
		if stands, due := c.away.Raise(e.Time); due {
			c.cfg.Logger.Warn("throttle control lost", append(fields, logs.Repeated(stands))...)
		}
	case FleetConnected:
		if ended, due := c.away.Over(e.Time); due {
			c.cfg.Logger.Warn("throttle control works again", append(fields, ended...)...)
			return
		}
		c.cfg.Logger.Info("throttle control", append(fields, zap.String("kind", string(e.Kind)))...)
	case FleetApplied, FleetExpired:
		c.cfg.Logger.Info("throttle changed", append(fields, zap.String("kind", string(e.Kind)))...)
	default:
		c.cfg.Logger.Info("throttle control", append(fields, zap.String("kind", string(e.Kind)))...)
	}
}

// span is the former state for the target, and what is.
func (e *FleetEvent) span() []zap.Field {
	switch e.Kind {
	case FleetApplied:
		return []zap.Field{zap.String("from", asked(e.Before)), zap.String("to", asked(e.Directive))}
	case FleetExpired:
		return []zap.Field{zap.String("from", asked(e.Directive)), zap.String("to", asked(nil))}
	}
	return []zap.Field{zap.String("to", asked(e.Directive))}
}

// asked is what a directive says, in one word or two.
func asked(d *Directive) string {
	if d == nil || d.Unset {
		return "configured"
	}
	var parts []string
	if d.Permits != nil {
		parts = append(parts, fmt.Sprintf("permits %d", *d.Permits))
	}
	if d.Rate != nil {
		parts = append(parts, fmt.Sprintf("rate %g", *d.Rate))
	}
	return strings.Join(parts, ", ")
}

// cut keeps foreign text in the log short.
func cut(s string) string { return s[:min(len(s), 64)] }
