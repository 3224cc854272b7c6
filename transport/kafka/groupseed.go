package kafka

import (
	"context"
	"fmt"

	"github.com/longshore-go/longshore"
)

// GroupSeed is the group of the consumers that a topic is to get, before they exist: with a
// position in each partition they miss nothing that is published from then on, whatever their
// Start says.
type GroupSeed struct {
	b            *Broker // the cluster
	group, topic string  // one topic, as a bridge moves one at a time
}

// Seed returns the seed of a group for one topic. It does no I/O.
func (b *Broker) Seed(group, topic string) *GroupSeed {
	return &GroupSeed{b: b, group: group, topic: topic}
}

// Prepare commits the end of each partition for the group. Called again it changes nothing.
//
// Errors: [longshore.CodeState] if the group has members, or if there are records which it has
// not done: they would be skipped, or taken for messages that were moved.
func (s *GroupSeed) Prepare(ctx context.Context) error {
	ends, err := s.b.Ends(ctx, s.topic)
	if err != nil {
		return err
	}
	done, err := s.b.GroupPositions(ctx, s.group)
	if err != nil {
		return err
	}
	begins, err := s.b.Beginnings(ctx, s.topic)
	if err != nil {
		return err
	}
	var open int64
	for partition, end := range ends[s.topic] {
		at, known := done[s.topic][partition]
		if !known {
			at = begins[s.topic][partition]
		}
		open += max(0, end.Offset-at.Offset)
		for _, r := range at.Done {
			open -= r.To - r.From
		}
	}
	if open > 0 {
		return &longshore.Error{Code: longshore.CodeState, Op: fmt.Sprintf("seed kafka group %q at %s", s.group, s.b.address()), Source: s.group,
			Err:  fmt.Errorf("not empty: topic %q has %d records that the group has not done", s.topic, open),
			Hint: "let the group consume them, or move to another topic"}
	}
	return s.b.SeedGroup(ctx, s.group, ends)
}

// Drop takes the positions away that Prepare committed. Errors: those of [Broker.DropSeed].
func (s *GroupSeed) Drop(ctx context.Context) error {
	ends, err := s.b.Ends(ctx, s.topic)
	if err != nil {
		return err
	}
	return s.b.DropSeed(ctx, s.group, ends)
}
