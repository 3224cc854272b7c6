package kafka

import (
	"strings"
	"testing"

	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// Many partitions with much to save go in commits that a coordinator can write: Kafka
// 4.3.1 refuses one of 400 partitions with 4,000 characters each as a whole
// (UNKNOWN_SERVER_ERROR), and none of them would ever have a position again. F-C05.
func TestCommitOfManyPartitionsGoesInParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 30, 400, 5000} {
		batch := map[tp]*pending{}
		for i := range int32(n) { //nolint:gosec // small
			batch[tp{Topic: "orders", Num: i}] = &pending{s: offsets.Snapshot{Offset: int64(i), Saved: strings.Repeat("x", offsets.DefaultBudget)}}
		}
		seen := map[tp]bool{}
		all := parts(batch, func(tp) bool { return false })
		for _, part := range all {
			size := 0
			for k, one := range part {
				if seen[k] || one != batch[k] {
					t.Fatalf("%v twice, or another", k)
				}
				seen[k] = true
				size += len(one.s.Saved)
			}
			if size > commitBytes {
				t.Errorf("%d partitions in a commit of %d bytes", len(part), size)
			}
		}
		if len(seen) != n || len(all) > 1+n*(offsets.DefaultBudget+200)/commitBytes*2 {
			t.Errorf("%d of %d partitions in %d commits", len(seen), n, len(all))
		}
	}
}

// What handlers have published in an outage is written in transactions that take no longer than
// one may.
func TestTransactionOfManyBytesGoesInParts(t *testing.T) {
	t.Parallel()
	batch := map[tp]*pending{}
	for i := range int32(20) {
		batch[tp{Topic: "orders", Num: i}] = &pending{outputs: []*output{{bytes: 3 << 20}}}
	}
	batch[tp{Topic: "orders", Num: 20}] = &pending{outputs: []*output{{bytes: 3 * transactionBytes}}} // alone in its part
	n := 0
	for _, part := range parts(batch, func(tp) bool { return false }) {
		bytes, most := int64(0), int64(0)
		for _, one := range part {
			n++
			bytes, most = bytes+one.outputs[0].bytes, max(most, one.outputs[0].bytes)
		}
		if bytes > transactionBytes && bytes != most {
			t.Errorf("%d partitions with %d bytes in a transaction", len(part), bytes)
		}
	}
	if n != len(batch) {
		t.Errorf("%d of %d partitions", n, len(batch))
	}
}
