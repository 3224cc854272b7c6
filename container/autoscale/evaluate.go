package autoscale

import (
	"math"
	"time"
)

const (
	good      = 0.7 // an added worker is to bring this much of its share
	sigma     = 2   // standard errors of doubt in its favour
	judgeMax  = 5 * time.Second
	judgeLong = 30 * time.Second
	unused    = 1.05 // a growth below this factor of concurrency was not used
	lost      = 0.5  // a removed worker that took less of its share was not needed
	probed    = 0.3  // an added worker of a probe brought at least this
	probedLow = 0.4
	nothing   = 0.2 // an added worker that brought less brought nothing
	failRise  = 0.1

	leastRef    = 3
	leastSpread = 0.04
)

type kind uint8

const (
	grow kind = iota
	confirm
	probeUp
	probeDown
)

// step is a move of the target that is being judged.
type step struct {
	kind kind      // why it was made
	from int       // the target before
	at   time.Time // when it was made
	ref  sums      // of the level before
}

// open begins an experiment. If nothing is known of the level before, there is
// nothing to compare with.
func (a *adaptive) open(k kind, s Sample) {
	ref := a.level.recent()
	if k == confirm {
		ref = a.level.sum
	}
	if a.step = nil; ref.execs >= leastRef && ref.busy > 0 {
		a.step = &step{kind: k, from: s.Workers, at: s.Now, ref: ref}
	}
}

// effect is what a step changed.
type effect struct {
	used  float64 // concurrency after / before
	ratio float64 // throughput after / before, by Little: concurrency / latency
	share float64 // of its fair share that each added (removed) worker brought (took)
	doubt float64 // standard error of share
}

// compare measures what an open step changed.
//
// Latency is what tells, since arrivals do not touch it. Calls longer than a tick
// began before the step, or while its effect built up, for a long time: there,
// with all workers busy on both sides, what ended is counted instead.
func (st *step) compare(s Sample, after sums) effect {
	before := st.ref
	g := (after.busy / after.dt) / (before.busy / before.dt)
	spread := before.variance()
	if before.execs < convict { // too few to know their own spread
		spread = max(spread, after.variance(), leastSpread)
	}
	r := g * math.Exp(before.perMessage()-after.perMessage())
	rel := spread/before.execs + after.variance()/after.execs // squared, of r
	if before.little() > s.Dt.Seconds() && before.dt >= before.little() && before.fills(st.from) && after.fills(s.Workers) {
		r = (after.completed / after.dt) / (before.completed / before.dt)
		rel = before.countError(spread) + after.countError(max(after.variance(), leastSpread))
	}
	kept, se := r/g, math.Sqrt(rel)
	e := effect{used: g, ratio: r}
	switch d := g - 1; {
	case g > 2: // several steps in one: all but the last doubling is taken to have been worth it
		e.share, e.doubt = 2*kept-1, 2*kept*se
	case math.Abs(d) < 1e-6:
		e.share, e.doubt = 1, math.Inf(1)
	default:
		e.share, e.doubt = (r-1)/d, math.Abs(r*se/d)
	}
	return e
}

// judge decides an open step, or waits for more evidence. Accepting one leaves the
// target to the load, in the same tick.
func (a *adaptive) judge(s Sample) (d Decision, last bool) {
	st, after := a.step, a.level.sum
	patience := max(judgeMax, min(judgeLong, seconds(10*a.meter.latency())))
	if st.kind == probeUp || st.kind == probeDown {
		patience *= 2
	}
	late := s.Now.Sub(st.at) > patience
	d = Decision{Target: s.Workers, Limit: LimitJudging}
	switch {
	case after.execs < evidence && !late:
		return d, true
	case !late && st.ref.little() > s.Dt.Seconds() && after.dt < min(st.ref.little(), 5): // they end in clumps
		return d, true
	case after.execs < 2 || after.busy <= 0:
		a.step = nil
		return d, false
	}
	e := st.compare(s, after)
	switch st.kind {
	case grow:
		d = a.judgeGrowth(s, e, after, late)
	case confirm:
		d = a.judgeConfirm(s, e, after, late)
	case probeUp:
		d = a.judgeProbeUp(s, e, after, late)
	default:
		d = a.judgeProbeDown(s, e, after, late)
	}
	return d, a.step != nil || d.Target != s.Workers || a.knee.at > 0
}

