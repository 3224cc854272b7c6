package share

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/backoff"
)

// link is the session with one broker and the order of its requests. The member's lock guards
// it; its goroutine alone sends requests.
type link struct {
	node     int32         // the broker
	session  session       // as the broker has it
	kicked   chan struct{} // something may have to be sent; holds one
	fetching int           // records that the fetch on its way asks for; 0: there is none
	since    time.Time     // when verdicts began to wait; zero: none waits
	rest     time.Time     // no request before
	failures int           // in a row, from which the pause before the next request follows
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
	parcel *Parcel                       // what the request carries; its verdicts count once it is answered
	final  bool                          // the session is closed with this request, and the link ends
	end    bool                          // there is no session to close: the link ends
	wait   time.Duration                 // nothing to do for so long
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
	delete(m.links.at, l.node)
	m.changes.announce()
	m.linkLeaders()
}

// next decides what a link does. The caller holds mu.
func (m *Member) next(l *link, now time.Time) step {
	switch {
	case m.ending() && l.session.id == 0:
		return step{end: true}
	case m.ending():
		p := m.leases.Take(l.session.id, now)
		p.dropRenewals()
		return step{ack: l.session.acknowledge(p, true), parcel: p, final: true}
	case l.rest.After(now):
		return step{wait: l.rest.Sub(now)}
	}
	some, renews := m.leases.Ready(l.session.id)
	room := m.links.room(l, m.wanted, &m.layout)
	switch {
	case renews: // alone: a fetch with renewals acquires nothing
	case room > 0:
		return m.fetchStep(l, room, now)
	case some:
		linger := m.cfg.Linger
		if m.hurried > 0 {
			linger = 0
		}
		if left := l.linger(now, linger); left > 0 {
			return step{wait: left}
		}
	default:
		l.since = time.Time{}
		return step{wait: time.Minute}
	}
	p := m.leases.Take(l.session.id, now)
	l.since = time.Time{}
	return step{ack: l.session.acknowledge(p, false), parcel: p}
}

// linger is how long verdicts that no fetch carries wait for others from now on.
func (l *link) linger(now time.Time, most time.Duration) time.Duration {
	if l.since.IsZero() {
		l.since = now
	}
	return l.since.Add(most).Sub(now)
}

// fetchStep makes a fetch. The caller holds mu.
func (m *Member) fetchStep(l *link, room int, now time.Time) step {
	if l.session.id == 0 {
		m.links.open(l)
		m.leases.Open(l.session.id)
	}
	wait := fetchWait
	if m.leases.Len() > 0 {
		wait = fetchWaitHeld
	}
	p := m.leases.Take(l.session.id, now)
	l.since, l.fetching = time.Time{}, room
	return step{parcel: p, fetch: l.session.fetch(m.layout.of(l.node), p, limits{records: int32(room), waitMs: int32(wait.Milliseconds()), //nolint:gosec // small
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
	m.cfg.called(longshore.OperationReceive, sent, err)
	m.cfg.carried(s.parcel, sent, err)
	var found map[Part]decoded
	if err == nil {
		found = m.unpack(resp)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l.fetching = 0
	defer m.changes.announce()
	if err != nil {
		m.requestFailed(l, err)
		return
	}
	l.session.fetched(s.fetch)
	trouble := m.answered(s.parcel, acksOfFetch(resp)) // first: what was released may be among what has arrived
	trouble.add(m.arrived(l, resp, found, sent))
	m.judge(l, &trouble)
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
			m.linkLeaders()
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
	m.cfg.carried(s.parcel, sent, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.changes.announce()
	if err != nil {
		m.requestFailed(l, err)
		return
	}
	l.session.advance()
	trouble := m.answered(s.parcel, acksOf(resp))
	if s.final {
		return
	}
	m.judge(l, &trouble)
}

// ackAnswer is what the broker says about one partition of a parcel.
type ackAnswer struct {
	part Part  // of the parcel
	err  error // why nothing of it was carried out; nil: all of it was
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
	m.ended(l, err)
	switch {
	case errors.Is(err, kerr.ShareSessionNotFound), errors.Is(err, kerr.InvalidShareSessionEpoch): // the broker is well
	case passing(err):
		m.seekLeaders()
	default:
		m.fail(err)
	}
	m.repeat(l, err)
}

// repeat keeps a link's next request back, longer with each failure. The caller holds mu.
func (m *Member) repeat(l *link, why error) {
	l.failures++
	l.rest = time.Now().Add(backoff.Policy{Initial: 20 * time.Millisecond, Max: 2 * time.Second, Multiplier: 2}.Delay(l.failures, 0))
	if l.failures >= troubledAfter {
		m.cfg.Events.Troubled(l.condition(), why)
	}
}

// ended forgets a session and what was acquired in it. The caller holds mu.
func (m *Member) ended(l *link, why error) {
	if l.session.id != 0 {
		m.report(m.leases.Close(l.session.id, why))
	}
	l.session.reset()
	l.since = time.Time{}
}

func (l *link) condition() string { return "broker " + kgo.NodeName(l.node) }

// judge notes an answer: the link is well, or the broker refused a part of the request. The caller holds mu.
func (m *Member) judge(l *link, trouble *Outcome) {
	if !trouble.Refused {
		l.failures = 0
		m.cfg.Events.Recovered(l.condition())
		return
	}
	m.repeat(l, trouble.Err)
}
