package share

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/longshore-go/longshore"
)

// ackRange is a run of offsets with one acknowledge type.
type ackRange struct {
	first, last int64 // offset, included
	kind        int8  // acknowledge type, as the protocol numbers it
}

// Parcel is what one request carries: verdicts, renewals and gaps, by partition. The broker
// carries out all of a partition or nothing of it.
type Parcel struct {
	session uint64             // it belongs to: a later one of the same broker must not answer for it
	sent    time.Time          // when; a renewed lock lasts at least from then
	renews  bool               // at least one lock is renewed, which only some requests may carry
	parts   map[Part]*contents // what it carries of each partition
}

// contents is a parcel's share of one partition.
type contents struct {
	verdicts, renewals []*Record  // records that are settled, and that stay held for longer
	gaps               []ackRange // acquired offsets without a record
}

// Empty reports whether there is nothing to carry.
func (p *Parcel) Empty() bool { return p == nil || len(p.parts) == 0 }

// Ready reports whether a session has something to send, and whether that includes a renewal.
func (l *Leases) Ready(session uint64) (some, renews bool) {
	o := l.sessions[session]
	if o == nil {
		return false, false
	}
	for _, p := range o.pending {
		some = some || len(p.gaps) > 0
		for r := range p.all {
			if some = true; r.renewal == renewalWanted {
				return true, true
			}
		}
	}
	return some, renews
}

// Take makes a parcel of what waits for a session, nil if nothing does. The next one can be
// taken after Answer has been called for each of its partitions, and Sent.
func (l *Leases) Take(session uint64, now time.Time) *Parcel {
	o := l.sessions[session]
	if o == nil || o.sending {
		return nil
	}
	p := &Parcel{session: session, sent: now, parts: map[Part]*contents{}}
	for part, waits := range o.pending {
		c := waits.take()
		p.parts[part] = c
		p.renews = p.renews || len(c.renewals) > 0
		if len(waits.again) == 0 && len(waits.records) == 0 {
			delete(o.pending, part)
		}
	}
	if p.Empty() {
		return nil
	}
	o.sending = true
	return p
}

// take moves what waits for one partition to a request.
func (p *pending) take() *contents {
	c := &contents{gaps: p.gaps}
	list := p.records
	if len(p.again) > 0 {
		list, p.again = p.again[0], p.again[1:]
	} else {
		p.records = nil
	}
	p.gaps = nil
	for _, r := range list {
		if r.state == stateSettled {
			r.set(stateSending)
			r.renewal = renewalNone
			c.verdicts = append(c.verdicts, r)
			continue
		}
		r.renewal, r.asked, r.waiting = renewalSent, append(r.asked, r.waiting...), nil
		c.renewals = append(c.renewals, r)
	}
	return c
}

// ranges are the contents as Kafka takes them: in the order of the offsets, each once.
func (c *contents) ranges() []ackRange {
	all := slices.Clone(c.gaps)
	for _, r := range c.verdicts {
		all = append(all, ackRange{r.Offset, r.Offset, int8(r.verdict)})
	}
	for _, r := range c.renewals {
		all = append(all, ackRange{r.Offset, r.Offset, renewType})
	}
	slices.SortFunc(all, func(a, b ackRange) int { return cmp.Compare(a.first, b.first) })
	out := all[:0]
	for _, a := range all {
		if n := len(out); n > 0 && out[n-1].last >= a.first-1 && out[n-1].kind == a.kind {
			out[n-1].last = max(out[n-1].last, a.last)
			continue
		}
		out = append(out, a)
	}
	return out
}

