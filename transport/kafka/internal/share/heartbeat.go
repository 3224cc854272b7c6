package share

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
)

const (
	// callTime bounds a call that should be answered at once.
	callTime = 5 * time.Second
	// silence is after how long without an answer to a heartbeat the member is down. The
	// broker removes a member after 45 s.
	silence = 15 * time.Second
	// impatience is how often a new member asks for its first assignment, which the broker
	// has ready soon after the join but names only in a heartbeat, and how long it does so.
	impatience, impatienceEnd = 200 * time.Millisecond, 10 * time.Second
	// leaveEpoch says that a member leaves.
	leaveEpoch = -1
	// membership is the condition of heartbeats that fail.
	membership = "membership"
)

// pulse is the course of a membership. It belongs to the goroutine of the heartbeats.
type pulse struct {
	epoch    int32        // 0 joins
	sent     subscription // in this membership
	joined   time.Time    // when the membership began
	answered time.Time    // the last answer
	assigned bool         // partitions were assigned in this membership
	failures int
}

// heartbeats keeps the membership until ctx ends.
func (m *Member) heartbeats(ctx context.Context) {
	now := time.Now()
	p := &pulse{joined: now, answered: now}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.presence:
		case <-ctx.Done():
			return
		}
		timer.Reset(m.beatOnce(ctx, p))
	}
}

// subscription is what a member asks for.
type subscription uint8

const (
	subscribedUnknown subscription = iota // the coordinator has to be told
	subscribedTopics
	subscribedNothing // a member without partitions
)

// subscription is what the member wants now.
func (m *Member) subscription() subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.absent || m.down != nil {
		return subscribedNothing
	}
	return subscribedTopics
}

// beatOnce sends a heartbeat and returns when the next one is due.
func (m *Member) beatOnce(ctx context.Context, p *pulse) time.Duration {
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.MemberEpoch = m.cfg.Group, m.id, p.epoch
	want := m.subscription()
	switch {
	case want == subscribedNothing && p.epoch == 0:
		return time.Hour // until Enter
	case want == p.sent:
	case want == subscribedTopics:
		req.SubscribedTopicNames = m.cfg.Topics
	default:
		req.SubscribedTopicNames = []string{}
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	resp, err := req.RequestWith(call, m.cfg.Client)
	cancel()
	if ctx.Err() != nil {
		return time.Hour
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		return m.beatFailed(p, err)
	}
	if p.epoch == 0 {
		p.joined = time.Now()
	}
	p.answered, p.failures, p.sent, p.epoch = time.Now(), 0, want, resp.MemberEpoch
	m.cfg.Events.Recovered(membership)
	if resp.Assignment != nil {
		m.layout.assign(resp.Assignment)
		p.assigned = p.assigned || len(m.layout.assigned) > 0
		m.settleIn() //nolint:contextcheck // links outlive the heartbeats
		m.announce()
	}
	next := max(time.Duration(resp.HeartbeatIntervalMillis)*time.Millisecond, impatience)
	if want == subscribedTopics && !p.assigned && time.Since(p.joined) < impatienceEnd {
		return min(next, impatience)
	}
	return next
}

// beatFailed finds what a failure means. The caller holds mu.
func (m *Member) beatFailed(p *pulse, err error) time.Duration {
	now := time.Now()
	switch {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedMemberEpoch), errors.Is(err, kerr.GroupIDNotFound) && p.epoch > 0:
		// The group goes on without this member: it joins again. What it holds depends on the
		// sessions, and can still be settled.
		m.layout.assigned = map[Part]struct{}{}
		m.kickAll()
		*p = pulse{joined: now, answered: now}
		return 0
	case passing(err):
		p.sent = subscribedUnknown // to another coordinator
		p.failures++
		if now.Sub(p.answered) > silence {
			m.fail(err)
		} else if p.failures > 2 {
			m.cfg.Events.Troubled(membership, err)
		}
	default:
		m.fail(err)
	}
	return min(impatience<<min(p.failures, 4), 2*time.Second)
}

// passing reports whether an error may be over the next time.
func passing(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Retriable
	}
	return true // no answer
}

// leave says goodbye to the group. Errors: no answer.
func (m *Member) leave(ctx context.Context) error {
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.MemberEpoch = m.cfg.Group, m.id, leaveEpoch
	call, cancel := context.WithTimeout(m.life, callTime)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	_, err := req.RequestWith(call, m.cfg.Client) //nolint:contextcheck // ends with ctx and with life
	return err
}

// called reports how long a call took.
func (m *Member) called(kind longshore.OperationKind, began time.Time, err error) {
	if m.cfg.Called != nil {
		m.cfg.Called(kind, began, err)
	}
}
