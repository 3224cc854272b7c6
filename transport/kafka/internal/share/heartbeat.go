package share

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// callTime bounds a call that should be answered at once.
	callTime = 5 * time.Second
	// heartbeatsFail is the condition of heartbeats that fail.
	heartbeatsFail = "membership"
)

// heartbeats keeps the membership until ctx ends.
func (m *Member) heartbeats(ctx context.Context) {
	now := time.Now()
	p := &membership{group: m.cfg.Group, id: m.id, topics: m.cfg.Topics, joined: now, answered: now}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-m.presence:
		case <-ctx.Done():
			return
		}
		timer.Reset(m.sendHeartbeat(ctx, p))
	}
}

// subscription is what the member wants now.
func (m *Member) subscription() subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.absent || m.ending() {
		return subscribedNothing
	}
	return subscribedTopics
}

// sendHeartbeat sends a heartbeat and returns when the next one is due.
func (m *Member) sendHeartbeat(ctx context.Context, p *membership) time.Duration {
	want := m.subscription()
	req := p.heartbeat(want)
	if req == nil {
		return unsubscribed
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	resp, err := req.RequestWith(call, m.cfg.Client)
	cancel()
	if ctx.Err() != nil {
		return unsubscribed
	}
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		what, next := p.failed(err, time.Now())
		m.setBack(what, err)
		return next
	}
	next := p.took(resp, want, time.Now())
	m.cfg.Events.Recovered(heartbeatsFail)
	if resp.Assignment != nil {
		m.layout.assign(resp.Assignment.TopicPartitions)
		m.linkLeaders() //nolint:contextcheck // links outlive the heartbeats
		m.changes.announce()
	}
	return next
}

// setBack acts on a failed heartbeat. The caller holds mu.
func (m *Member) setBack(what setback, err error) {
	switch what {
	case setbackBrief:
	case setbackLasting:
		m.cfg.Events.Troubled(heartbeatsFail, err)
	case setbackRemoved: // what it holds depends on the sessions, and can still be settled
		m.layout.assign(nil)
		m.links.wakeAll()
	case setbackFinal:
		m.fail(err)
	}
}

// leave says goodbye to the group. Errors: no answer.
func leave(ctx context.Context, cl *kgo.Client, group, id string) error {
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := heartbeatOf(group, id, leaveEpoch).RequestWith(call, cl)
	return err
}
