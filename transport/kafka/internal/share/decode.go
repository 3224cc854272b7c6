package share

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// decoded is what an answer brought for one partition.
type decoded struct {
	records []*Record  // with an offset that was acquired for us
	gaps    []ackRange // acquired offsets without a record: compacted, markers of transactions, or undecodable
	err     error      // why a batch could not be decoded; its records are released
	lost    int        // offsets released for that reason
}

// decode makes records of an answer. Offsets that the broker has acquired for us and that
// have no record are acknowledged as gaps, or they would stay locked. Those of a batch that
// cannot be decoded are released, since it may have been damaged on its way only.
func decode(topic string, part Part, rp *kmsg.ShareFetchResponseTopicPartition, unpack kgo.Decompressor, lock time.Duration) (d decoded) {
	raw := kmsg.NewFetchResponseTopicPartition()
	raw.Partition, raw.RecordBatches = rp.Partition, rp.Records
	var fp kgo.FetchPartition
	if len(rp.Records) > 0 {
		fp, _ = kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Topic: topic, Partition: rp.Partition}, &raw, unpack, nil)
	}
	d.err = fp.Err
	kind := int8(gapType)
	if d.err != nil || len(rp.Records) == 0 {
		kind = int8(Release)
	}
	gap := func(first, last int64) {
		if first > last {
			return
		}
		d.gaps = append(d.gaps, ackRange{first, last, kind})
		if kind != gapType {
			d.lost += int(last - first + 1)
		}
	}
	rs := fp.Records
	for _, a := range acquiredRanges(rp.AcquiredRecords) {
		next := a.FirstOffset
		for len(rs) > 0 && rs[0].Offset <= a.LastOffset {
			r := rs[0]
			rs = rs[1:]
			if r.Offset < next { // acquired by another member, and in the same batch
				continue
			}
			gap(next, r.Offset-1)
			next = r.Offset + 1
			d.records = append(d.records, &Record{Record: r, Part: part, Deliveries: max(int(a.DeliveryCount), 1), Lock: lock})
		}
		gap(next, a.LastOffset)
	}
	return d
}

// acquiredRanges are those of an answer, in order and without overlaps.
func acquiredRanges(in []kmsg.ShareFetchResponseTopicPartitionAcquiredRecord) []kmsg.ShareFetchResponseTopicPartitionAcquiredRecord {
	all := slices.Clone(in)
	slices.SortStableFunc(all, func(a, b kmsg.ShareFetchResponseTopicPartitionAcquiredRecord) int {
		return cmp.Compare(a.FirstOffset, b.FirstOffset)
	})
	out, end := all[:0], int64(-1)
	for _, a := range all {
		a.FirstOffset = max(a.FirstOffset, end+1)
		if a.FirstOffset > a.LastOffset {
			continue
		}
		end = a.LastOffset
		out = append(out, a)
	}
	return out
}
