package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/longshore-go/longshore"
)

// InForce is a fleet's state about the permits of a container.
type InForce struct {
	Permits int `json:"permits"`
	// Share says whether each instance has that many or all have them together.
	Share Share `json:"share"`
	// Configured says that the fleet has no directive: Permits are those that this
	// instance is configured with.
	Configured bool `json:"configured,omitempty"`
}

// String returns for example "total 12" or "4 each".
func (s InForce) String() string {
	if s.Share == Total {
		return fmt.Sprintf("total %d", s.Permits)
	}
	return fmt.Sprintf("%d each", s.Permits)
}

// IssueAdd issues by how many permits more, or fewer, than are in force for d.Target:
// the new number is worked out here from the state in force, and only that number is
// sent, so a message that is lost or repeated does no harm. A total stays a total and a
// number for each instance one for each. Permits of d must be nil; Share must be empty or
// that of the state in force. The rate and the burst of the directive that is replaced are kept,
// and its end where d has none.
//
// Errors: those of [Fleet.Issue]; CodeState if the state in force is not known, or is no
// limit.
func (f *Fleet) IssueAdd(ctx context.Context, d Directive, add int) (Issued, error) {
	wrong := func(code longshore.Code, err error, hint string) (Issued, error) {
		return Issued{}, &longshore.Error{Code: code, Op: "add permits on the fleet", Err: err, Hint: hint}
	}
	if d.Permits != nil || d.Unset {
		return wrong(longshore.CodeConfig, errors.New("permits are given as well"), "give one of them")
	}
	f.linkMu.Lock()
	connected := f.connected
	f.linkMu.Unlock()
	d.Target = d.Target.normal()
	f.mu.Lock()
	known := f.book.settled && connected
	before, replaced, err := f.inForce(d.Target, f.now())
	f.mu.Unlock()
	switch {
	case !known:
		return wrong(longshore.CodeState, errors.New("the limits in force on the fleet are unknown: the control topic is not read, or not yet to its end"),
			"try again in a moment, or set the number with permits")
	case err != nil:
		return wrong(longshore.CodeState, err, "set the number with permits")
	case d.Share != "" && d.Share != before.Share:
		return wrong(longshore.CodeConfig, fmt.Errorf("in force is %s, not share %q", before, d.Share), "leave share out, or set the number with permits")
	}
	after := before
	after.Permits, after.Configured = plus(before.Permits, add), false
	d.Permits, d.Share = &after.Permits, after.Share
	if replaced != nil {
		keep(&d, replaced)
	}
	res, err := f.Issue(ctx, d)
	if err == nil {
		res.Before, res.After = &before, &after
	}
	return res, err
}

// plus adds without going below 0 or over the end of the numbers.
func plus(n, add int) int {
	if add > 0 && n > math.MaxInt-add {
		return math.MaxInt
	}
	return max(n+add, 0)
}

// keep leaves what an addition does not speak of as the replaced directive has it.
func keep(d *Directive, was *entry) {
	if d.Rate == nil {
		d.Rate = clone(was.d.Rate)
	}
	if d.Burst == nil {
		d.Burst = clone(was.d.Burst)
	}
	if d.ExpiresAt.IsZero() {
		d.ExpiresAt = was.until
	}
}

// inForce is the state that the permits of a target have now, and the directive for the
// very same target. The caller holds mu.
func (c *control) inForce(t Target, now time.Time) (InForce, *entry, error) {
	replaced := c.book.last[t.key(c.cfg.Scope)]
	if replaced != nil && !replaced.live(now) {
		replaced = nil
	}
	var best *entry
	for _, e := range c.book.last {
		wider := e.d.Target.fits(t.Container, t.Instance) && (e.d.Target.Container == "" || t.Container != "") && (e.d.Target.Instance == "" || t.Instance != "")
		if e.live(now) && e.d.Permits != nil && wider && (best == nil || e.d.Target.rank() > best.d.Target.rank()) {
			best = e
		}
	}
	if best != nil {
		s := InForce{Permits: *best.d.Permits, Share: Each}
		if best.d.Share == Total {
			s.Share = Total
		}
		if s.Share == Total && t.Instance != "" {
			return s, replaced, errors.New("the instance shares a total with the others")
		}
		return s, replaced, nil
	}
	o := c.limits[t.Container]
	if o == nil {
		return InForce{}, replaced, fmt.Errorf("nothing is in force on the fleet, and this instance has no limit of container %.64q", t.Container)
	}
	configured := o.l.State().Configured.Permits
	if configured < 0 {
		return InForce{}, replaced, errors.New("no limit is set, so there is nothing to add to")
	}
	return InForce{Permits: configured, Share: Each, Configured: true}, replaced, nil
}
