package share

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// layout is which partitions are assigned, and which broker leads each. The member's lock
// guards it.
type layout struct {
	assigned map[Part]struct{}   // by the last heartbeat; only these are fetched
	names    map[[16]byte]string // of topics
	leaders  map[Part]int32      // broker; only those that are known
}

func newLayout() layout {
	return layout{assigned: map[Part]struct{}{}, names: map[[16]byte]string{}, leaders: map[Part]int32{}}
}

// of are the partitions that a broker leads.
func (l *layout) of(node int32) map[Part]struct{} {
	parts := map[Part]struct{}{}
	for part := range l.assigned {
		if leader, known := l.leaders[part]; known && leader == node {
			parts[part] = struct{}{}
		}
	}
	return parts
}

// leads reports whether a broker leads any partition.
func (l *layout) leads(node int32) bool {
	for part := range l.assigned {
		if leader, known := l.leaders[part]; known && leader == node {
			return true
		}
	}
	return false
}

// brokers are the leaders of all partitions; complete: each partition's is known.
func (l *layout) brokers() (nodes map[int32]struct{}, complete bool) {
	nodes, complete = map[int32]struct{}{}, true
	for part := range l.assigned {
		if node, known := l.leaders[part]; known {
			nodes[node] = struct{}{}
		} else {
			complete = false
		}
	}
	return nodes, complete
}

// assign takes an assignment.
func (l *layout) assign(topics []kmsg.ShareGroupHeartbeatResponseAssignmentTopicPartition) {
	l.assigned = map[Part]struct{}{}
	for _, t := range topics {
		for _, num := range t.Partitions {
			l.assigned[Part{t.TopicID, num}] = struct{}{}
		}
	}
}

// learn takes an answer's names and leaders. It returns the partitions whose leader was
// another broker before.
func (l *layout) learn(resp *kmsg.MetadataResponse) (moved []Part) {
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.ErrorCode != 0 || t.Topic == nil {
			continue
		}
		l.names[t.TopicID] = *t.Topic
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 && p.ErrorCode != kerr.ReplicaNotAvailable.Code || p.Leader < 0 {
				continue
			}
			if l.move(Part{t.TopicID, p.Partition}, p.Leader) {
				moved = append(moved, Part{t.TopicID, p.Partition})
			}
		}
	}
	return moved
}

// move notes a leader, and reports whether it was another one before.
func (l *layout) move(part Part, leader int32) bool {
	old, known := l.leaders[part]
	l.leaders[part] = leader
	return known && old != leader
}

// seekLeaders makes the leaders be asked for soon.
func (m *Member) seekLeaders() {
	select {
	case m.stale <- struct{}{}:
	default:
	}
}

// follow asks for the leaders of partitions when they are not known any more.
func (m *Member) follow() {
	const pause = 200 * time.Millisecond
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.stale:
		case <-timer.C:
		case <-m.life.Done():
			return
		}
		ctx, cancel := context.WithTimeout(m.life, callTime)
		resp, err := cluster.Metadata(ctx, m.cfg.Client, m.cfg.Topics...)
		cancel()
		m.mu.Lock()
		if err == nil {
			m.placed(resp)
		}
		next := time.Minute
		if _, complete := m.layout.brokers(); err != nil || !complete {
			next = pause
		}
		m.mu.Unlock()
		timer.Reset(next)
		select { // a cluster in disorder is not asked in a loop
		case <-time.After(pause):
		case <-m.life.Done():
			return
		}
	}
}

// placed takes an answer, and ends what earlier leaders had locked. The caller holds mu.
func (m *Member) placed(resp *kmsg.MetadataResponse) {
	for _, part := range m.layout.learn(resp) {
		for _, l := range m.links.at {
			if l.node != m.layout.leaders[part] {
				m.report(m.leases.Drop(l.session.id, part, kerr.NotLeaderForPartition))
			}
		}
	}
	m.linkLeaders()
}

// linkLeaders makes sure that each leader has a link. The caller holds mu.
func (m *Member) linkLeaders() {
	if m.ending() || m.life.Err() != nil {
		return
	}
	nodes, complete := m.layout.brokers()
	if !complete {
		m.seekLeaders()
	}
	for node := range nodes {
		if m.links.at[node] == nil {
			l := newLink(node, m.cfg.Group, m.id)
			m.links.at[node] = l
			m.wg.Go(func() { m.serve(l) })
		}
	}
	m.links.wakeAll()
}
