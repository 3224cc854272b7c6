package throttle

import (
	"fmt"
	"slices"
	"time"
)

// book is what an instance knows of its fleet: the last directive for each target,
// and who is there. It reads no clock and does no I/O.
type book struct {
	scope, instance string
	bounds          bounds
	last            map[string]*entry
	members         map[string]*peer
	known           bool                 // all live members have had the time to say so
	settled         bool                 // what is read from now on was said now, and is not from before
	left            map[string]time.Time // by ID, when an announced directive ends by our clock
	frozen          time.Time            // since when no instance can be heard; zero: everybody can
}

// bounds are what an instance is willing to obey.
type bounds struct {
	minPermits, maxPermits int
	maxRate                float64
}

type entry struct {
	d     *Directive
	raw   []byte    // as it was received
	until time.Time // zero: for ever
	told  bool      // its end was reported
	guess bool      // until is the issuer's clock: nothing better was known
}

type peer struct {
	seen, issued time.Time
	containers   []string
	told         bool // that it went
}

const (
	maxTargets   = 1000
	memberEvery  = 10 * time.Second
	memberLapsed = 35 * time.Second // three are missing
)

// refusal is why a control message is not obeyed.
type refusal struct {
	kind string // for counting
	text string
}

func (r *refusal) Error() string { return r.text }

func refuse(kind, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}

// The kinds of refusals.
const (
	refusedMalformed = "malformed"
	refusedSignature = "signature"
	refusedFuture    = "future"
	refusedRange     = "out-of-range"
	refusedStale     = "stale"
	refusedExpired   = "expired"
	refusedFull      = "full"
)

// take judges a directive that is for this fleet and properly signed. repeated says
// that it is in the book already.
func (b *book) take(d *Directive, raw []byte, now time.Time) (repeated bool, err error) {
	if err := b.check(d, now); err != nil {
		return false, err
	}
	key := d.Target.key(b.scope)
	was := b.last[key]
	defer delete(b.left, d.ID)
	if was != nil {
		switch {
		case d.Seq == was.d.Seq && d.ID == was.d.ID:
			was.learn(b, now)
			return true, nil
		case d.Seq < was.d.Seq || d.Seq == was.d.Seq && d.ID < was.d.ID:
			return false, refuse(refusedStale, "sequence %d comes after %d was obeyed: repeated or out of order", d.Seq, was.d.Seq)
		}
	}
	if was == nil && len(b.last) >= maxTargets && !b.forget(now) {
		return false, refuse(refusedFull, "there are directives for %d targets already", len(b.last))
	}
	e := &entry{d: d, raw: raw}
	e.until, e.guess = b.end(d, now)
	b.last[key] = e
	if !e.live(now) && !d.Unset {
		e.told = true
		if !b.settled {
			return true, nil // of yesterday; it is kept so that no earlier one is obeyed
		}
		return false, refuse(refusedExpired, "it expired at %s", e.until.UTC().Format(time.RFC3339))
	}
	return false, nil
}

// end is when a directive ends by our own clock. What is said now ends after the time
// between the issuer's two readings, whatever our clocks show. What was said before we
// came is announced with what is left of it; without that word the issuer's time has to do.
func (b *book) end(d *Directive, now time.Time) (until time.Time, guess bool) {
	until = d.until()
	if until.IsZero() {
		return until, false
	}
	whole := now.Add(until.Sub(d.IssuedAt))
	if told, ok := b.left[d.ID]; ok {
		return earlier(told, whole), false
	}
	if b.settled {
		return whole, false
	}
	return earlier(until, whole), true
}

