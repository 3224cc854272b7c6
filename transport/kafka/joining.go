package kafka

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

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

// byClient lets the client commit; errJoining if it would have to wait.
func (c *consumer) byClient(ctx context.Context, batch map[tp]*pending) (resp *kmsg.OffsetCommitResponse, failed error) {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for k, one := range batch {
		if offsets[k.topic] == nil {
			offsets[k.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[k.topic][k.num] = kgo.EpochOffset{Epoch: one.s.epoch, Offset: one.s.offset}
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
		for i := range req.Topics {
			t := &req.Topics[i]
			for j := range t.Partitions {
				if one := batch[tp{t.Topic, t.Partitions[j].Partition}]; one != nil {
					t.Partitions[j].Metadata = &one.s.saved
				}
			}
		}
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

// beside commits without asking the client. What is assigned while it joins is what
// stays with this member: what it has to give was revoked, and committed, before.
func (c *consumer) beside(ctx context.Context, batch map[tp]*pending) (*kmsg.OffsetCommitResponse, error) {
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
		id := one.p.key.id
		if c.topicID(k.topic) != id {
			continue // made anew: its offsets mean nothing there
		}
		i, known := at[k.topic]
		if !known {
			i = len(req.Topics)
			at[k.topic], names[id] = i, k.topic
			t := kmsg.NewOffsetCommitRequestTopic()
			t.Topic, t.TopicID = k.topic, id
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = k.num, one.s.offset, one.s.epoch, &one.s.saved
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, p)
	}
	resp, err := req.RequestWith(ctx, c.cl)
	if err != nil {
		return nil, err
	}
	for i := range resp.Topics {
		if t := &resp.Topics[i]; t.Topic == "" {
			t.Topic = names[t.TopicID]
		}
	}
	return resp, nil
}
