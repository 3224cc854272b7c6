package cluster

import (
	"context"
	"iter"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Partition names a partition of whatever topic has the name now.
type Partition struct {
	Topic string // whatever topic has the name now
	Num   int32  // within the topic
}

// Extent is where a log begins and ends.
type Extent struct {
	Start, End int64 // the first offset that is kept, and the one after the last
	Known      bool  // false: its leader did not answer soon enough
}

// The times that ListOffsets takes alongside timestamps.
const (
	Oldest int64 = -2 // the start of the log
	Newest int64 = -1 // its end
)

// AnswerWait bounds a question to the leaders of partitions: one that does not answer must
// not hold up the partitions of the others.
const AnswerWait = 3 * time.Second

// ListOffsets asks for the offset at a time: Oldest, Newest, or milliseconds. committed
// leaves out what belongs to open transactions. Partitions whose leaders cannot say, or not
// soon enough, are missing from the result; the only error is that of ctx.
func ListOffsets(ctx context.Context, cl *kgo.Client, nums map[string][]int32, at int64, committed bool) (map[Partition]int64, error) {
	if len(nums) == 0 {
		return nil, ctx.Err()
	}
	soon, cancel := context.WithTimeout(ctx, AnswerWait)
	defer cancel()
	found := map[Partition]int64{}
	for _, shard := range cl.RequestSharded(soon, offsetsRequest(nums, at, committed)) {
		resp, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if shard.Err != nil || !ok {
			continue
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				if kerr.ErrorForCode(p.ErrorCode) == nil {
					found[Partition{t.Topic, p.Partition}] = p.Offset
				}
			}
		}
	}
	return found, ctx.Err()
}

func offsetsRequest(nums map[string][]int32, at int64, committed bool) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	if committed {
		req.IsolationLevel = 1
	}
	for topic, parts := range nums {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, num := range parts {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = num, at
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

const (
	extentTries = 10
	extentPause = 250 * time.Millisecond
	extentMost  = extentTries * extentPause
)

// Extents asks for the ends of logs, for a while: a group may assign new partitions before
// the client has heard of them.
func Extents(ctx context.Context, cl *kgo.Client, nums map[string][]int32, committed bool) (map[Partition]Extent, error) {
	logs := map[Partition]Extent{}
	began := time.Now()
	for try := 0; ; try++ {
		starts, err := ListOffsets(ctx, cl, nums, Oldest, committed)
		if err != nil {
			return nil, err
		}
		ends, err := ListOffsets(ctx, cl, answeredOf(nums, starts), Newest, committed)
		if err != nil {
			return nil, err
		}
		missing := false
		for k := range Each(nums) {
			start, ok1 := starts[k]
			end, ok2 := ends[k]
			if ok1 && ok2 {
				logs[k] = Extent{start, end, true}
			}
			missing = missing || !ok1 || !ok2
		}
		if !missing || try == extentTries || time.Since(began) >= extentMost {
			return logs, ctx.Err()
		}
		cl.ForceMetadataRefresh()
		t := time.NewTimer(extentPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// answeredOf are the partitions that an answer names: a silent leader is not asked twice.
func answeredOf(nums map[string][]int32, known map[Partition]int64) map[string][]int32 {
	some := map[string][]int32{}
	for k := range Each(nums) {
		if _, ok := known[k]; ok {
			some[k.Topic] = append(some[k.Topic], k.Num)
		}
	}
	return some
}

// Each yields all partitions.
func Each(nums map[string][]int32) iter.Seq[Partition] {
	return func(yield func(Partition) bool) {
		for topic, parts := range nums {
			for _, num := range parts {
				if !yield(Partition{topic, num}) {
					return
				}
			}
		}
	}
}
