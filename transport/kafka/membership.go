package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// membership is the consumer as a member of its group: what the client calls when
// partitions come and go.
type membership struct {
	src         *Group       // the group and what it declares
	life        *lifetime    // no assignment before the opening is done, none after the end
	topics      *topics      // learns names that answers leave out
	start       *startpoints // positions of partitions without a commit
	assignments *assignments // changed by what the group decides
	committer   *committer   // commits what leaves, before another member has it
	health      *topicHealth // takes positions that no longer fit their topic
	reports     *reports     // partitions that leave, and sessions that end

	cl atomic.Pointer[kgo.Client] // knows the member's id; the client of a pattern joins before it is set

	mu   sync.Mutex                         // guards read: the client's hooks come from goroutines of its own
	read map[topicRead]map[int32]commitRead // the positions of the assignment that comes next
}

// topicRead is a topic as an answer names it: from version 10 on by its identity, and the
// name is empty as long as the client has not learnt it.
type topicRead struct {
	name string   // empty until the client knows it
	id   [16]byte // zero before version 10 of the answer
}

// options are those of a client that is a group's member; own are those that it has anyway.
func (m *membership) options(own cluster.Own) []kgo.Opt {
	cfg := &m.src.cfg
	opts := []kgo.Opt{
		kgo.ConsumerGroup(m.src.group), kgo.DisableAutoCommit(),
		kgo.OnOffsetsFetched(m.fetched), kgo.AdjustFetchOffsetsFn(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked), kgo.OnPartitionsLost(m.lost),
		kgo.RebalanceTimeout(cfg.rebalance()), kgo.SessionTimeout(or(cfg.SessionTimeout, defaultSession)),
	}
	if cfg.Protocol == Consumer {
		opts = append(opts, kgo.ServerSideBalancer())
	} else {
		opts = append(opts, own.EndRemoved(m.id, m.removed))
	}
	if cfg.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.InstanceID))
	}
	if cfg.Pattern {
		opts = append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(m.src.topics...))
	}
	return opts
}

// id is the member's id; "" once the group does not know it.
func (m *membership) id() string {
	cl := m.cl.Load()
	if cl == nil {
		return "not joined yet"
	}
	id, _ := cl.GroupMetadata()
	return id
}

// inSession reports whether partitions are held in a classic group. The session of a KIP-848
// group outlasts failed requests by itself.
func (m *membership) inSession() bool {
	return m.src.cfg.Protocol == Classic && m.assignments.count() > 0 && m.life.active()
}

// fetched keeps the positions and their metadata for assigned, which the client calls next.
func (m *membership) fetched(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	read := map[topicRead]map[int32]commitRead{}
	for _, g := range resp.Groups {
		for _, t := range g.Topics {
			parts := map[int32]commitRead{}
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 || p.Offset < 0 {
					continue
				}
				r := commitRead{id: t.TopicID, offset: p.Offset, epoch: p.LeaderEpoch}
				if p.Metadata != nil {
					r.saved = *p.Metadata
				}
				parts[p.Partition] = r
			}
			if t.Topic == "" {
				read[topicRead{id: t.TopicID}] = parts
			} else {
				read[topicRead{name: t.Topic}] = parts
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = read
	return nil
}

// assigned decides where each new partition starts, and makes its state. No record of it is
// fetched before it returns.
func (m *membership) assigned(ctx context.Context, positions map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	select {
	case <-m.life.begun: // the client of a pattern joins as soon as it is made, during the opening
	case <-m.life.over.Done():
		return nil, longshore.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	nums := map[string][]int32{}
	for topic, parts := range positions {
		for num := range parts {
			nums[topic] = append(nums[topic], num)
		}
	}
	logs, err := m.start.extents(ctx, nums)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	read := m.read
	m.mu.Unlock()
	var made []*partition
	for topic, parts := range positions {
		for num := range parts {
			key := m.topics.key(tp{Topic: topic, Num: num})
			r, committed := committedAt(read, key, parts[num])
			p, err := m.start.begin(ctx, key, r, committed, logs[key.tp()])
			if err != nil {
				return nil, err
			}
			made = append(made, p)
			if parts[num] = m.start.unknown(key); p.t.Base() >= 0 {
				parts[num] = kgo.NewOffset().At(p.t.Base()).WithEpoch(p.t.Epoch())
			}
		}
	}
	m.assignments.install(made)
	m.reports.over(conditionSession, m.src.title()+": in the group again")
	return positions, nil
}

// committedAt is what the group had for a partition. Where the answer names neither the
// topic's name nor its identity, the client's own reading of it counts: without the metadata
// records are repeated, without the position the whole partition would be.
func committedAt(read map[topicRead]map[int32]commitRead, key partitionOf, client kgo.Offset) (commitRead, bool) {
	for _, t := range []topicRead{{name: key.topic}, {id: key.id}} {
		if r, ok := read[t][key.num]; ok {
			return r, true
		}
	}
	if o := client.EpochOffset(); o.Offset >= 0 {
		return commitRead{offset: o.Offset, epoch: o.Epoch}, true
	}
	return commitRead{}, false
}

// revoked is called when partitions go to another member, and when this one leaves. Running
// handlers may finish until the drain is over; then they are lost, and what is done is
// committed before the next owner reads the position.
func (m *membership) revoked(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	ps := m.assignments.retire(parts)
	if len(ps) == 0 { // also at the end of each cooperative session
		return
	}
	m.health.surveySoon() // perhaps their topic was deleted
	started := time.Now()
	m.reports.leaving(ps)
	m.assignments.drained(ps, m.src.cfg.drain())
	for _, p := range ps {
		p.release(m.src.taken(p.key, "the partition went to another member before the record was done"))
	}
	ctx, cancel := context.WithTimeout(m.life.over, max(time.Second, min(defaultDrain, m.src.cfg.rebalance()/4)))
	defer cancel()
	_ = m.committer.last(ctx, ps) //nolint:contextcheck // the client's context is no limit; what was not committed is reported next
	m.committer.reportRepeats(ps)
	for _, p := range ps {
		p.reportUncommitted()
	}
	m.assignments.remove(ps)
	m.reports.notice(fmt.Sprintf("%s: %d partitions went to other members after %s", m.src.title(), len(ps), time.Since(started).Round(time.Millisecond)), nil)
}

// fencedHint leaves the cause to the error that the client reports next: a refused login,
// say. There is none where the group alone has ended the session.
const fencedHint = "joining again; if no error follows that says why, look for a frozen process or a network gap"

// removed is called before lost where only a join shows that the group has removed the member.
func (m *membership) removed(parts map[string][]int32) { m.lost(m.life.over, m.cl.Load(), parts) }

// lost is called when the group has removed this member: other members have its partitions
// already, and nothing may be committed for them.
func (m *membership) lost(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	ps := m.assignments.retire(parts)
	if len(ps) == 0 {
		return
	}
	cause := &longshore.Error{Code: longshore.CodeFenced, Op: m.src.title(), Source: m.src.name(),
		Err: fmt.Errorf("this member's session in the group is over: %w", longshore.ErrLost), Hint: fencedHint}
	taken := 0
	for _, p := range ps {
		taken += p.release(cause)
		p.reportUncommitted()
	}
	m.assignments.remove(ps)
	m.reports.ended(conditionSession)
	m.reports.troubled(conditionSession, fmt.Sprintf("%s: member fenced; %d partitions lost, %d deliveries taken back (ErrLost), nothing committed for them; %s",
		m.src.title(), len(ps), taken, fencedHint), cause)
}
