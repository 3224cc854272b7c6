package share

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
)

// link is the session with one broker and the order of its requests. The member's lock guards
// it; its goroutine alone sends requests.
type link struct {
	node     int32
	session  session
	kicked   chan struct{} // something may have to be sent; holds one
	fetching int           // records that the fetch on its way asks for; 0: there is none
	since    time.Time     // when verdicts began to wait; zero: none waits
	rest     time.Time     // no request before
	failures int
}

const (
	// fetchWait is how long the broker waits for records. Verdicts cannot be sent meanwhile,
	// so it is shorter while there is something that may be settled.
	fetchWait, fetchWaitHeld = 500 * time.Millisecond, 100 * time.Millisecond
	fetchBytes, partBytes    = 16 << 20, 1 << 20
	// mostRecords bounds one fetch.
	mostRecords = 2000
)

func newLink(node int32, group, member string) *link {
	return &link{node: node, kicked: make(chan struct{}, 1), session: session{group: group, member: member, parts: map[Part]struct{}{}}}
}

func (l *link) wake() {
	select {
	case l.kicked <- struct{}{}:
	default:
	}
}

// step is the next thing that a link does.
type step struct {
	fetch  *kmsg.ShareFetchRequest       // acquire records, and carry the parcel
	ack    *kmsg.ShareAcknowledgeRequest // carry the parcel alone
	parcel *Parcel
	final  bool          // the session is closed with this request, and the link ends
	end    bool          // there is no session to close: the link ends
	wait   time.Duration // nothing to do for so long
}

// serve sends a link's requests, one at a time.
func (m *Member) serve(l *link) {
	defer m.unlink(l)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for m.life.Err() == nil {
		m.mu.Lock()
		s := m.next(l, time.Now())
		m.mu.Unlock()
		switch {
		case s.end:
			return
		case s.fetch != nil:
			m.fetch(l, &s)
		case s.ack != nil:
			m.acknowledge(l, &s)
			if s.final {
				return
			}
		default:
			timer.Reset(s.wait)
			select {
			case <-l.kicked:
			case <-timer.C:
			case <-m.life.Done():
			}
		}
	}
}

// unlink ends a link and what was acquired through it.
func (m *Member) unlink(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended(l, ErrLost)
	delete(m.links, l.node)
	m.announce()
	m.settleIn()
}

// next decides what a link does. The caller holds mu.
func (m *Member) next(l *link, now time.Time) step {
	some, renews := m.leases.Ready(l.session.id)
	room, want := m.room(l)
	switch {
	case m.ending() && l.session.id == 0:
		return step{end: true}
	case m.ending():
		p := m.leases.Take(l.session.id, now)
		if p != nil {
			p.dropRenewals()
		}
		return step{ack: l.session.acknowledge(p, true), parcel: p, final: true}
	case l.rest.After(now):
		return step{wait: l.rest.Sub(now)}
	case renews, some && room == 0 && m.lingered(l, now):
		p := m.leases.Take(l.session.id, now)
		l.since = time.Time{}
		return step{ack: l.session.acknowledge(p, false), parcel: p}
	case room > 0:
		return m.fetchStep(l, want, room, now)
	case some:
		return step{wait: max(l.since.Add(m.cfg.Linger).Sub(now), time.Millisecond)}
	case len(want) == 0 && l.session.id == 0:
		return step{wait: time.Minute}
	}
	return step{wait: time.Minute}
}

// lingered reports whether verdicts that no fetch carries have waited long enough. The caller
// holds mu.
func (m *Member) lingered(l *link, now time.Time) bool {
	if l.since.IsZero() {
		l.since = now
	}
	return m.hurried > 0 || now.Sub(l.since) >= m.cfg.Linger
}

// room is how many records a link may ask for now, and of which partitions. The links share
// what is wanted: those that wait for records have their share already. The caller holds mu.
func (m *Member) room(l *link) (n int, parts map[Part]struct{}) {
	parts = m.layout.of(l.node)
	if m.wanted == 0 || m.canceled || m.down != nil || len(parts) == 0 {
		return 0, parts
	}
	left, free := m.wanted, 0
	for _, x := range m.links {
		left -= x.fetching
		if x.fetching == 0 && (x == l || len(m.layout.of(x.node)) > 0) {
			free++
		}
	}
	if left <= 0 {
		return 0, parts
	}
	return min((left+free-1)/free, mostRecords), parts
}

