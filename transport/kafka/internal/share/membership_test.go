package share

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// joinedAt is a membership that has been answered at a time.
func joinedAt(now time.Time) *membership {
	p := &membership{group: "billing", id: "a", topics: []string{"orders"}, joined: now, answered: now}
	p.took(&kmsg.ShareGroupHeartbeatResponse{MemberEpoch: 3, HeartbeatIntervalMillis: 5000}, subscribedTopics, now)
	return p
}

// A heartbeat names the topics only when the coordinator does not know the subscription, and
// a member outside the group that wants nothing sends none.
func TestAHeartbeatSaysWhatIsNew(t *testing.T) {
	p := joinedAt(time.Unix(0, 0))
	if req := p.heartbeat(subscribedTopics); req.MemberEpoch != 3 || req.SubscribedTopicNames != nil {
		t.Errorf("epoch %d, topics %v, want 3 and no topics", req.MemberEpoch, req.SubscribedTopicNames)
	}
	if req := p.heartbeat(subscribedNothing); req.SubscribedTopicNames == nil || len(req.SubscribedTopicNames) > 0 {
		t.Errorf("topics %v, want an empty list", req.SubscribedTopicNames)
	}
	out := &membership{topics: []string{"orders"}}
	if out.heartbeat(subscribedNothing) != nil {
		t.Error("a member outside the group sends a heartbeat")
	}
	if req := out.heartbeat(subscribedTopics); req.MemberEpoch != 0 || len(req.SubscribedTopicNames) != 1 {
		t.Errorf("it joins with epoch %d and topics %v", req.MemberEpoch, req.SubscribedTopicNames)
	}
}

// A new member asks often until it has partitions, but not for ever.
func TestANewMemberAsksForItsAssignment(t *testing.T) {
	now := time.Unix(0, 0)
	p := joinedAt(now)
	resp := &kmsg.ShareGroupHeartbeatResponse{MemberEpoch: 3, HeartbeatIntervalMillis: 5000}
	if next := p.took(resp, subscribedTopics, now); next != impatience {
		t.Errorf("without partitions the next heartbeat is due in %s", next)
	}
	if next := p.took(resp, subscribedTopics, now.Add(impatienceEnd)); next != 5*time.Second {
		t.Errorf("long without partitions the next heartbeat is due in %s", next)
	}
	resp.Assignment = &kmsg.ShareGroupHeartbeatResponseAssignment{TopicPartitions: []kmsg.ShareGroupHeartbeatResponseAssignmentTopicPartition{{Partitions: []int32{0}}}}
	if next := p.took(resp, subscribedTopics, now); next != 5*time.Second {
		t.Errorf("with partitions the next heartbeat is due in %s", next)
	}
}

func TestWhatAFailedHeartbeatMeans(t *testing.T) {
	now := time.Unix(0, 0)
	for name, tc := range map[string]struct {
		err   error
		times int
		after time.Duration
		want  setback
		epoch int32
	}{
		"no answer":               {errors.New("cut"), 1, time.Second, setbackBrief, 3},
		"no answer again":         {errors.New("cut"), 3, time.Second, setbackLasting, 3},
		"silence":                 {errors.New("cut"), 1, silence + 1, setbackFinal, 3},
		"coordinator moves":       {kerr.NotCoordinator, 1, time.Second, setbackBrief, 3},
		"not allowed":             {kerr.GroupAuthorizationFailed, 1, time.Second, setbackFinal, 3},
		"removed":                 {kerr.UnknownMemberID, 1, time.Second, setbackRemoved, 0},
		"fenced":                  {kerr.FencedMemberEpoch, 1, time.Second, setbackRemoved, 0},
		"the group is gone":       {kerr.GroupIDNotFound, 1, time.Second, setbackRemoved, 0},
		"there is still no group": {kerr.GroupIDNotFound, 2, time.Second, setbackFinal, 0}, // the second time it joins
	} {
		p := joinedAt(now)
		var got setback
		for range tc.times {
			got, _ = p.failed(tc.err, now.Add(tc.after))
		}
		if got != tc.want || p.epoch != tc.epoch {
			t.Errorf("%s: setback %d, epoch %d, want %d, %d", name, got, p.epoch, tc.want, tc.epoch)
		}
	}
}
