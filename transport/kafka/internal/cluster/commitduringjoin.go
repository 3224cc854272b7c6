package cluster

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A member of a classic group that joins waits for all others, which may drain their
// partitions for seconds, and the client lets no commit pass meanwhile (franz-go v1.22.3,
// pkg/kgo/consumer_group.go; see https://github.com/twmb/franz-go/issues/409). The broker
// does: the old generation is in force until the last member has joined. What is done here
// should not depend on the others' handlers, least of all at a stop, so a commit that the
// client holds up is sent without it.
const joinPatience = 100 * time.Millisecond

// ErrJoining says that nothing was sent: the member has no name to commit under.
var ErrJoining = errors.New("the group is being joined")

// Member is this client as a member of a group.
type Member struct {
	Client     *kgo.Client // the one that is in the group
	Group      string      // whose coordinator takes the commit
	InstanceID string      // of a static member; "" for others
}

// Position is what a partition commits.
type Position struct {
	TopicID  [16]byte // of the topic that it was read from; zero where topics have none
	Offset   int64    // the next record to be read
	Epoch    int32    // leader epoch of the record before Offset, -1 if unknown
	Metadata string   // what is done above it
}

// Commit commits positions and returns the broker's answer for each. still is called at the
// moment of sending: a commit that waited for the group to be joined is sent as one of the
// new generation, so what is no longer this member's is removed from positions then.
func (m Member) Commit(ctx context.Context, positions map[Partition]Position, still func(Partition) bool) (map[Partition]error, error) {
	resp, err := m.commitViaClient(ctx, positions, still)
	if errors.Is(err, ErrJoining) {
		resp, err = m.commitDirect(ctx, positions, still)
	}
	if err != nil {
		return nil, err
	}
	answers := map[Partition]error{}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			answers[Partition{t.Topic, p.Partition}] = kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return answers, nil
}

// The turns of a commit that is given to the client.
const (
	turnWaits int32 = iota // the client has not sent it
	turnSent               // it has
	turnTaken              // its patience ended first: it goes without the client
)

// commitViaClient lets the client commit; ErrJoining if it would have to wait.
func (m Member) commitViaClient(ctx context.Context, positions map[Partition]Position, still func(Partition) bool) (resp *kmsg.OffsetCommitResponse, failed error) {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for k, at := range positions {
		if offsets[k.Topic] == nil {
			offsets[k.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[k.Topic][k.Num] = kgo.EpochOffset{Epoch: at.Epoch, Offset: at.Offset}
	}
	var turn atomic.Int32
	waits, giveUp := context.WithCancel(ctx)
	defer giveUp()
	patience := time.AfterFunc(joinPatience, func() {
		if turn.CompareAndSwap(turnWaits, turnTaken) {
			giveUp()
		}
	})
	defer patience.Stop()
	waits = kgo.PreCommitFnContext(waits, func(req *kmsg.OffsetCommitRequest) error {
		if !turn.CompareAndSwap(turnWaits, turnSent) {
			return ErrJoining
		}
		complete(req, positions, still)
		return nil
	})
	m.Client.CommitOffsetsSync(waits, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
		resp, failed = r, err
	})
	if turn.Load() == turnTaken && ctx.Err() == nil {
		return nil, ErrJoining
	}
	return resp, failed
}

// complete adds metadata and topic identities to the client's request, and removes what is
// no longer this member's.
func complete(req *kmsg.OffsetCommitRequest, positions map[Partition]Position, still func(Partition) bool) {
	topics := req.Topics[:0]
	for _, t := range req.Topics {
		t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
			k := Partition{t.Topic, p.Partition}
			if _, wanted := positions[k]; wanted && still(k) {
				return false
			}
			delete(positions, k)
			return true
		})
		for i := range t.Partitions {
			at := positions[Partition{t.Topic, t.Partitions[i].Partition}]
			t.Partitions[i].Metadata = &at.Metadata
			if at.TopicID != [16]byte{} {
				t.TopicID = at.TopicID
			}
		}
		if len(t.Partitions) > 0 {
			topics = append(topics, t)
		}
	}
	req.Topics = topics
}

// commitDirect commits without the client. What is assigned while it joins stays with this
// member: what it had to give up was revoked, and committed, before.
func (m Member) commitDirect(ctx context.Context, positions map[Partition]Position, still func(Partition) bool) (*kmsg.OffsetCommitResponse, error) {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = m.Group
	if req.MemberID, req.Generation = m.Client.GroupMetadata(); req.MemberID == "" {
		return nil, ErrJoining // fenced, and not yet back
	}
	if m.InstanceID != "" {
		req.InstanceID = &m.InstanceID
	}
	names := addPositions(req, positions, still)
	if len(req.Topics) == 0 {
		return kmsg.NewPtrOffsetCommitResponse(), nil
	}
	resp, err := req.RequestWith(ctx, m.Client)
	if err != nil {
		return nil, err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == "" {
			t.Topic = names[t.TopicID]
		}
		for j := range t.Partitions {
			if t.Partitions[j].ErrorCode == kerr.IllegalGeneration.Code { // all have joined meanwhile, this member too
				t.Partitions[j].ErrorCode = kerr.RebalanceInProgress.Code
			}
		}
	}
	return resp, nil
}

// addPositions fills a request and returns the topics' names by their identities, by which
// a broker may answer.
func addPositions(req *kmsg.OffsetCommitRequest, positions map[Partition]Position, still func(Partition) bool) map[[16]byte]string {
	names, index := map[[16]byte]string{}, map[string]int{}
	for k, at := range positions {
		if !still(k) {
			delete(positions, k)
			continue
		}
		i, known := index[k.Topic]
		if !known {
			i = len(req.Topics)
			index[k.Topic], names[at.TopicID] = i, k.Topic
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = k.Topic, at.TopicID
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = k.Num, at.Offset, at.Epoch, &at.Metadata
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	return names
}