// accept ends the experiment: the target stays where it is.
func (a *adaptive) accept(s Sample) Decision {
	a.step = nil
	return Decision{Target: s.Workers}
}

func (a *adaptive) judgeGrowth(s Sample, e effect, after sums, late bool) Decision {
	st := a.step
	certain := st.ref.execs >= convict && after.execs >= convict
	obvious := after.execs >= convict && e.share+2*sigma*e.doubt < good
	doubt := e.doubt
	if st.ref.execs < evidence { // those that ended first are the short ones
		doubt *= 2 * sigma
	}
	switch {
	case certain && after.failure() >= st.ref.failure()+failRise:
		a.knee.set(s.Now, max(st.from, s.Min), after)
		a.step = nil
		return Decision{Target: a.knee.at, Reason: Failing, Limit: LimitKnee}
	case e.used < unused:
		return a.accept(s)
	case e.share >= good:
		a.proven = s.Workers
		return a.accept(s)
	case certain && e.share+sigma*e.doubt < good, obvious, late && e.share+doubt < good:
		return a.convicted(s, e, after)
	case late:
		return a.accept(s)
	}
	return Decision{Target: s.Workers, Limit: LimitJudging}
}

// convicted goes back to where the growth stopped to help, and checks that nothing
// is lost by it: the world may have changed in between.
func (a *adaptive) convicted(s Sample, e effect, after sums) Decision {
	at := int(math.Round(float64(a.step.from) * e.ratio))
	at = max(min(at, s.Workers), a.step.from, s.Min)
	a.knee.set(s.Now, at, after)
	if e.share < nothing && at > a.proven { // it may be far below
		a.knee.suspect(s.Now, at)
	}
	if at >= s.Workers {
		a.step = nil
		return Decision{Target: s.Workers, Limit: LimitKnee}
	}
	a.open(confirm, s)
	return Decision{Target: at, Reason: KneeFound, Limit: LimitKnee}
}

func (a *adaptive) judgeConfirm(s Sample, e effect, after sums, late bool) Decision {
	switch {
	case e.share-e.doubt > lost, late && e.share > lost:
		back := a.step.from
		a.knee, a.step = knee{}, nil
		return Decision{Target: back, Reason: KneeFalse}
	case e.share+e.doubt < lost, late:
		a.knee.stands(s.Now, after)
		a.step = nil
	}
	return Decision{Target: s.Workers, Limit: LimitKnee}
}

func (a *adaptive) judgeProbeUp(s Sample, e effect, after sums, late bool) Decision {
	certain := a.step.ref.execs >= convict && after.execs >= convict
	switch {
	case e.used >= unused && e.share >= good && e.share-e.doubt > probed:
		a.knee = knee{}
		return a.accept(s)
	case certain && e.share+sigma*e.doubt < good, late:
		return a.probeBack(s, after)
	}
	return Decision{Target: s.Workers, Limit: LimitKnee}
}

func (a *adaptive) judgeProbeDown(s Sample, e effect, after sums, late bool) Decision {
	switch {
	case e.share+e.doubt < lost, late && e.share < probedLow:
		a.knee.lower(s.Now, s.Workers, after)
		a.step = nil
		return Decision{Target: s.Workers, Limit: LimitKnee}
	case e.share-e.doubt > probedLow, late:
		return a.probeBack(s, after)
	}
	return Decision{Target: s.Workers, Limit: LimitKnee}
}

func (a *adaptive) probeBack(s Sample, after sums) Decision {
	back := a.step.from
	a.step = nil
	a.knee.held(s.Now, after)
	return Decision{Target: back, Reason: ProbeBack, Limit: LimitKnee}
}
