package share

import (
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/internal/backoff"
)

const (
	// silence is after how long without an answer to a heartbeat the member is down. The
	// broker removes a member after 45 s.
	silence = 15 * time.Second
	// impatience is how often a new member asks for its first assignment, which the broker
	// has ready soon after the join but names only in a heartbeat, and how long it does so.
	impatience, impatienceEnd = 200 * time.Millisecond, 10 * time.Second
	// unsubscribed is how long a member outside the group waits: until Enter wakes it.
	unsubscribed = time.Hour
	// leaveEpoch says that a member leaves.
	leaveEpoch = -1
	// troubledAfter is how many failures in a row are worth a report.
	troubledAfter = 3
)

// membership is a member's place in its group: what the next heartbeat says, and what the
// answer means. It makes no calls and reads no clock. It belongs to the goroutine that sends
// the heartbeats.
type membership struct {
	group, id string       // of the member
	topics    []string     // what it subscribes to
	epoch     int32        // 0 joins
	sent      subscription // what the coordinator has been told
	joined    time.Time    // when the membership began
	answered  time.Time    // the last answer
	assigned  bool         // partitions were assigned in this membership
	failures  int          // in a row
}

// subscription is what a member asks for.
type subscription uint8

const (
	subscribedUnknown subscription = iota // the coordinator has to be told
	subscribedTopics
	subscribedNothing // a member without partitions
)

// heartbeat is the next request, or nil: a member outside the group that wants nothing has
// nothing to say.
func (p *membership) heartbeat(want subscription) *kmsg.ShareGroupHeartbeatRequest {
	req := heartbeatOf(p.group, p.id, p.epoch)
	switch {
	case want == subscribedNothing && p.epoch == 0:
		return nil
	case want == p.sent:
	case want == subscribedTopics:
		req.SubscribedTopicNames = p.topics
	default:
		req.SubscribedTopicNames = []string{}
	}
	return req
}

func heartbeatOf(group, id string, epoch int32) *kmsg.ShareGroupHeartbeatRequest {
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.GroupID, req.MemberID, req.MemberEpoch = group, id, epoch
	return req
}

// took takes the answer to a heartbeat and returns when the next one is due.
func (p *membership) took(resp *kmsg.ShareGroupHeartbeatResponse, want subscription, now time.Time) time.Duration {
	if p.epoch == 0 {
		p.joined = now
	}
	p.answered, p.failures, p.sent, p.epoch = now, 0, want, resp.MemberEpoch
	if a := resp.Assignment; a != nil {
		p.assigned = p.assigned || slices.ContainsFunc(a.TopicPartitions, func(t kmsg.ShareGroupHeartbeatResponseAssignmentTopicPartition) bool {
			return len(t.Partitions) > 0
		})
	}
	next := max(time.Duration(resp.HeartbeatIntervalMillis)*time.Millisecond, impatience)
	if want == subscribedTopics && !p.assigned && now.Sub(p.joined) < impatienceEnd {
		return impatience
	}
	return next
}

// setback is what a failed heartbeat means.
type setback uint8

const (
	setbackBrief   setback = iota // the next heartbeat may succeed
	setbackLasting                // the same, and several have failed in a row
	setbackRemoved                // the group goes on without the member, which joins again
	setbackFinal                  // no heartbeat will succeed
)

// failed takes the failure of a heartbeat and returns when the next one is due.
func (p *membership) failed(err error, now time.Time) (setback, time.Duration) {
	switch {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.FencedMemberEpoch), errors.Is(err, kerr.GroupIDNotFound) && p.epoch > 0:
		*p = membership{group: p.group, id: p.id, topics: p.topics, joined: now, answered: now}
		return setbackRemoved, 0
	case !passing(err):
		return setbackFinal, impatience
	}
	p.sent = subscribedUnknown // the coordinator may be another one by then
	p.failures++
	what := setbackBrief
	if now.Sub(p.answered) > silence {
		what = setbackFinal
	} else if p.failures >= troubledAfter {
		what = setbackLasting
	}
	return what, backoff.Policy{Initial: impatience, Max: 2 * time.Second, Multiplier: 2}.Delay(p.failures, 0)
}

// passing reports whether an error may be over the next time.
func passing(err error) bool {
	var ke *kerr.Error
	if errors.As(err, &ke) {
		return ke.Retriable
	}
	return true // no answer
}