// learn replaces a guess by what another instance says is left.
func (e *entry) learn(b *book, now time.Time) {
	if _, told := b.left[e.d.ID]; told && e.guess {
		e.until, e.guess = b.end(e.d, now)
		e.told = !e.live(now)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// announced notes the rest of a directive that comes next.
func (b *book) announced(m *Member, now time.Time) {
	if m.InForce == "" || m.Left <= 0 {
		return
	}
	if b.left == nil || len(b.left) >= maxTargets {
		b.left = map[string]time.Time{}
	}
	b.left[m.InForce] = now.Add(min(time.Duration(m.Left), holdMost/time.Millisecond*366) * time.Millisecond)
}

// before is the state in force for d's target; nil: the configured value.
func (b *book) before(d *Directive, now time.Time) *Directive {
	if was := b.last[d.Target.key(b.scope)]; was != nil && was.live(now) && !was.d.Unset {
		return was.d
	}
	return nil
}

// until is when the directive ends: what holds everything ends in any case, so
// that a control plane that is gone cannot hold a fleet for ever.
func (d *Directive) until() time.Time {
	if d.ExpiresAt.IsZero() && d.holds() {
		return d.IssuedAt.Add(holdFor)
	}
	return d.ExpiresAt
}

// check looks at a directive by itself.
func (b *book) check(d *Directive, now time.Time) error {
	ahead := d.IssuedAt.Sub(now)
	switch {
	case d.IssuedAt.IsZero() || d.Seq <= 0 || d.ID == "":
		return refuse(refusedMalformed, "seq, id or issued_at is missing")
	case d.Share != "" && d.Share != Each && d.Share != Total:
		return refuse(refusedMalformed, "share %.32q is not known here", d.Share)
	case d.Share == Total && d.Target.Instance != "":
		return refuse(refusedMalformed, "one instance cannot share a total")
	case !d.Unset && d.Permits == nil && d.Rate == nil && d.Burst == nil:
		return refuse(refusedMalformed, "it says nothing")
	case ahead > apart:
		return refuse(refusedFuture, "it was issued %v in the future; compare the clocks", ahead.Round(time.Millisecond))
	case d.Seq > now.UnixMilli()+seqAhead:
		return refuse(refusedFuture, "sequence %d lies in the future", d.Seq)
	}
	if err := b.bounds.check(d); err != nil {
		return err
	}
	if until := d.until(); d.holds() && until.Sub(d.IssuedAt) > holdMost+skew {
		return refuse(refusedRange, "it would hold everything for %v, at most %v is obeyed", until.Sub(d.IssuedAt).Round(time.Second), holdMost)
	}
	return nil
}

func (m bounds) check(d *Directive) error {
	if p := d.Permits; p != nil && (*p < 0 || *p > m.maxPermits) {
		return refuse(refusedRange, "%d permits, 0 to %d are obeyed", *p, m.maxPermits)
	}
	if r := d.Rate; r != nil && !(*r >= 0 && *r <= m.maxRate) {
		return refuse(refusedRange, "a rate of %v, 0 to %v is obeyed", *r, m.maxRate)
	}
	if n := d.Burst; n != nil && (*n < 0 || float64(*n) > m.maxRate) {
		return refuse(refusedRange, "a burst of %d, 0 to %v is obeyed", *n, m.maxRate)
	}
	return nil
}

func (e *entry) live(now time.Time) bool {
	return !e.d.Unset && (e.until.IsZero() || now.Before(e.until))
}

// forget makes room by dropping the oldest directive that has ended.
func (b *book) forget(now time.Time) bool {
	oldest := ""
	for key, e := range b.last {
		if !e.live(now) && (oldest == "" || e.d.Seq < b.last[oldest].d.Seq) {
			oldest = key
		}
	}
	delete(b.last, oldest)
	return oldest != ""
}

// wanted is what the fleet wants of a container's limiter; nil: nothing.
// undivided says that a total cannot be divided yet and is left out.
func (b *book) wanted(container string, now time.Time) (o *Override, undivided bool) {
	var fit []*entry
	for _, e := range b.last {
		if e.live(now) && e.d.Target.fits(container, b.instance) {
			fit = append(fit, e)
		}
	}
	slices.SortFunc(fit, func(x, y *entry) int { return y.d.Target.rank() - x.d.Target.rank() })
	for _, e := range fit {
		part, ok := b.share(e.d, container, now)
		if !ok {
			undivided = true
			continue
		}
		if o == nil {
			o = &Override{By: e.d.Issuer, Reason: e.d.Reason}
		}
		used := fill(&o.Permits, part.Permits)
		used = fill(&o.Rate, part.Rate) || used
		used = fill(&o.Burst, part.Burst) || used
		if used && !e.until.IsZero() && (o.Until.IsZero() || e.until.Before(o.Until)) {
			o.Until = e.until
		}
	}
	if o != nil && o.Permits != nil {
		*o.Permits = max(*o.Permits, b.bounds.minPermits)
	}
	return o, undivided
}

// fill takes the directives that are missing here.
func fill[T any](have **T, value *T) bool {
	if *have != nil || value == nil {
		return false
	}
	*have = clone(value)
	return true
}

// share is this instance's part of a directive.
func (b *book) share(d *Directive, container string, now time.Time) (Override, bool) {
	part := Override{Permits: d.Permits, Rate: d.Rate, Burst: d.Burst}
	if d.Share != Total {
		return part, true
	}
	if !b.known {
		return part, false
	}
	all := b.live(container, now)
	i, n := slices.Index(all, b.instance), len(all)
	if i < 0 {
		return part, false
	}
	if d.Permits != nil {
		own := *d.Permits / n
		if i < *d.Permits%n {
			own++
		}
		part.Permits = &own
	}
	if d.Rate != nil {
		own := *d.Rate / float64(n)
		part.Rate = &own
	}
	return part, true
}

// live names the instances that have such a container, sorted.
func (b *book) live(container string, now time.Time) []string {
	if !b.frozen.IsZero() {
		now = b.frozen // others come and go unnoticed: what was divided stays divided
	}
	var ids []string
	for id, p := range b.members {
		if now.Sub(p.seen) <= memberLapsed && (container == "" || slices.Contains(p.containers, container)) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// freeze keeps the members as they are while no instance can be heard.
func (b *book) freeze(now time.Time) {
	if b.frozen.IsZero() {
		b.frozen = now
	}
}

// thaw gives those who lived before time to say so again.
func (b *book) thaw(now time.Time) {
	if b.frozen.IsZero() {
		return
	}
	for _, p := range b.members {
		if b.frozen.Sub(p.seen) <= memberLapsed {
			p.seen = now
		}
	}
	b.frozen = time.Time{}
}

// meet notes what an instance says about itself. live is a word that was said after we
// came: then clocks do not matter. heard says that it is of now, fresh that the instance
// was not there before.
func (b *book) meet(d *Directive, now time.Time, live bool) (heard, fresh bool, err error) {
	m := d.Member
	ahead := d.IssuedAt.Sub(now)
	was := b.members[m.Instance]
	switch {
	case m.Instance == "" || d.IssuedAt.IsZero():
		return false, false, refuse(refusedMalformed, "instance or issued_at is missing")
	case ahead > apart:
		return false, false, refuse(refusedFuture, "instance %.64q speaks from %v in the future; compare the clocks", m.Instance, ahead.Round(time.Millisecond))
	case !live && (-ahead > memberLapsed || ahead > skew):
		return false, false, nil // of yesterday, from a topic that keeps, as far as can be told
	case was != nil && !d.IssuedAt.After(was.issued):
		return false, false, nil
	case was == nil && len(b.members) >= maxTargets:
		return false, false, refuse(refusedFull, "there are %d instances already", len(b.members))
	}
	fresh = !m.Leaving && (was == nil || now.Sub(was.seen) > memberLapsed)
	seen := now
	if m.Leaving {
		seen = now.Add(-2 * memberLapsed)
	}
	b.members[m.Instance] = &peer{seen: seen, issued: d.IssuedAt, containers: m.Containers, told: m.Leaving}
	return true, fresh, nil
}

// lapsed names the instances that were not heard of for too long, each once.
func (b *book) lapsed(now time.Time) []string {
	var ids []string
	for id, p := range b.members {
		if b.frozen.IsZero() && !p.told && now.Sub(p.seen) > memberLapsed {
			p.told = true
			ids = append(ids, id)
		}
	}
	return ids
}

// next is when something ends by itself; zero: nothing does.
func (b *book) next(now time.Time) time.Time {
	var first time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for _, e := range b.last {
		if e.live(now) {
			sooner(e.until)
		}
	}
	if !b.frozen.IsZero() {
		return first
	}
	for id, p := range b.members {
		if now.Sub(p.seen) > 3*memberLapsed {
			delete(b.members, id)
			continue
		}
		sooner(p.seen.Add(memberLapsed + time.Millisecond))
	}
	return first
}
