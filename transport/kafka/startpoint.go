package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// startpoints decides where new assignments begin, and makes their partitions.
type startpoints struct {
	src     *Group        // where the configuration says to begin
	cl      *kgo.Client   // asks leaders for the ends of their logs
	with    *surroundings // what the new partitions share
	topics  *topics       // identities: a commit of a deleted topic is no position in its successor
	life    *lifetime     // fails where a position is out of range and OutOfRange says so
	reports *reports      // positions outside the log

	recreated func(topics []string) // takes the topics whose identity has changed
}

// commitRead is what the group had for a partition.
type commitRead struct {
	id     [16]byte // of the topic, where the answer has it
	offset int64    // as committed; negative: none
	epoch  int32    // of the leader that had the record before it, which shows a log that was cut off
	saved  string   // the metadata of the commit
}

// extents asks for the ends of logs and for the identities of their topics.
func (s *startpoints) extents(ctx context.Context, nums map[string][]int32) (map[tp]cluster.Extent, error) {
	names := make([]string, 0, len(nums))
	for t := range nums {
		names = append(names, t)
	}
	if resp, err := cluster.Metadata(ctx, s.cl, names...); err == nil {
		s.recreated(s.topics.learn(resp))
	}
	return cluster.Extents(ctx, s.cl, nums, s.src.committedOnly())
}

// begin makes the state of a new assignment.
func (s *startpoints) begin(ctx context.Context, key partitionOf, r commitRead, committed bool, log cluster.Extent) (*partition, error) {
	s.src.starts.read(key.topic, key.id)
	if committed && s.fromOtherTopic(key, r) {
		r, committed = commitRead{}, false
	}
	if committed {
		return s.resume(key, r, log)
	}
	at, known := s.src.starts.get(key)
	if known {
		if moved, gone, err := s.inRange(key, at, log); err != nil {
			return nil, err
		} else if gone {
			at = moved
		}
	} else {
		var err error
		if at, err = s.startOf(ctx, key, log); err != nil {
			return nil, err
		}
		if at < 0 { // its leader is away: the first records will show where it begins
			return newPartition(s.with, s.topics, key, -1, -1), nil
		}
		s.src.starts.set(key, at)
	}
	p := newPartition(s.with, s.topics, key, at, -1)
	p.t.Touch() // so that a partition without records has a position too
	return p, nil
}

// resume begins at the group's position.
func (s *startpoints) resume(key partitionOf, r commitRead, log cluster.Extent) (*partition, error) {
	at, gone, err := s.inRange(key, r.offset, log)
	if err != nil {
		return nil, err
	}
	if !gone {
		p := newPartition(s.with, s.topics, key, r.offset, r.epoch)
		p.ledger.at = r.offset
		p.ledger.told = told{r.offset, r.saved}
		inherit(&p.t, p.mark, r.saved, r.offset)
		return p, nil
	}
	p := newPartition(s.with, s.topics, key, at, -1)
	if r.offset < log.Start { // its head was deleted: what was done after that still is
		p.ledger.told = told{r.offset, r.saved}
		inherit(&p.t, p.mark, r.saved, r.offset)
	}
	p.t.Touch()
	return p, nil
}

// inRange compares a position with the log. gone: it is not in it, read on at the other.
func (s *startpoints) inRange(key partitionOf, position int64, log cluster.Extent) (at int64, gone bool, err error) {
	if !log.Known {
		return position, false, nil // the fetch will show
	}
	var gap string
	reason := transport.SkippedExpired
	switch {
	case position < log.Start:
		gap = fmt.Sprintf("%d offsets were deleted before they were read", log.Start-position)
	case position > log.End:
		gap, reason = fmt.Sprintf("it lies %d offsets beyond the end", position-log.End), transport.SkippedTruncated
	default:
		return position, false, nil
	}
	at = log.Start
	policy := "at the oldest record"
	switch s.src.cfg.OutOfRange {
	case ToEarliest:
	case ToLatest:
		at, policy = log.End, "at the end"
	case Fail:
		err := &longshore.Error{Code: longshore.CodeRefused, Op: "read " + key.String() + " for " + s.src.title(), Source: s.src.name(),
			Err:  fmt.Errorf("position %d is not in the log (%d to %d): %s", position, log.Start, log.End, gap),
			Hint: "set the group's offset by hand, or OutOfRange to ToEarliest or ToLatest"}
		s.life.fail(err)
		return 0, false, err
	}
	s.reports.Event(transport.Event{Kind: transport.EventSkipped, Skipped: reason,
		Text: fmt.Sprintf("%s: position %d of %s is not in the log (%d to %d): %s; reading on %s, offset %d", s.src.title(), position, key, log.Start, log.End, gap, policy, at)})
	return at, true, nil
}

// unknown is where the client begins to read a partition whose leader could not say.
func (s *startpoints) unknown(key partitionOf) kgo.Offset {
	switch {
	case s.src.cfg.Start == Earliest, s.src.starts.came(key):
		return kgo.NewOffset().AtStart()
	case s.src.cfg.Start == Latest:
		return kgo.NewOffset().AtEnd()
	}
	return kgo.NewOffset().AfterMilli(int64(s.src.cfg.Start))
}

// startOf is where to begin without a position; -1 if the leader does not answer, which
// must not hold up other partitions. What is in a recreated topic, or in partitions that
// were added, came while the topic was read.
func (s *startpoints) startOf(ctx context.Context, key partitionOf, log cluster.Extent) (int64, error) {
	switch {
	case !log.Known:
		return -1, nil
	case s.src.cfg.Start == Earliest, s.src.starts.came(key):
		return log.Start, nil
	case s.src.cfg.Start == Latest:
		return log.End, nil
	}
	found, err := cluster.ListOffsets(ctx, s.cl, map[string][]int32{key.topic: {key.num}}, int64(s.src.cfg.Start), s.src.committedOnly())
	if err != nil {
		return 0, err
	}
	switch at, ok := found[key.tp()]; {
	case !ok: // its leader has gone silent meanwhile
		return -1, nil
	case at >= 0:
		return at, nil
	}
	return log.End, nil // all records are older
}

// fromOtherTopic reports whether a position was committed in a deleted topic that had the
// name of this one. Brokers drop the positions with the topic, but not those that are
// committed late.
func (s *startpoints) fromOtherTopic(key partitionOf, r commitRead) bool {
	none := [16]byte{}
	if (r.id == none || key.id == none || r.id == key.id) && !offsets.FromDeletedTopic(r.saved, s.topics.mark(key), r.offset) {
		return false
	}
	s.src.starts.formerly(key.topic)
	s.reports.notice(fmt.Sprintf("%s: position %d of %s belongs to a topic of this name that was deleted; the new one is read from its beginning", s.src.title(), r.offset, key), nil)
	return true
}
