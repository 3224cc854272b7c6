package kafka

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

// A member of a classic group that joins waits for all others, who may drain their
// partitions for seconds, and the client lets no commit pass meanwhile. The broker does:
// the old generation is in force until the last has joined. What is done here should
// not hang on the others' handlers, least of all at a stop, so a commit that the
// client holds up goes beside it.
const joinPatience = 100 * time.Millisecond

var errJoining = errors.New("the group is being joined")

// The turns of a commit that is given to the client.
const (
	turnWaits int32 = iota
	turnSent
	turnTaken
)

// commitViaClient lets the client commit; errJoining if it would have to wait.
func (c *consumer) commitViaClient(ctx context.Context, batch map[tp]*pending) (resp *kmsg.OffsetCommitResponse, failed error) {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for k, one := range batch {
		if offsets[k.topic] == nil {
			offsets[k.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[k.topic][k.num] = kgo.EpochOffset{Epoch: one.s.Epoch, Offset: one.s.Offset}
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
			return errJoining
		}
		c.complete(req, batch)
		return nil
	})
	c.cl.CommitOffsetsSync(waits, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
		resp, failed = r, err
	})
	if turn.Load() == turnTaken && ctx.Err() == nil {
		return nil, errJoining
	}
	return resp, failed
}

// complete adds what is saved beside the positions and whose they are, and takes out
// what is not this member's any more, or whose topic is gone: a commit that waited for
// the group to be joined is sent as one of the new generation.
func (c *consumer) complete(req *kmsg.OffsetCommitRequest, batch map[tp]*pending) {
	topics := req.Topics[:0]
	for _, t := range req.Topics {
		t.Partitions = slices.DeleteFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
			k := tp{t.Topic, p.Partition}
			if one := batch[k]; one != nil && c.committable(one.p) {
				return false
			}
			delete(batch, k)
			return true
		})
		for i := range t.Partitions {
			one := batch[tp{t.Topic, t.Partitions[i].Partition}]
			t.Partitions[i].Metadata = &one.s.Saved
			if id := one.p.key.id; id != [16]byte{} {
				t.TopicID = id
			}
		}
		if len(t.Partitions) > 0 {
			topics = append(topics, t)
		}
	}
	req.Topics = topics
}

// commitDirect commits without asking the client. What is assigned while it joins is what
// stays with this member: what it has to give was revoked, and committed, before.
func (c *consumer) commitDirect(ctx context.Context, batch map[tp]*pending) (*kmsg.OffsetCommitResponse, error) {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group = c.src.group
	if req.MemberID, req.Generation = c.cl.GroupMetadata(); req.MemberID == "" {
		return nil, errJoining // thrown out, and not yet back
	}
	if id := c.src.cfg.InstanceID; id != "" {
		req.InstanceID = &id
	}
	names, at := map[[16]byte]string{}, map[string]int{}
	for k, one := range batch {
		if !c.committable(one.p) {
			delete(batch, k)
			continue
		}
		id := one.p.key.id
		i, known := at[k.topic]
		if !known {
			i = len(req.Topics)
			at[k.topic], names[id] = i, k.topic
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = k.topic, id
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = k.num, one.s.Offset, one.s.Epoch, &one.s.Saved
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	if len(req.Topics) == 0 {
		return kmsg.NewPtrOffsetCommitResponse(), nil
	}
	resp, err := req.RequestWith(ctx, c.cl)
	if err != nil {
		return nil, err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if t.Topic == "" {
			t.Topic = names[t.TopicID]
		}
		for j := range t.Partitions {
			if t.Partitions[j].ErrorCode == kerr.IllegalGeneration.Code { // all have joined meanwhile: this member too
				t.Partitions[j].ErrorCode = kerr.RebalanceInProgress.Code
			}
		}
	}
	return resp, nil
}
