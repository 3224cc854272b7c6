package cluster

import (
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A member of a cooperative classic group can learn from the answer to its join that the
// group has removed it, for example when it was frozen, or cut off, between a heartbeat and
// the join. The client (franz-go v1.22.3, handleJoinResp in pkg/kgo/consumer_group.go) then
// joins as a new member and goes on with the partitions it had: it claims them, does not say
// that they are lost, and does not read their positions again. Another member had them
// meanwhile; commits of what was done before would take its position back.
//
// What a client shows of a join is the call for a balancer's metadata. So the assignment is
// ended there, before the new join is sent, and the assignment that comes with it is refused:
// an error at that point makes the client forget everything and join from the beginning.

// removedMember watches the joins of one client. Its balancers share it.
type removedMember struct {
	id   func() string            // of the member; "" once the group does not know it
	lost func(map[string][]int32) // ends the assignment of these partitions
	mu   sync.Mutex               // guards void: the client reads assignments in a goroutine of its own
	void bool                     // the member was removed, and the client has not noticed
}

// EndRemoved returns an option of a client in a classic group. When the group has removed the
// member and only its join shows it, lost is called with the partitions that the client takes
// for its own; then the client begins again as it does after any other end of a session. id
// returns the member's id. Both are called in the client's goroutine.
func (o Own) EndRemoved(id func() string, lost func(map[string][]int32)) kgo.Opt {
	m := &removedMember{id: id, lost: lost}
	wrapped := make([]kgo.GroupBalancer, 0, len(o.balancers))
	for _, b := range o.balancers {
		if b.IsCooperative() { // others give up everything before they join
			b = &endingBalancer{GroupBalancer: b, member: m}
		}
		wrapped = append(wrapped, b)
	}
	return kgo.Balancers(wrapped...)
}

// endingBalancer is a balancer that claims nothing for a removed member.
type endingBalancer struct {
	kgo.GroupBalancer

	member *removedMember // shared with the client's other balancers
}

// JoinGroupMetadata implements [kgo.GroupBalancer].
func (b *endingBalancer) JoinGroupMetadata(topics []string, current map[string][]int32, generation int32) []byte {
	if b.member.joins(current) {
		current = nil
	}
	return b.GroupBalancer.JoinGroupMetadata(topics, current, generation)
}

// ParseSyncAssignment implements [kgo.GroupBalancer].
func (b *endingBalancer) ParseSyncAssignment(assignment []byte) (map[string][]int32, error) {
	if b.member.removed() {
		return nil, fmt.Errorf("the group had removed this member before it joined: %w", kerr.UnknownMemberID)
	}
	return b.GroupBalancer.ParseSyncAssignment(assignment)
}

// joins is called for each join, with what the client takes for its own. It reports whether
// that is void.
func (m *removedMember) joins(current map[string][]int32) bool {
	unknown := len(current) > 0 && m.id() == ""
	m.mu.Lock()
	began := unknown && !m.void
	m.void = len(current) > 0 && (m.void || unknown)
	void := m.void
	m.mu.Unlock()
	if began {
		m.lost(current)
	}
	return void
}

func (m *removedMember) removed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.void
}
