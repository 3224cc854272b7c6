package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// Done reports what the group has done with in the first topic, from its commits and
// the text alongside them, without joining it. What it returns is asked for the records
// of a partition in ascending order. A group that does not exist has done nothing.
func (s *Group) Done(ctx context.Context) (func(*longshore.Delivery) bool, error) {
	if s.group == "" {
		return func(*longshore.Delivery) bool { return false }, nil
	}
	op := "read what " + s.title() + " has done at " + s.b.address()
	// A client of its own, and without a group: one that joined would take partitions away from
	// members at work.
	cl, err := kgo.NewClient(s.b.options()...)
	if err != nil {
		return nil, badOptions(err)
	}
	defer cl.Close()
	found, err := s.look(ctx, cl)
	if err != nil {
		return nil, s.b.opened(op, s.name(), err)
	}
	topic := s.topics[0]
	if len(found.missing) > 0 {
		return nil, s.notFound(ctx, cl, found.missing)
	}
	read, err := kadm.NewClient(cl).FetchOffsets(ctx, s.group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, s.b.failure(op, s.name(), err)
	}
	below, above := map[int32]int64{}, map[int32]*offsets.Saved{}
	for num, r := range read[topic] {
		if r.Err != nil {
			return nil, s.b.failure(op, s.name(), r.Err)
		}
		mark := offsets.MarkOf(found.cluster, found.topics[topic].id, topic)
		// A commit outlives its topic. Its offsets say nothing of a topic of the same name that was
		// made later.
		if offsets.FromDeletedTopic(r.Metadata, mark, r.At) {
			continue
		}
		below[num] = r.At
		if saved, ok := offsets.Decode(r.Metadata, mark, r.At); ok {
			above[num] = &saved
		}
	}
	return func(d *longshore.Delivery) bool {
		r, ok := d.Native().(*kgo.Record)
		if !ok || r.Topic != topic {
			return false
		}
		// Below the committed offset everything is done; above it what the metadata lists.
		if r.Offset < below[r.Partition] {
			return true
		}
		saved := above[r.Partition]
		return saved != nil && saved.Has(r.Offset, r.LeaderEpoch)
	}, nil
}

// Truncate removes the records of the first topic before an offset of each
// partition (DeleteRecords). There is no way back.
func (s *Group) Truncate(ctx context.Context, before map[int32]int64) error {
	op := fmt.Sprintf("delete records of kafka topic %q at %s", s.topics[0], s.b.address())
	cl, err := kgo.NewClient(s.b.options()...)
	if err != nil {
		return badOptions(err)
	}
	defer cl.Close()
	offsets := kadm.Offsets{}
	for num, at := range before {
		offsets.Add(kadm.Offset{Topic: s.topics[0], Partition: num, At: at, LeaderEpoch: -1})
	}
	resp, err := kadm.NewClient(cl).DeleteRecords(ctx, offsets)
	if err != nil {
		return s.b.failure(op, s.name(), err)
	}
	var errs []error
	resp.Each(func(r kadm.DeleteRecordsResponse) {
		if r.Err != nil {
			// The others are deleted all the same, so every partition that was not is named.
			errs = append(errs, brokerError(fmt.Sprintf("%s, partition %d", op, r.Partition), s.name(), r.Err))
		}
	})
	return errors.Join(errs...)
}
