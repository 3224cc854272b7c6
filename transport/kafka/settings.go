package kafka

import (
	"context"
	"errors"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Settings are those of the first topic and of the group, for tools that examine
// them: the topic's configuration under Kafka's own names, offsets.retention.minutes
// of the broker, and "partitions", "replicas", "group.state", "group.members" and
// "group.lag". What may not be read is left out. Errors: those of Open.
func (s *groupSource) Settings(ctx context.Context) (map[string]string, error) {
	op := "read the settings of " + s.title() + " at " + s.b.address()
	cl, err := kgo.NewClient(s.b.options()...)
	if err != nil {
		return nil, badConfig("Options", firstLine(err.Error()), "")
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

func (s *groupSource) groupSettings(ctx context.Context, adm *kadm.Client, out map[string]string) {
	lags, err := adm.Lag(ctx, s.group)
	if err != nil {
		return
	}
	lags.Each(func(l kadm.DescribedGroupLag) {
		if l.Error() != nil {
			return
		}
		out["group.state"] = l.State
		out["group.members"] = strconv.Itoa(len(l.Members))
		var lag int64
		for _, p := range l.Lag[s.topics[0]] {
			lag += max(p.Lag, 0)
		}
		out["group.lag"] = strconv.FormatInt(lag, 10)
	})
}
