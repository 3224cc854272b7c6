package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// GroupHasMembersError is why the positions of a group were not changed: its members would
// not notice, and commit their own.
type GroupHasMembersError struct {
	Group   string   // whose positions only its members may set
	Members []string // client and host of each, as far as known
}

// Error lists the members: they have to be stopped before positions can be set.
func (e *GroupHasMembersError) Error() string {
	if len(e.Members) == 0 {
		return fmt.Sprintf("group %q has members", e.Group)
	}
	members := "members"
	if len(e.Members) == 1 {
		members = "member"
	}
	return fmt.Sprintf("group %q has %d %s: %s", e.Group, len(e.Members), members, strings.Join(e.Members, ", "))
}

// SeedGroup commits positions for a group that has no members, so that it begins there when
// its first member joins; other positions of the group stay. Positions of [Broker.Ends],
// [Broker.Beginnings] and [Broker.GroupPositions], also of another group, can be given.
//
// Errors: [longshore.CodeState] with a [GroupHasMembersError] if the group has members; the
// broker checks that too, so a member that joins at the same moment is not a danger.
// [longshore.CodeNotFound] if a topic does not exist.
func (b *Broker) SeedGroup(ctx context.Context, group string, to Positions) error {
	op := fmt.Sprintf("seed kafka group %q at %s", group, b.address())
	_, err := withAdmin(b, func(cl *kgo.Client, adm *kadm.Client) (none struct{}, err error) {
		if err := vacant(ctx, adm, group); err != nil {
			return none, b.seedFailure(op, group, err)
		}
		if _, err := logsOf(ctx, cl, to.topics(), true); err != nil { // a commit of a topic that does not exist succeeds
			return none, b.seedFailure(op, group, err)
		}
		commit := kadm.Offsets{}
		for topic, partitions := range to {
			for num, at := range partitions {
				commit.Add(kadm.Offset{Topic: topic, Partition: num, At: at.Offset, LeaderEpoch: -1, Metadata: at.Saved})
			}
		}
		resp, err := adm.CommitOffsets(ctx, group, commit)
		if err == nil {
			err = resp.Error()
		}
		if errors.Is(err, kerr.UnknownMemberID) { // one joined just now
			err = &GroupHasMembersError{Group: group}
		}
		return none, b.seedFailure(op, group, err)
	})
	return err
}

// DropSeed deletes positions that [Broker.SeedGroup] committed, as if it had not been called.
//
// Errors: [longshore.CodeState] if the group has members, or if a position is another one by
// now: then the group has been used, and what it has done would be forgotten.
func (b *Broker) DropSeed(ctx context.Context, group string, seed Positions) error {
	op := fmt.Sprintf("drop the seed of kafka group %q at %s", group, b.address())
	_, err := withAdmin(b, func(cl *kgo.Client, adm *kadm.Client) (none struct{}, err error) {
		if err := vacant(ctx, adm, group); err != nil {
			return none, b.seedFailure(op, group, err)
		}
		now, err := b.committed(ctx, cl, adm, group)
		if err != nil {
			return none, b.seedFailure(op, group, err)
		}
		drop := kadm.TopicsSet{}
		for topic, partitions := range seed {
			for num, at := range partitions {
				switch is, ok := now[topic][num]; {
				case ok && is.Offset != at.Offset:
					return none, &longshore.Error{Code: longshore.CodeState, Op: op, Source: group,
						Err:  fmt.Errorf("position of %s/%d is %d, and was seeded as %d: the group has been used", topic, num, is.Offset, at.Offset),
						Hint: "move back what it has not done with a return route"}
				case ok:
					drop.Add(topic, num)
				}
			}
		}
		if len(drop) == 0 {
			return none, nil
		}
		resp, err := adm.DeleteOffsets(ctx, group, drop)
		if err == nil {
			err = resp.Error()
		}
		if errors.Is(err, kerr.NonEmptyGroup) || errors.Is(err, kerr.GroupSubscribedToTopic) {
			err = &GroupHasMembersError{Group: group}
		}
		return none, b.seedFailure(op, group, err)
	})
	return err
}

// seedFailure gives an error its code.
func (b *Broker) seedFailure(op, group string, err error) error {
	var has *GroupHasMembersError
	if errors.As(err, &has) {
		return &longshore.Error{Code: longshore.CodeState, Op: op, Source: group, Err: has, Hint: "stop the consumers of the group first, or choose another group"}
	}
	return b.failure(op, group, err)
}

// vacant returns a GroupHasMembersError if a group has members.
func vacant(ctx context.Context, adm *kadm.Client, group string) error {
	members, err := membersOf(ctx, adm, group)
	if err == nil && len(members) > 0 {
		return &GroupHasMembersError{Group: group, Members: members}
	}
	return err
}

// membersOf lists the members of a group of either protocol, as client and host. A group that
// does not exist has none.
func membersOf(ctx context.Context, adm *kadm.Client, group string) (members []string, err error) {
	g, err := describeGroup(ctx, adm, group)
	for _, m := range g.members {
		members = append(members, m.client+" at "+strings.TrimPrefix(m.host, "/"))
	}
	slices.Sort(members)
	return members, err
}
