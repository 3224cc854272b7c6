package share

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of settling and renewing.
var (
	ErrLost    = errors.New("the acquisition lock has ended")
	ErrSettled = errors.New("the record was settled before")
)

// Leases is everything that a member has acquired and the broker has not confirmed the end
// of, with the locks under which it is held. It decides which locks to renew, which have
// ended by the member's own clock, and which verdicts the next request of a session carries.
// It makes no calls and reads no clock; the member's lock guards it.
type Leases struct {
	last     uint64             // token
	byToken  map[uint64]*Record // every record that is held, settled or sending
	byPlace  map[place]*Record  // the same, by where they are in the log
	sessions map[uint64]*outbox // by session
}

// place is where a record is in the log.
type place struct {
	part   Part  // of the log
	offset int64 // in it
}

// outbox is what waits for a request of one session.
type outbox struct {
	records  map[*Record]struct{} // of this session
	sending  bool                 // a parcel is on its way
	pending  map[Part]*pending    // what the next parcel carries
	accepted int                  // verdicts not answered yet
}

// pending is what waits for a request about one partition.
type pending struct {
	records []*Record   // with a verdict or a wanted renewal
	gaps    []ackRange  // acquired offsets without a record
	again   [][]*Record // refused together: each list is sent by itself, to find the one that is wrong
}

// all goes over the records that wait.
func (p *pending) all(yield func(*Record) bool) {
	for _, r := range p.records {
		if !yield(r) {
			return
		}
	}
	for _, list := range p.again {
		for _, r := range list {
			if !yield(r) {
				return
			}
		}
	}
}

// NewLeases returns a Leases that holds nothing.
func NewLeases() *Leases {
	return &Leases{byToken: map[uint64]*Record{}, byPlace: map[place]*Record{}, sessions: map[uint64]*outbox{}}
}

// margin is how much earlier than the broker's lock a lease ends here, so that a verdict has
// the time to reach the broker.
func margin(lock time.Duration) time.Duration {
	return min(max(lock/20, 50*time.Millisecond), time.Second)
}

// Len is how many records are held, with or without a verdict.
func (l *Leases) Len() int { return len(l.byToken) }

// Unanswered is how many verdicts the broker has not answered yet.
func (l *Leases) Unanswered() (n int) {
	for _, o := range l.sessions {
		n += o.accepted
	}
	return n
}

// Open begins a session.
func (l *Leases) Open(session uint64) {
	l.sessions[session] = &outbox{records: map[*Record]struct{}{}, pending: map[Part]*pending{}}
}

// Acquire takes in what an answer has brought. The locks run since some time after the
// request was sent. A record that is held already was acquired again after its lock had
// ended at the broker: the earlier acquisition is lost.
func (l *Leases) Acquire(session uint64, rs []*Record, gaps map[Part][]ackRange, sent time.Time) (out Outcome) {
	o := l.sessions[session]
	for _, r := range rs {
		at := place{r.Part, r.Offset}
		if old := l.byPlace[at]; old != nil {
			l.end(old, ErrLost, &out)
		}
		l.last++
		r.Token, r.session, r.deadline = l.last, session, sent.Add(r.Lock-margin(r.Lock))
		l.byToken[r.Token], l.byPlace[at] = r, r
		o.records[r] = struct{}{}
	}
	for part, ranges := range gaps {
		p := o.of(part)
		p.gaps = append(p.gaps, ranges...)
	}
	return out
}

func (o *outbox) of(part Part) *pending {
	p := o.pending[part]
	if p == nil {
		p = &pending{}
		o.pending[part] = p
	}
	return p
}

// find returns a record that can still be settled.
func (l *Leases) find(token uint64, now time.Time) (*Record, error) {
	switch r := l.byToken[token]; {
	case r == nil:
		return nil, ErrLost
	case r.state != stateHeld:
		return nil, ErrSettled
	case !r.deadline.After(now):
		return nil, ErrLost // Watch is about to report it
	default:
		return r, nil
	}
}

// Settle accepts a verdict, which the next request of the record's session carries.
func (l *Leases) Settle(token uint64, v Verdict, now time.Time) (*Record, error) {
	r, err := l.find(token, now)
	if err != nil {
		return nil, err
	}
	o := l.sessions[r.session]
	r.set(stateSettled)
	r.verdict = v
	o.accepted++
	if r.renewal != renewalWanted { // else it waits there already
		p := o.of(r.Part)
		p.records = append(p.records, r)
	} else {
		r.renewal = renewalNone
	}
	for _, done := range r.waiting {
		done <- ErrSettled
	}
	r.waiting = nil
	return r, nil
}

// Renew makes the next request of the record's session renew its lock; done, which has room
// for it, receives the outcome.
func (l *Leases) Renew(token uint64, now time.Time, done chan<- error) (session uint64, err error) {
	r, err := l.find(token, now)
	if err != nil {
		return 0, err
	}
	r.waiting = append(r.waiting, done)
	l.renew(r)
	return r.session, nil
}

func (l *Leases) renew(r *Record) {
	if r.renewal != renewalNone {
		return
	}
	r.renewal = renewalWanted
	p := l.sessions[r.session].of(r.Part)
	p.records = append(p.records, r)
}

// Watch finds the locks that have ended, and those that are to be renewed now: half of them
// is over. It returns the sessions that have renewals to send, and when to look again.
func (l *Leases) Watch(now time.Time) (out Outcome, renew []uint64, next time.Duration) {
	next = time.Second
	for _, r := range l.byToken {
		left := r.deadline.Sub(now)
		half := r.Lock / 2
		switch {
		case left <= 0 && r.state != stateSending: // what is on its way is decided by its answer
			l.end(r, ErrLost, &out)
		case r.state != stateHeld:
		case left <= half && r.renewal == renewalNone:
			l.renew(r)
			renew = append(renew, r.session)
			next = min(next, left)
		case left <= half:
			next = min(next, left)
		default:
			next = min(next, left-half)
		}
	}
	slices.Sort(renew)
	return out, slices.Compact(renew), max(next, 5*time.Millisecond)
}

