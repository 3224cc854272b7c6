package txn

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// Whatever the broker answers to positions in a transaction, a partition that it leaves out or
// refuses is never taken for one that it took.
func FuzzRefusals(f *testing.F) {
	sent := map[cluster.Partition]cluster.Position{{Topic: "orders", Num: 0}: {}, {Topic: "orders", Num: 1}: {}}
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.Version = 3
	topic := kmsg.NewTxnOffsetCommitResponseTopic()
	topic.Topic = "orders"
	for num := range int32(2) {
		one := kmsg.NewTxnOffsetCommitResponseTopicPartition()
		one.Partition, one.ErrorCode = num, int16(num)*3
		topic.Partitions = append(topic.Partitions, one)
	}
	resp.Topics = append(resp.Topics, topic)
	f.Add(resp.AppendTo(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		resp := kmsg.NewPtrTxnOffsetCommitResponse()
		resp.Version = 3
		if resp.ReadFrom(raw) != nil {
			return
		}
		took, refusedBy := map[cluster.Partition]bool{}, map[cluster.Partition]bool{}
		for _, topic := range resp.Topics {
			name := topic.Topic
			if name == "" {
				name = "orders" // by its identity
			}
			for _, one := range topic.Partitions {
				k := cluster.Partition{Topic: name, Num: one.Partition}
				if _, ok := sent[k]; ok {
					took[k] = true
					refusedBy[k] = refusedBy[k] || one.ErrorCode != 0
				}
			}
		}
		refused, err := refusals(resp, map[[16]byte]string{{}: "orders"}, sent)
		for k := range sent {
			if err == nil && refused[k] == nil && (!took[k] || refusedBy[k]) {
				t.Fatalf("%v was answered %v, refused %v, and counts as taken", k, took[k], refusedBy[k])
			}
		}
	})
}