// fetchStep makes a fetch. The caller holds mu.
func (m *Member) fetchStep(l *link, want map[Part]struct{}, room int, now time.Time) step {
	if l.session.id == 0 {
		m.sessions++
		l.session.reset()
		l.session.id = m.sessions
		m.leases.Open(l.session.id)
	}
	wait := fetchWait
	if m.leases.Len() > 0 {
		wait = fetchWaitHeld
	}
	p := m.leases.Take(l.session.id, now)
	l.since, l.fetching = time.Time{}, room
	return step{parcel: p, fetch: l.session.fetch(want, p, limits{records: int32(room), waitMs: int32(wait.Milliseconds()), //nolint:gosec // small
		bytes: fetchBytes, partBytes: partBytes})}
}

// fetch sends a fetch and takes what it brought.
func (m *Member) fetch(l *link, s *step) {
	ctx, cancel := context.WithTimeout(m.life, callTime+time.Duration(s.fetch.MaxWaitMillis)*time.Millisecond)
	defer cancel()
	sent := time.Now()
	kresp, err := m.cfg.Client.Broker(int(l.node)).Request(ctx, s.fetch)
	resp, _ := kresp.(*kmsg.ShareFetchResponse)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	m.called(longshore.OperationReceive, sent, err)
	m.calledFor(s.parcel, sent, err)
	var found map[Part]decoded
	if err == nil {
		found = m.unpack(resp)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l.fetching = 0
	defer m.announce()
	if err != nil {
		m.requestFailed(l, err)
		return
	}
	l.session.fetched(s.fetch)
	trouble := m.answered(s.parcel, acksOfFetch(resp)) // first: what was released may be among what has arrived
	trouble.add(m.arrived(l, resp, found, sent))
	m.worked(l, &trouble)
}

// unpack decodes an answer, without the lock.
func (m *Member) unpack(resp *kmsg.ShareFetchResponse) map[Part]decoded {
	found := map[Part]decoded{}
	lock := max(time.Duration(resp.AcquisitionLockTimeoutMillis)*time.Millisecond, time.Second)
	for i := range resp.Topics {
		t := &resp.Topics[i]
		m.mu.Lock()
		name := m.layout.names[t.TopicID]
		m.mu.Unlock()
		for j := range t.Partitions {
			rp := &t.Partitions[j]
			part := Part{t.TopicID, rp.Partition}
			if _, twice := found[part]; !twice && rp.ErrorCode == 0 && len(rp.AcquiredRecords) > 0 {
				found[part] = decode(name, part, rp, m.cfg.Unpack, lock)
			}
		}
	}
	return found
}

// arrived takes in what a fetch has brought. The caller holds mu.
func (m *Member) arrived(l *link, resp *kmsg.ShareFetchResponse, found map[Part]decoded, sent time.Time) (trouble Outcome) {
	gaps, all := map[Part][]ackRange{}, []*Record(nil)
	for _, part := range ordered(found) {
		d := found[part]
		all = append(all, d.records...)
		if len(d.gaps) > 0 {
			gaps[part] = d.gaps
		}
		if d.lost > 0 {
			m.cfg.Events.Undecodable(m.layout.names[part.Topic], part.Num, d.lost, d.err)
		}
	}
	m.report(m.leases.Acquire(l.session.id, all, gaps, sent))
	if len(all) > 0 {
		m.wanted = max(0, m.wanted-len(all))
		m.cfg.Events.Arrived(all)
	}
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				m.partFailed(l, Part{resp.Topics[i].TopicID, p.Partition}, err, p.CurrentLeader.LeaderID, &trouble)
			}
		}
	}
	return trouble
}

// partFailed finds what an error about one partition means. The caller holds mu.
func (m *Member) partFailed(l *link, part Part, err error, leader int32, trouble *Outcome) {
	switch {
	case LeaderGone(err):
		m.report(m.leases.Drop(l.session.id, part, err))
		delete(m.layout.leaders, part)
		if leader >= 0 && leader != l.node && (errors.Is(err, kerr.NotLeaderForPartition) || errors.Is(err, kerr.FencedLeaderEpoch)) {
			m.layout.leaders[part] = leader
			m.settleIn()
		}
		m.seekLeaders()
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed):
		m.fail(err)
	default:
		trouble.Refused, trouble.Err = true, err
	}
}

