package share

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Whatever a broker answers to a fetch of a share group, each offset that was acquired is handed
// out or acknowledged once, in order, and no other is.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{}, int64(0), int64(9), int64(5), int64(12), int16(1))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60}, int64(3), int64(3), int64(-1), int64(1), int16(-2))
	f.Fuzz(func(t *testing.T, batches []byte, first, last, first2, last2 int64, count int16) {
		const most = 1 << 12
		rp := kmsg.NewShareFetchResponseTopicPartition()
		rp.Records = batches
		want := map[int64]bool{}
		for _, r := range [][2]int64{{first % most, last % most}, {first2 % most, last2 % most}} {
			a := kmsg.NewShareFetchResponseTopicPartitionAcquiredRecord()
			a.FirstOffset, a.LastOffset, a.DeliveryCount = r[0], r[1], count
			rp.AcquiredRecords = append(rp.AcquiredRecords, a)
			for o := max(r[0], 0); o <= r[1]; o++ {
				want[o] = true
			}
		}
		d := decode("orders", Part{}, &rp, kgo.DefaultDecompressor(), time.Second)
		next := int64(-1)
		for _, r := range d.records {
			if !want[r.Offset] || r.Offset < next || r.Deliveries < 1 {
				t.Fatalf("offset %d, delivery %d, after %d", r.Offset, r.Deliveries, next)
			}
			next = r.Offset + 1
			delete(want, r.Offset)
		}
		for _, g := range d.gaps {
			for o := g.first; o <= g.last; o++ {
				if !want[o] {
					t.Fatalf("offset %d is acknowledged and was not acquired, or twice", o)
				}
				delete(want, o)
			}
		}
		if len(want) > 0 {
			t.Fatalf("%d offsets stay locked", len(want))
		}
	})
}
