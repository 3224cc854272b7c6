package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// compare holds the topics that exist against Declare and reports every difference
// at once. It changes nothing; what Declare leaves open is not compared.
func (s *Group) compare(ctx context.Context, cl *kgo.Client, topics map[string]topicFacts) error {
	names := slices.Sorted(maps.Keys(topics))
	settings, err := s.settingsOf(ctx, cl, names)
	if err != nil {
		return err
	}
	var diffs []string
	for _, name := range names {
		for _, d := range s.cfg.Declare.differences(topics[name], settings[name]) {
			diffs = append(diffs, fmt.Sprintf("topic %q: %s", name, d))
		}
	}
	if len(diffs) == 0 {
		return nil
	}
	return &longshore.Error{Code: longshore.CodeMismatch, Op: s.opening(), Source: s.name(), Err: errors.New(strings.Join(diffs, ", ")),
		Hint: "change the topic with Kafka's own tools, or correct Declare; without Declare a topic is used as it is"}
}

// differences are of one topic. A topic without a partition has no leader yet: the
// broker has said nothing about it.
func (d *Declare) differences(t topicFacts, settings map[string]string) (diffs []string) {
	if t.partitions == 0 {
		return nil
	}
	if t.partitions != int(d.Partitions) {
		diffs = append(diffs, fmt.Sprintf("Partitions is %d there, %d here", t.partitions, d.Partitions))
	}
	// Replicas may differ by partition while they are being moved; one that differs is enough.
	if d.Replicas > 0 {
		for _, n := range t.replicas {
			if n != int(d.Replicas) {
				diffs = append(diffs, fmt.Sprintf("Replicas is %d there, %d here", n, d.Replicas))
				break
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(d.Settings)) {
		switch have, ok := settings[k]; {
		case !ok: // an older broker, or a typing error
			diffs = append(diffs, fmt.Sprintf("%s is not known there, %q here", k, d.Settings[k]))
		case !sameSetting(have, d.Settings[k]):
			diffs = append(diffs, fmt.Sprintf("%s is %q there, %q here", k, have, d.Settings[k]))
		}
	}
	return diffs
}

// sameSetting also takes what the broker writes in another way: "TRUE", "0.50",
// "compact, delete".
func sameSetting(have, want string) bool {
	if a, err := strconv.ParseInt(have, 10, 64); err == nil {
		b, err := strconv.ParseInt(strings.TrimSpace(want), 10, 64)
		return err == nil && a == b
	}
	if a, err := strconv.ParseFloat(have, 64); err == nil {
		b, err := strconv.ParseFloat(strings.TrimSpace(want), 64)
		return err == nil && a == b
	}
	if have == "true" || have == "false" {
		return strings.EqualFold(have, strings.TrimSpace(want))
	}
	return slices.Equal(listed(have), listed(want))
}

// listed sorts a value that is a list, as the broker may answer in another order.
func listed(v string) []string {
	parts := strings.Split(v, ",")
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
	}
	slices.Sort(parts)
	return parts
}

// settingsOf asks for the declared settings only, and not at all if there are none:
// it takes a permission of its own.
func (s *Group) settingsOf(ctx context.Context, cl *kgo.Client, topics []string) (map[string]map[string]string, error) {
	if len(topics) == 0 || len(s.cfg.Declare.Settings) == 0 {
		return nil, nil //nolint:nilnil // nothing to ask for
	}
	answer, err := cluster.First(ctx, cl, func() kmsg.Request {
		req := kmsg.NewPtrDescribeConfigsRequest()
		for _, name := range topics {
			r := kmsg.NewDescribeConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
			r.ConfigNames = slices.Sorted(maps.Keys(s.cfg.Declare.Settings))
			req.Resources = append(req.Resources, r)
		}
		return req
	})
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for _, r := range answer.(*kmsg.DescribeConfigsResponse).Resources { //nolint:errcheck,forcetypeassert // the answer to this request
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, brokerError(fmt.Sprintf("read the settings of kafka topic %q", r.ResourceName), r.ResourceName, err)
		}
		all[r.ResourceName] = map[string]string{}
		for _, c := range r.Configs {
			if c.Value != nil { // nil: a value that the broker does not show
				all[r.ResourceName][c.Name] = *c.Value
			}
		}
	}
	return all, nil
}