// acknowledge sends a parcel alone.
func (m *Member) acknowledge(l *link, s *step) {
	ctx, cancel := context.WithTimeout(m.life, callTime)
	defer cancel()
	sent := time.Now()
	kresp, err := m.cfg.Client.Broker(int(l.node)).Request(ctx, s.ack)
	resp, _ := kresp.(*kmsg.ShareAcknowledgeResponse)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	m.calledFor(s.parcel, sent, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.announce()
	if err != nil {
		m.requestFailed(l, err)
		return
	}
	l.session.advance()
	trouble := m.answered(s.parcel, acksOf(resp))
	if s.final {
		return
	}
	m.worked(l, &trouble)
}

// calledFor reports the call that carried a parcel.
func (m *Member) calledFor(p *Parcel, began time.Time, err error) {
	if m.cfg.Called == nil || p.Empty() {
		return
	}
	for _, kind := range p.kinds() {
		m.called(kind, began, err)
	}
}

// kinds are what a parcel carries.
func (p *Parcel) kinds() (out []longshore.OperationKind) {
	seen := map[longshore.OperationKind]bool{}
	add := func(k longshore.OperationKind) {
		if !seen[k] {
			seen[k] = true
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

// ackAnswer is what the broker says about one partition of a parcel.
type ackAnswer struct {
	part Part
	err  error
}

func acksOfFetch(resp *kmsg.ShareFetchResponse) (out []ackAnswer) {
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			out = append(out, ackAnswer{Part{resp.Topics[i].TopicID, p.Partition}, kerr.ErrorForCode(p.AcknowledgeErrorCode)})
		}
	}
	return out
}

func acksOf(resp *kmsg.ShareAcknowledgeResponse) (out []ackAnswer) {
	for i := range resp.Topics {
		for _, p := range resp.Topics[i].Partitions {
			out = append(out, ackAnswer{Part{resp.Topics[i].TopicID, p.Partition}, kerr.ErrorForCode(p.ErrorCode)})
		}
	}
	return out
}

// answered takes what the broker says about a parcel. The caller holds mu.
func (m *Member) answered(p *Parcel, answers []ackAnswer) (trouble Outcome) {
	if p == nil {
		return trouble
	}
	now := time.Now()
	for _, a := range answers {
		out := m.leases.Answer(p, a.part, a.err, now)
		m.report(out)
		trouble.Refused = trouble.Refused || out.Refused
		if out.Refused {
			trouble.Err = out.Err
		}
		if a.err != nil && LeaderGone(a.err) {
			m.seekLeaders()
		}
	}
	m.report(m.leases.Sent(p, now))
	return trouble
}

// requestFailed ends the session: what its broker has carried out is not known, and what it
// had locked is free, or soon is. The caller holds mu.
func (m *Member) requestFailed(l *link, err error) {
	if m.life.Err() != nil {
		return
	}
	fenced := errors.Is(err, kerr.ShareSessionNotFound) || errors.Is(err, kerr.InvalidShareSessionEpoch)
	m.ended(l, err)
	switch {
	case fenced:
		m.backOff(l)
		return
	case !passing(err):
		m.fail(err)
	}
	m.seekLeaders()
	m.backOff(l)
	if l.failures > 2 {
		m.cfg.Events.Troubled(l.condition(), err)
	}
}

// ended forgets a session and what was acquired in it. The caller holds mu.
func (m *Member) ended(l *link, why error) {
	if l.session.id != 0 {
		m.report(m.leases.Close(l.session.id, why))
	}
	l.session.reset()
}

func (l *link) condition() string { return "broker " + kgo.NodeName(l.node) }

// backOff keeps the next request back, longer with each failure.
func (m *Member) backOff(l *link) {
	l.rest = time.Now().Add(min(20*time.Millisecond<<min(l.failures, 7), 2*time.Second))
	l.failures++
}

// worked notes a request that was carried out, if not in all of its parts. The caller holds mu.
func (m *Member) worked(l *link, trouble *Outcome) {
	if !trouble.Refused {
		l.failures = 0
		m.cfg.Events.Recovered(l.condition())
		return
	}
	m.backOff(l)
	if l.failures > 2 {
		m.cfg.Events.Troubled(l.condition(), trouble.Err)
	}
}

// dropRenewals leaves the renewals out of a parcel: what it belongs to ends.
func (p *Parcel) dropRenewals() {
	p.renews = false
	for part, c := range p.parts {
		c.renewals = nil
		if len(c.verdicts) == 0 && len(c.gaps) == 0 {
			delete(p.parts, part)
		}
	}
}
