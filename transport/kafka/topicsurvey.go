package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/edit"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// survey is what an opening finds of its topics.
type survey struct {
	cluster string                // the cluster's identity; "" on brokers that have none
	topics  map[string]topicFacts // by name
	missing []string              // those that do not exist
}

// topicFacts is a topic as the cluster has it.
type topicFacts struct {
	id         [16]byte // zero on brokers that give topics no identity
	partitions int      // how many it has
	replicas   []int    // of each partition
}

// look asks one broker for the topics, and whether the group may be used. The
// client itself would try again for half a minute; an opening must not.
func (s *Group) look(ctx context.Context, cl *kgo.Client) (survey, error) {
	names := s.topics
	if s.cfg.Pattern {
		names = nil
	}
	resp, err := cluster.Metadata(ctx, cl, names...)
	if err != nil {
		return survey{}, err
	}
	found := survey{topics: map[string]topicFacts{}}
	if resp.ClusterID != nil {
		found.cluster = *resp.ClusterID
	}
	for _, t := range resp.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition) && t.Topic != nil:
			found.missing = append(found.missing, *t.Topic)
		// What passes, as a topic without a leader, does not fail the opening: the client waits for it.
		case err != nil && !kerr.IsRetriable(err):
			return found, topicError(s, t.Topic, err)
		case t.Topic != nil:
			facts := topicFacts{id: t.TopicID, partitions: len(t.Partitions)}
			for _, p := range t.Partitions {
				facts.replicas = append(facts.replicas, len(p.Replicas))
			}
			found.topics[*t.Topic] = facts
		}
	}
	if s.cast { // it has no group
		return found, nil
	}
	return found, cluster.Coordinated(ctx, cl, s.group)
}

// listTopics notes what topics there are before those of a pattern are read, for who
// does not begin at their first records.
func (s *Group) listTopics(ctx context.Context, cl *kgo.Client) error {
	if !s.cfg.Pattern || s.cfg.Start == Earliest {
		return nil
	}
	resp, err := cluster.AllMetadata(ctx, cl)
	if err != nil {
		return err
	}
	topics := map[string]int{}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			topics[*t.Topic] = len(t.Partitions)
		}
	}
	s.starts.listed(topics)
	return nil
}

// topicError says which of the topics it is about.
func topicError(s *Group, topic *string, err error) error {
	name := s.name()
	if topic != nil {
		name = *topic
	}
	return s.b.failure(s.opening()+fmt.Sprintf(": topic %q", name), name, err)
}

// prepare looks, creates what is missing if it may, and complains of the rest.
func (s *Group) prepare(ctx context.Context, cl *kgo.Client, deadLetter string) (survey, error) {
	found, err := s.look(ctx, cl)
	if err != nil {
		return found, err
	}
	if s.cfg.Declare.Partitions == 0 {
		if len(found.missing) > 0 {
			return found, s.notFound(ctx, cl, found.missing)
		}
		return found, nil
	}
	if err := s.compare(ctx, cl, found.topics); err != nil { // before anything is created
		return found, err
	}
	if err := s.create(ctx, cl, s.cfg.Declare.Settings, found.missing...); err != nil {
		return found, err
	}
	if deadLetter != "" {
		if err := s.create(ctx, cl, nil, deadLetter); err != nil {
			return found, err
		}
	}
	if len(found.missing) > 0 { // their ids
		created := found.missing
		if found, err = s.look(ctx, cl); err == nil && len(found.missing) > 0 {
			found.missing = nil // not everywhere yet
			for _, name := range created {
				found.topics[name] = topicFacts{partitions: int(s.cfg.Declare.Partitions)}
			}
		}
	}
	return found, err
}

// declared is what prepare makes sure of, for people; "" if it only looks.
func (s *Group) declared(deadLetter string) string {
	if s.cfg.Declare.Partitions == 0 {
		return ""
	}
	parts := make([]string, len(s.topics), len(s.topics)+1)
	for i, t := range s.topics {
		parts[i] = fmt.Sprintf("topic %q", t)
	}
	if deadLetter != "" {
		parts = append(parts, fmt.Sprintf("dead-letter topic %q", deadLetter))
	}
	return strings.Join(parts, ", ")
}

// create makes topics. One that another instance has made in the same moment is as good. -1
// replicas is the broker's default (from 2.4 on).
func (s *Group) create(ctx context.Context, cl *kgo.Client, settings map[string]string, topics ...string) error {
	if len(topics) == 0 {
		return nil
	}
	configs := map[string]*string{}
	for k, v := range settings {
		configs[k] = kmsg.StringPtr(v)
	}
	// A broker before 2.4 refuses -1; there Declare has to say how many.
	replicas := s.cfg.Declare.Replicas
	if replicas == 0 {
		replicas = -1
	}
	resp, err := kadm.NewClient(cl).CreateTopics(ctx, s.cfg.Declare.Partitions, replicas, configs, topics...)
	if err != nil {
		return err
	}
	for _, t := range resp.Sorted() {
		if t.Err != nil && !errors.Is(t.Err, kerr.TopicAlreadyExists) {
			return brokerError(fmt.Sprintf("declare kafka topic %q", t.Topic), t.Topic, t.Err)
		}
		if t.Err == nil {
			s.starts.seen(t.Topic, 0)
		}
	}
	return nil
}

// notFound names a similar topic, if there is one.
func (s *Group) notFound(ctx context.Context, cl *kgo.Client, missing []string) error {
	similar := ""
	if all, err := kadm.NewClient(cl).ListTopics(ctx); err == nil {
		names := slices.Sorted(maps.Keys(all))
		if best := closest(missing[0], names); best != "" {
			similar = fmt.Sprintf(", similar: %q", best)
		}
	}
	return &longshore.Error{Code: longshore.CodeNotFound, Op: s.opening(), Source: s.name(),
		Err:    fmt.Errorf("%w%s", &wireError{text: fmt.Sprintf("topic %q does not exist", strings.Join(missing, ",")), kafka: kerr.UnknownTopicOrPartition}, similar),
		Hint:   "correct the name, create it, or set Declare",
		Fields: []longshore.Field{{Name: "topic", Value: strings.Join(missing, ",")}, {Name: "address", Value: s.b.address()}}}
}

// closest returns the name with the fewest edits, at most a third of its length.
func closest(name string, names []string) string {
	best, least := "", len(name)/3+1
	for _, n := range names {
		if d := edit.Distance(name, n); d < least {
			best, least = n, d
		}
	}
	return best
}
