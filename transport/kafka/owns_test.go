package kafka

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport"
)

// F-C01: while a commit waited for the group to be joined, a partition went, and another
// came back. It is sent as one of the new generation, whose partitions nobody but this
// member protects: what went, and the assignment before this one, are not in it.
func TestCommitOfPartitionsThatWent(t *testing.T) {
	t.Parallel()
	c := newConsumer(&groupSource{place: place{topics: []string{"orders"}}, group: "g"}, transport.OpenOptions{})
	batch := map[tp]*pending{}
	req := kmsg.NewPtrOffsetCommitRequest()
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = "orders"
	for num := range int32(3) {
		p := newPartition(c, partitionOf{topic: "orders", num: num}, 5, -1)
		p.t.Touch()
		batch[tp{"orders", num}] = p.uncommitted()
		c.parts[tp{"orders", num}] = p
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Partition = num
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	delete(c.parts, tp{"orders", 0})
	c.parts[tp{"orders", 1}] = newPartition(c, partitionOf{topic: "orders", num: 1}, 9, -1)
	c.complete(req, batch)
	if len(batch) != 1 || len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Partition != 2 {
		t.Errorf("sent %+v, waiting for %d answers", req.Topics, len(batch))
	}
	delete(c.parts, tp{"orders", 2})
	if c.complete(req, batch); len(batch) != 0 || len(req.Topics) != 0 {
		t.Errorf("nothing is left, but sent %+v, waiting for %d answers", req.Topics, len(batch))
	}
}