// kinds are what a parcel carries.
func (p *Parcel) kinds() (out []longshore.OperationKind) {
	add := func(k longshore.OperationKind) {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for _, c := range p.parts {
		for _, r := range c.verdicts {
			if r.verdict == Release {
				add(longshore.OperationNack)
			} else {
				add(longshore.OperationAck)
			}
		}
		if len(c.renewals) > 0 {
			add(longshore.OperationExtend)
		}
	}
	return out
}

// dropRenewals leaves the renewals out of a parcel: what it belongs to ends.
func (p *Parcel) dropRenewals() {
	if p == nil {
		return
	}
	p.renews = false
	for part, c := range p.parts {
		c.renewals = nil
		if len(c.verdicts) == 0 && len(c.gaps) == 0 {
			delete(p.parts, part)
		}
	}
}

// Answer takes the broker's answer about one partition of a parcel.
func (l *Leases) Answer(p *Parcel, part Part, err error, now time.Time) (out Outcome) {
	c, o := p.parts[part], l.sessions[p.session]
	if c == nil || o == nil {
		return out
	}
	delete(p.parts, part)
	switch effectOf(err) {
	case effectDone:
		l.confirmed(c, p.sent)
	case effectWrong:
		l.refused(o, part, c, err, &out)
	case effectAgain:
		out.Refused, out.Err = true, err
		l.requeue(o, part, c.all(), c.gaps, false)
	case effectGone:
		for _, r := range c.all() {
			r.renewal = renewalNone
			if l.byToken[r.Token] == r { // not one that has been settled and has ended meanwhile
				l.end(r, err, &out)
			}
		}
	}
	return out
}

// Sent says that a parcel's request is over: the partitions that the broker has not
// mentioned were not carried out.
func (l *Leases) Sent(p *Parcel, now time.Time) (out Outcome) {
	for part := range p.parts {
		out.add(l.Answer(p, part, errOmitted, now))
	}
	if o := l.sessions[p.session]; o != nil {
		o.sending = false
	}
	return out
}

var errOmitted = errors.New("the broker's answer did not mention the partition")

func (c *contents) all() []*Record { return append(slices.Clone(c.verdicts), c.renewals...) }

func (l *Leases) confirmed(c *contents, sent time.Time) {
	for _, r := range c.verdicts {
		if l.byToken[r.Token] != r { // acquired again meanwhile, through another session
			continue
		}
		l.sessions[r.session].accepted--
		r.set(stateDone)
		l.forget(r)
	}
	for _, r := range c.renewals {
		if l.byToken[r.Token] != r {
			continue
		}
		r.renewal, r.deadline = renewalNone, sent.Add(r.Lock-margin(r.Lock))
		r.answer(nil)
		l.askedMeanwhile(r)
	}
}

// askedMeanwhile makes a renewal due that was asked for while another was on its way.
func (l *Leases) askedMeanwhile(r *Record) {
	if len(r.waiting) > 0 && r.state == stateHeld {
		l.renew(r)
	}
}

// refused looks for the record that is not held any more: the broker has carried out nothing
// of what was sent with it. So both halves are sent again, each by itself.
func (l *Leases) refused(o *outbox, part Part, c *contents, err error, out *Outcome) {
	all := c.all()
	if len(all) == 1 && len(c.gaps) == 0 {
		all[0].renewal = renewalNone
		if l.byToken[all[0].Token] == all[0] {
			l.end(all[0], err, out)
		}
		return
	}
	slices.SortFunc(all, func(a, b *Record) int { return cmp.Compare(a.Offset, b.Offset) })
	l.requeue(o, part, all, nil, true) // a gap needs no second try: its lock ends by itself
}

// requeue puts what a request carried back to what waits.
func (l *Leases) requeue(o *outbox, part Part, rs []*Record, gaps []ackRange, apart bool) {
	var back []*Record
	for _, r := range rs {
		if l.byToken[r.Token] != r {
			continue
		}
		switch {
		case r.renewal == renewalSent && r.state == stateSettled: // settled meanwhile, and waits already
			r.renewal = renewalNone
			r.answer(ErrSettled)
			continue
		case r.renewal == renewalSent:
			r.renewal = renewalWanted
		default:
			r.set(stateSettled)
		}
		back = append(back, r)
	}
	if len(back)+len(gaps) == 0 {
		return
	}
	p := o.of(part)
	p.gaps = append(p.gaps, gaps...)
	switch half := len(back) / 2; {
	case !apart || len(back) == 0:
		p.records = append(p.records, back...)
	case half == 0:
		p.again = append(p.again, back)
	default:
		p.again = append(p.again, slices.Clone(back[:half]), slices.Clone(back[half:]))
	}
}

// effect is what an answer about acknowledgements means.
type effect uint8

const (
	effectDone  effect = iota // carried out
	effectAgain               // not carried out, and may be the next time
	effectWrong               // not carried out, because at least one record is not held
	effectGone                // not carried out, and never will be
)

func effectOf(err error) effect {
	switch {
	case err == nil:
		return effectDone
	case errors.Is(err, kerr.InvalidRecordState):
		return effectWrong
	case errors.Is(err, kerr.NotLeaderForPartition), errors.Is(err, kerr.FencedLeaderEpoch), LeaderGone(err):
		return effectGone
	case kerr.IsRetriable(err), errors.Is(err, kerr.UnknownServerError):
		return effectAgain
	}
	return effectGone
}

// LeaderGone reports whether an error says that a partition is not at this broker.
func LeaderGone(err error) bool {
	for _, gone := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownTopicID,
		kerr.UnknownTopicOrPartition, kerr.InconsistentTopicID} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
