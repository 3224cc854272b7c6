package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Settings are those of the first topic and of the group, for tools that examine
// them: the topic's configuration under Kafka's own names, offsets.retention.minutes
// of the broker, and "partitions", "replicas", "group.state", "group.members" (of
// this topic; "group.elsewhere" of others), "group.lag", "records" (ever written) and
// "group.behind" (partition:position of those that lag). What may not be read is left out. Errors: those of Open.
func (s *Group) Settings(ctx context.Context) (map[string]string, error) {
	op := "read the settings of " + s.title() + " at " + s.b.address()
	cl, err := kgo.NewClient(s.b.options()...)
	if err != nil {
		return nil, badOptions(err)
	}
	defer cl.Close()
	found, err := s.look(ctx, cl)
	if err != nil {
		return nil, s.b.opened(op, s.name(), err)
	}
	if len(found.missing) > 0 {
		return nil, s.notFound(ctx, cl, found.missing)
	}
	adm, out := kadm.NewClient(cl), map[string]string{}
	topic := s.topics[0]
	topics, err := adm.ListTopics(ctx, topic)
	if err != nil {
		return nil, s.b.failure(op, s.name(), err)
	}
	out["partitions"] = strconv.Itoa(len(topics[topic].Partitions))
	for _, p := range topics[topic].Partitions {
		out["replicas"] = strconv.Itoa(len(p.Replicas))
	}
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	if err != nil && !denied(err) {
		return nil, s.b.failure(op, s.name(), err)
	}
	copyConfigs(out, configs, nil)
	if len(topics[topic].Partitions) > 0 {
		brokers, err := adm.DescribeBrokerConfigs(ctx, topics[topic].Partitions.Sorted()[0].Leader)
		if err == nil {
			copyConfigs(out, brokers, map[string]bool{"offsets.retention.minutes": true})
		}
	}
	if s.group != "" {
		s.groupSettings(ctx, adm, out)
	}
	return out, nil
}

func denied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// copyConfigs copies those of the names that are not secret; nil: all.
func copyConfigs(out map[string]string, from kadm.ResourceConfigs, only map[string]bool) {
	for _, r := range from {
		for _, c := range r.Configs {
			if c.Value != nil && !c.Sensitive && (only == nil || only[c.Key]) {
				out[c.Key] = *c.Value
			}
		}
	}
}

// reads tells whether a member of the group is there for the topic. One whose
// subscription cannot be read counts.
func reads(m *kadm.DescribedGroupMember, topic string) bool {
	joined, ok := m.Join.AsConsumer()
	if ok && slices.Contains(joined.Topics, topic) {
		return true
	}
	assigned, has := m.Assigned.AsConsumer()
	if has {
		for _, t := range assigned.Topics {
			if t.Topic == topic {
				return true
			}
		}
	}
	return !ok && !has
}

func (s *Group) groupSettings(ctx context.Context, adm *kadm.Client, out map[string]string) {
	lags, err := adm.Lag(ctx, s.group)
	if err != nil {
		return
	}
	lags.Each(func(l kadm.DescribedGroupLag) {
		if l.Error() != nil {
			return
		}
		out["group.state"] = l.State
		here := 0
		for i := range l.Members {
			if reads(&l.Members[i], s.topics[0]) {
				here++
			}
		}
		out["group.members"], out["group.elsewhere"] = strconv.Itoa(here), strconv.Itoa(len(l.Members)-here)
		var lag, written int64
		var behind []string
		for _, p := range l.Lag[s.topics[0]] {
			lag += max(p.Lag, 0)
			written += max(p.End.Offset, 0)
			if p.Lag > 0 {
				behind = append(behind, fmt.Sprintf("%d:%d", p.Partition, p.Commit.At))
			}
		}
		slices.Sort(behind)
		out["group.behind"], out["records"] = strings.Join(behind, ","), strconv.FormatInt(written, 10)
		out["group.lag"] = strconv.FormatInt(lag, 10)
	})
}
