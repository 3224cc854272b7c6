package throttle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-go/longshore"
)

// Issued is what became of a directive.
type Issued struct {
	ID  string `json:"id"`
	Seq int64  `json:"seq"`
	// Obeyed and Missing are the instances that said that it is in force there, and
	// those that live and have not said so.
	Obeyed  []string `json:"obeyed,omitempty"`
	Missing []string `json:"missing,omitempty"`
	// Until is when it ends; zero: never.
	Until time.Time     `json:"until,omitzero"`
	Took  time.Duration `json:"took"`
	// Before and After are, of [Fleet.IssueAdd], the former state and what is.
	Before *InForce `json:"before,omitempty"`
	After  *InForce `json:"after,omitempty"`
}

// Issue publishes a directive to the fleet. Version, Scope, Seq, ID and IssuedAt are
// filled in, ExpiresAt too where everything is held and none is given: 15 min. It
// returns when the broker has confirmed it and all live instances have said that
// they obey, or when ctx ends: then Missing names the others. With ListenOnly it
// does not wait.
//
// Errors: CodeConfig for what no instance would obey, CodeState if the fleet was
// not started, or the publisher's.
func (f *Fleet) Issue(ctx context.Context, d Directive) (Issued, error) {
	f.runMu.Lock()
	running := f.cancel != nil
	f.runMu.Unlock()
	if !running {
		return Issued{}, &longshore.Error{Code: longshore.CodeState, Op: "issue a throttle", Err: errors.New("the fleet's control is not started"), Hint: "call Start first"}
	}
	began := f.now()
	raw, err := f.prepare(ctx, &d, began)
	if err != nil {
		return Issued{}, err
	}
	f.linkMu.Lock()
	f.acks[d.ID] = map[string]bool{}
	f.linkMu.Unlock()
	defer func() {
		f.linkMu.Lock()
		delete(f.acks, d.ID)
		f.linkMu.Unlock()
	}()
	key := d.Target.key(d.Scope)
	if err := f.out.publish(ctx, key, raw); err != nil {
		return Issued{}, fmt.Errorf("issue a throttle: %w", err)
	}
	f.mu.Lock()
	f.issued[key] = &entry{d: &d, raw: raw, until: d.until()}
	f.mu.Unlock()
	res := Issued{ID: d.ID, Seq: d.Seq, Until: d.until()}
	f.collect(ctx, &d, &res)
	res.Took = f.now().Sub(began)
	return res, nil
}

// prepare completes, checks and signs a directive.
func (f *Fleet) prepare(ctx context.Context, d *Directive, now time.Time) ([]byte, error) {
	wrong := func(err error) error {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "issue a throttle", Err: err, Hint: "see the fields of throttle.Directive"}
	}
	d.Version, d.Scope, d.Member = version, f.cfg.Scope, nil
	d.Target = d.Target.normal()
	d.ID, d.IssuedAt, d.Seq = newID(), now, now.UnixMilli()
	if d.Unset {
		d.Permits, d.Rate, d.Burst, d.Share = nil, nil, nil, ""
	}
	if d.ExpiresAt.IsZero() && d.holds() {
		d.ExpiresAt = now.Add(holdFor)
	}
	if !d.ExpiresAt.IsZero() && !d.ExpiresAt.After(now) {
		return nil, wrong(errors.New("it ends before it begins"))
	}
	if d.Share == Total && f.cfg.ListenOnly {
		return nil, wrong(errors.New("a total cannot be divided where instances do not say that they live (ListenOnly)"))
	}
	f.mu.Lock()
	if was := f.book.last[d.Target.key(d.Scope)]; was != nil && was.d.Seq >= d.Seq {
		d.Seq = was.d.Seq + 1
	}
	err := f.book.check(d, now)
	f.mu.Unlock()
	if err != nil {
		return nil, wrong(err)
	}
	raw, err := f.seal(ctx, d)
	if err != nil {
		return nil, wrong(err)
	}
	if len(raw) > maxDirective {
		return nil, wrong(fmt.Errorf("it has %d bytes, at most %d are read", len(raw), maxDirective))
	}
	return raw, nil
}

// collect waits until all who live have said that they obey.
func (f *Fleet) collect(ctx context.Context, d *Directive, res *Issued) {
	if f.cfg.ListenOnly {
		return
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		f.mu.Lock()
		all := f.book.live(d.Target.Container, f.now())
		f.mu.Unlock()
		if i := d.Target.Instance; i != "" {
			all = slices.DeleteFunc(all, func(id string) bool { return id != i })
		}
		f.linkMu.Lock()
		res.Obeyed, res.Missing = nil, nil
		for _, id := range all {
			if f.acks[d.ID][id] {
				res.Obeyed = append(res.Obeyed, id)
			} else {
				res.Missing = append(res.Missing, id)
			}
		}
		f.linkMu.Unlock()
		if len(res.Missing) == 0 && len(res.Obeyed) > 0 {
			return
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// repeat publishes again what was issued here and is still in force, for those who
// joined a topic that keeps nothing.
func (f *Fleet) repeat(ctx context.Context) {
	now := f.now()
	var tell []*entry
	f.mu.Lock()
	for key, e := range f.issued {
		current := f.book.last[key]
		ended := !e.d.Unset && !e.live(now) // it ends by itself everywhere; what was cleared does not
		if ended || current != nil && current.d.ID != e.d.ID {
			delete(f.issued, key)
			continue
		}
		tell = append(tell, e)
	}
	f.mu.Unlock()
	for _, e := range tell {
		f.announce(ctx, e)
	}
}

// FleetStatus is how the control of a fleet stands.
type FleetStatus struct {
	Scope    string `json:"scope"`
	Instance string `json:"instance"`
	// Connected says whether the control topic is read, Since when it is so or not,
	// Error why not.
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"`
	Error     string    `json:"error,omitempty"`
	// Instances live. Complete says whether all have had the time to say so.
	Instances []string `json:"instances,omitempty"`
	Complete  bool     `json:"complete"`
	// InForce are the directives that have not ended. Applied is when one was last
	// obeyed here.
	InForce []Directive `json:"in_force,omitempty"`
	Applied time.Time   `json:"applied,omitzero"`
	// Counts are of events and, by kind, of refusals.
	Counts map[string]int64 `json:"counts,omitempty"`
}

// Status returns a snapshot. A fleet that is not connected is degraded, not failed.
func (f *Fleet) Status() FleetStatus {
	st := f.control.status()
	f.linkMu.Lock()
	defer f.linkMu.Unlock()
	st.Connected, st.Since = f.connected, f.since
	if f.lastErr != nil {
		st.Error = f.lastErr.Error()
	}
	return st
}

func (c *control) status() FleetStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	st := FleetStatus{Scope: c.cfg.Scope, Instance: c.cfg.Instance, Instances: c.book.live("", now), Complete: c.book.known,
		Applied: c.applied, Counts: map[string]int64{}}
	for _, e := range c.book.last {
		if e.live(now) {
			st.InForce = append(st.InForce, *e.d)
		}
	}
	slices.SortFunc(st.InForce, func(a, b Directive) int { return int(b.Seq - a.Seq) })
	for k, n := range c.counts {
		st.Counts[k] = n
	}
	return st
}