// Drop says that the leader of a partition is another broker now, or that the partition is
// gone: the locks that the earlier leader gave count no more.
func (l *Leases) Drop(session uint64, part Part, why error) (out Outcome) {
	o := l.sessions[session]
	if o == nil {
		return out
	}
	for r := range o.records {
		if r.Part == part && r.state != stateSending {
			l.end(r, why, &out)
		}
	}
	if p := o.pending[part]; p != nil && len(p.records) == 0 && len(p.again) == 0 {
		delete(o.pending, part)
	}
	return out
}

// Close ends a session: the broker releases what was acquired in it. What became of verdicts
// that are on their way is not known.
func (l *Leases) Close(session uint64, why error) (out Outcome) {
	o := l.sessions[session]
	if o == nil {
		return out
	}
	for r := range o.records {
		l.end(r, why, &out)
	}
	delete(l.sessions, session)
	return out
}

// Outcome is what became of records. Each list is in the order of the acquisitions.
type Outcome struct {
	Lost    []*Record // held without a verdict, and the broker has them back
	Failed  []*Record // with a verdict that was not carried out
	Refused bool      // the broker refused something for a reason that another request may not have
	Err     error     // why, for all of them
}

func (o *Outcome) add(other Outcome) {
	o.Lost, o.Failed = append(o.Lost, other.Lost...), append(o.Failed, other.Failed...)
	o.Refused = o.Refused || other.Refused
	if other.Err != nil {
		o.Err = other.Err
	}
}

// sorted puts the lists in order.
func (o *Outcome) sorted() {
	for _, rs := range [][]*Record{o.Lost, o.Failed} {
		slices.SortFunc(rs, func(a, b *Record) int { return cmp.Compare(a.Token, b.Token) })
	}
}

// end forgets a record whose lock has ended, or may have.
func (l *Leases) end(r *Record, why error, out *Outcome) {
	out.Err = why
	if r.state == stateHeld {
		r.set(stateLost)
		out.Lost = append(out.Lost, r)
	} else {
		l.sessions[r.session].accepted--
		r.set(stateFailed)
		out.Failed = append(out.Failed, r)
	}
	l.forget(r)
}

// forget drops a record that has reached its last state.
func (l *Leases) forget(r *Record) {
	o := l.sessions[r.session]
	if p := o.pending[r.Part]; p != nil && r.state != stateDone { // one that is done waits for nothing
		if i := slices.Index(p.records, r); i >= 0 {
			p.records = slices.Delete(p.records, i, i+1)
		}
		for i, list := range p.again {
			if j := slices.Index(list, r); j >= 0 {
				p.again[i] = slices.Delete(list, j, j+1)
			}
		}
		p.again = slices.DeleteFunc(p.again, func(list []*Record) bool { return len(list) == 0 })
	}
	delete(o.records, r)
	delete(l.byToken, r.Token)
	if at := (place{r.Part, r.Offset}); l.byPlace[at] == r {
		delete(l.byPlace, at)
	}
	r.answer(ErrLost)
	for _, done := range r.waiting {
		done <- ErrLost
	}
	r.waiting = nil
}

// answer ends the wait of those that asked for the renewal that was on its way.
func (r *Record) answer(err error) {
	for _, done := range r.asked {
		done <- err
	}
	r.asked = nil
}

func (r *Record) set(next state) {
	if !slices.Contains(transitions[r.state], next) {
		r.waiting, r.asked = nil, nil // the check of the tests reports it
		r.state = states
		return
	}
	r.state = next
}

// Check reports a broken invariant. For tests.
func (l *Leases) Check() error {
	if len(l.byToken) != len(l.byPlace) {
		return fmt.Errorf("%d records by token, %d by place", len(l.byToken), len(l.byPlace))
	}
	held := 0
	for id, o := range l.sessions {
		if err := o.check(id); err != nil {
			return err
		}
		held += len(o.records)
		for r := range o.records {
			if l.byToken[r.Token] != r || l.byPlace[place{r.Part, r.Offset}] != r {
				return fmt.Errorf("record %d is not where it belongs", r.Token)
			}
		}
	}
	if held != len(l.byToken) {
		return fmt.Errorf("%d records in sessions, %d by token", held, len(l.byToken))
	}
	return nil
}

func (o *outbox) check(id uint64) error {
	listed := map[*Record]int{}
	for part, p := range o.pending {
		for r := range p.all {
			listed[r]++
			if _, ok := o.records[r]; !ok || r.Part != part {
				return fmt.Errorf("record %d waits in the wrong place", r.Token)
			}
		}
	}
	accepted := 0
	for r := range o.records {
		waits := r.state == stateSettled || r.renewal == renewalWanted
		switch {
		case r.session != id || r.state > stateSending:
			return fmt.Errorf("record %d is in state %d of session %d, in session %d", r.Token, r.state, r.session, id)
		case waits != (listed[r] == 1):
			return fmt.Errorf("record %d (state %d, renewal %d) waits %d times", r.Token, r.state, r.renewal, listed[r])
		case !o.sending && (r.state == stateSending || r.renewal == renewalSent):
			return fmt.Errorf("record %d is on its way without a request", r.Token)
		}
		if r.state == stateSettled || r.state == stateSending {
			accepted++
		}
	}
	if accepted != o.accepted {
		return fmt.Errorf("%d verdicts are open, %d are counted", accepted, o.accepted)
	}
	return nil
}
