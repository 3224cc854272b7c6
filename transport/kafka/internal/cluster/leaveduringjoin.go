package cluster

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// A client that is joining a classic group sees that through before it leaves (franz-go
// v1.22.3, pkg/kgo/consumer_group.go). That lasts until all other members have drained, and
// the group would wait for a member that has gone. So after joinPatience the group is notified
// directly, as soon as it has given the member its name.

// Leave leaves a group. static members of a classic group do not leave: their name keeps
// their partitions over a restart. kill ends the client's requests: it would wait for the
// answer to its joining.
func (m Member) Leave(ctx context.Context, classic bool, kill func()) {
	member, _ := m.Client.GroupMetadata()
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = m.Client.LeaveGroupContext(ctx)
	}()
	if m.leftInTime(left, &member, classic && m.InstanceID == "") {
		m.releaseName(ctx, classic, member)
		return
	}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = m.Group, member
	one := kmsg.NewLeaveGroupRequestMember()
	one.MemberID = member
	req.Members = append(req.Members, one)
	_, _ = req.RequestWith(ctx, m.Client)
	kill()
	<-left
}

// leftInTime waits for the client to leave; false if it is joining, and the member's name
// is known by now.
func (m Member) leftInTime(left <-chan struct{}, member *string, mayBeJoining bool) bool {
	patience := time.NewTicker(joinPatience)
	defer patience.Stop()
	for {
		select {
		case <-left:
			return true
		case <-patience.C:
		}
		if !mayBeJoining {
			continue
		}
		if *member == "" {
			*member, _ = m.Client.GroupMetadata()
		}
		if *member != "" {
			return false
		}
	}
}

// releaseName lets a static member of a KIP-848 group return under its name. franz-go
// v1.22.3 (pkg/kgo/consumer_group_848.go) sends the leaving heartbeat without the name,
// which the broker refuses, as it did Java's (https://github.com/apache/kafka/pull/15419):
// the name would be taken until the session times out.
func (m Member) releaseName(ctx context.Context, classic bool, member string) {
	if m.InstanceID == "" || classic || member == "" {
		return
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = m.Group, member, -2
	req.InstanceID = &m.InstanceID
	_, _ = req.RequestWith(ctx, m.Client) // otherwise the session times out
}
