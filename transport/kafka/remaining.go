package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// Remaining counts what the group has not committed of its topics, and its members. What is
// done above a committed position does not count; offsets without a record do, until a member
// has passed them. Errors: those of Open.
func (s *Group) Remaining(ctx context.Context) (transport.Remaining, error) {
	op := "count what remains for " + s.title() + " at " + s.b.address()
	if s.group == "" || s.cfg.Pattern {
		return transport.Remaining{}, &longshore.Error{Code: longshore.CodeUnsupported, Op: op, Source: s.name(),
			Err: errors.New("only a group of topics that are named commits how far it has come"), Hint: "name the group and its topics"}
	}
	return withAdmin(s.b, func(cl *kgo.Client, adm *kadm.Client) (r transport.Remaining, err error) {
		found, err := s.look(ctx, cl)
		if err == nil && len(found.missing) > 0 {
			return r, s.notFound(ctx, cl, found.missing)
		}
		if err != nil {
			return r, s.b.opened(op, s.name(), err)
		}
		// The ends first: what is published meanwhile counts the next time, and a commit never
		// lies beyond them.
		logs, err := logsOf(ctx, cl, s.topics, s.committedOnly())
		if err != nil {
			return r, s.b.failure(op, s.name(), err)
		}
		done, err := s.b.committed(ctx, cl, adm, s.group)
		if err != nil {
			return r, s.b.failure(op, s.name(), err)
		}
		members, err := membersOf(ctx, adm, s.group)
		if err != nil {
			return r, s.b.failure(op, s.name(), err)
		}
		r.Exact = true
		for _, topic := range slices.Sorted(slices.Values(s.topics)) {
			r.Add(transport.Place{Name: topic, Ready: s.undone(topic, logs, done)})
		}
		r.Consumers = int64(len(members))
		for i := range r.Of {
			r.Of[i].Consumers = r.Consumers
		}
		return r, nil
	})
}

// undone is how many offsets of a topic are in the log and not done.
func (s *Group) undone(topic string, logs map[cluster.Partition]cluster.Extent, done Positions) (sum int64) {
	for key, log := range logs {
		if key.Topic != topic {
			continue
		}
		at, committed := done[topic][key.Num]
		from := max(at.Offset, log.Start)
		// Without a commit the group has read nothing: where it would begin decides what remains.
		if !committed && s.cfg.Start == Latest {
			from = log.End
		}
		sum += max(0, log.End-from)
		// Of what is done above the position only the part that is still in the log counts:
		// retention may have deleted the rest.
		for _, r := range at.Done {
			sum -= max(0, min(r.To, log.End)-max(r.From, from))
		}
	}
	return max(0, sum)
}

// Neighbour is another topic, consumed by the same group. It must exist.
func (s *Group) Neighbour(name string) transport.Source {
	cfg := s.cfg
	// What is declared is about the first topic; dead letters are read from their beginning.
	cfg.Declare, cfg.Pattern, cfg.Start = Declare{}, false, Earliest
	if s.cast {
		return s.b.Broadcast([]string{name}, BroadcastConfig{Start: Earliest, Isolation: cfg.Isolation, Window: cfg.Window})
	}
	return s.b.Group(s.group, []string{name}, cfg)
}

// Incarnation names the topics' identities, which brokers give from 2.8 on. Errors: those of
// Open.
func (s *Group) Incarnation(ctx context.Context) (string, error) {
	return withAdmin(s.b, func(cl *kgo.Client, _ *kadm.Client) (string, error) {
		resp, err := cluster.Metadata(ctx, cl, s.topics...)
		if err != nil {
			return "", s.b.failure("look at "+s.title()+" at "+s.b.address(), s.name(), err)
		}
		ids := map[string]string{}
		for _, t := range resp.Topics {
			switch err := kerr.ErrorForCode(t.ErrorCode); {
			case errors.Is(err, kerr.UnknownTopicOrPartition):
				return "", s.notFound(ctx, cl, []string{orEmpty(t.Topic)})
			case err != nil:
				return "", topicError(s, t.Topic, err)
			}
			ids[orEmpty(t.Topic)] = hex.EncodeToString(t.TopicID[:])
		}
		all := make([]string, 0, len(ids))
		for _, topic := range slices.Sorted(maps.Keys(ids)) {
			all = append(all, topic+"="+ids[topic])
		}
		return strings.Join(all, " "), nil
	})
}
