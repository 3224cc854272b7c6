package cluster

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// F-C01: while a commit waited for the group to be joined, partitions went. It is sent as
// one of the new generation, whose partitions only this member protects: what went is not in
// it, with the client or without.
func TestCommitLeavesOutWhatWent(t *testing.T) {
	t.Parallel()
	id := [16]byte{7}
	for name, via := range map[string]func(map[Partition]Position, func(Partition) bool) *kmsg.OffsetCommitRequest{
		"with the client": func(positions map[Partition]Position, still func(Partition) bool) *kmsg.OffsetCommitRequest {
			req := kmsg.NewPtrOffsetCommitRequest()
			rt := kmsg.NewOffsetCommitRequestTopic()
			rt.Topic = "orders"
			for num := range int32(4) { // 3 is in the client's request and not in ours
				rp := kmsg.NewOffsetCommitRequestTopicPartition()
				rp.Partition = num
				rt.Partitions = append(rt.Partitions, rp)
			}
			req.Topics = append(req.Topics, rt)
			complete(req, positions, still)
			return req
		},
		"without it": func(positions map[Partition]Position, still func(Partition) bool) *kmsg.OffsetCommitRequest {
			req := kmsg.NewPtrOffsetCommitRequest()
			if names := addPositions(req, positions, still); len(positions) > 0 && names[id] != "orders" {
				t.Errorf("names %v", names)
			}
			return req
		},
	} {
		positions := map[Partition]Position{}
		for num := range int32(3) {
			positions[Partition{"orders", num}] = Position{TopicID: id, Offset: 5, Epoch: -1, Metadata: "saved"}
		}
		req := via(positions, func(k Partition) bool { return k.Num == 2 })
		if len(positions) != 1 || len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].TopicID != id {
			t.Errorf("%s: sent %+v, waiting for %d answers", name, req.Topics, len(positions))
			continue
		}
		if p := req.Topics[0].Partitions[0]; p.Partition != 2 || *p.Metadata != "saved" {
			t.Errorf("%s: sent %+v", name, p)
		}
		if req = via(positions, func(Partition) bool { return false }); len(positions) != 0 || len(req.Topics) != 0 {
			t.Errorf("%s: nothing is left, but sent %+v, waiting for %d answers", name, req.Topics, len(positions))
		}
	}
}
