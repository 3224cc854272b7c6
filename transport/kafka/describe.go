package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
)

// Vocabulary is that of Settings.
func (s *Group) Vocabulary() transport.Vocabulary { return transport.VocabularyKafka }

// Settings are those of the first topic and of the group, for tools that examine
// them: the topic's configuration under Kafka's own names, offsets.retention.minutes
// of the broker, and "partitions", "replicas", "group.state", "group.members" (of
// this topic; "group.elsewhere" of others), "group.clients" (their client ids, if they
// differ), "group.lag", "records" (ever written) and "group.behind" (partition:position of
// those that lag), and "transactions.open" (those that hold up readers of committed records). What may not be read is left out. Errors: those of Open.
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
	if s.committedOnly() {
		nums := map[string][]int32{topic: topics[topic].Partitions.Numbers()}
		if open, err := openTransactionsOf(ctx, cl, nums, time.Now()); err == nil && open != "" {
			out["transactions.open"] = open
		}
	}
	if s.group != "" {
		s.groupSettings(ctx, adm, out)
	}
	return out, nil
}

// denied reports whether the login may not ask, which leaves the rest of a description valid.
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

// groupMember is a member of the group.
type groupMember struct {
	id           string   // that the coordinator gave it
	client, host string   // what the member calls itself, and from where: versions of one service differ in the first
	topics       []string // that it subscribes to or was assigned
	partitions   int      // that it was assigned
	unknown      bool     // what it reads cannot be told
}

// reads reports whether the member is there for a topic. One whose subscription cannot be
// read counts.
func (m *groupMember) reads(topic string) bool {
	return m.unknown || slices.Contains(m.topics, topic)
}

// classicMember reads what a member of the classic protocol has told the group. The bytes are the
// members' own, so a member of another client may have put something else there.
func classicMember(m *kadm.DescribedGroupMember) groupMember {
	out := groupMember{id: m.MemberID, client: m.ClientID, host: m.ClientHost}
	joined, ok := m.Join.AsConsumer()
	if ok {
		out.topics = append(out.topics, joined.Topics...)
	}
	assigned, has := m.Assigned.AsConsumer()
	if has {
		for _, t := range assigned.Topics {
			out.topics = append(out.topics, t.Topic)
			out.partitions += len(t.Partitions)
		}
	}
	out.unknown = !ok && !has
	return out
}

// clientsOf names the clients of members if they differ, for people.
func clientsOf(members []groupMember) string {
	hosts := map[string][]string{}
	for _, m := range members {
		hosts[m.client] = append(hosts[m.client], strings.TrimPrefix(m.host, "/"))
	}
	if len(hosts) < 2 {
		return ""
	}
	var parts []string
	for client, from := range hosts {
		n := len(from)
		slices.Sort(from)
		parts = append(parts, fmt.Sprintf("%d of %q from %s", n, client, strings.Join(slices.Compact(from), ", ")))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// newMember is a member of a group of the new protocol (KIP-848).
func newMember(m *kadm.ConsumerGroupMember) groupMember {
	out := groupMember{id: m.MemberID, client: m.ClientID, host: m.ClientHost, topics: slices.Clone(m.SubscribedTopics)}
	out.topics = append(out.topics, m.Assignment.Topics()...)
	for _, nums := range m.Assignment {
		out.partitions += len(nums)
	}
	out.unknown = len(out.topics) == 0
	return out
}

// groupFacts is a group as its coordinator describes it, whichever protocol it has.
type groupFacts struct {
	state   string        // the broker's word for it, as in kafka-consumer-groups
	members []groupMember // also those that read other topics
}

// describeGroup asks for a group of either protocol. One that does not exist has no members.
func describeGroup(ctx context.Context, adm *kadm.Client, group string) (groupFacts, error) {
	classic, err := adm.DescribeGroups(ctx, group)
	if err != nil {
		return groupFacts{}, err
	}
	g := classic[group]
	if g.Err != nil && !errors.Is(g.Err, kerr.GroupIDNotFound) {
		return groupFacts{}, g.Err
	}
	out := groupFacts{state: g.State}
	for i := range g.Members {
		out.members = append(out.members, classicMember(&g.Members[i]))
	}
	if len(out.members) > 0 {
		return out, nil
	}
	newer, err := adm.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return out, nil //nolint:nilerr // a broker without the new protocol has no such groups
	}
	if n := newer[group]; n.Err == nil && n.State != "" {
		out.state = n.State
		for i := range n.Members {
			out.members = append(out.members, newMember(&n.Members[i]))
		}
	}
	return out, nil
}

// groupSettings adds what the group has, as far as the login may see it: a missing permission
// is no reason to hide the rest.
func (s *Group) groupSettings(ctx context.Context, adm *kadm.Client, out map[string]string) {
	g, err := describeGroup(ctx, adm, s.group)
	if err != nil || g.state == "" {
		return
	}
	topic := s.topics[0]
	commits, err := adm.FetchOffsets(ctx, s.group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return
	}
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return
	}
	ends, err := adm.ListEndOffsets(ctx, topic)
	if err != nil {
		return
	}
	here := slices.DeleteFunc(slices.Clone(g.members), func(m groupMember) bool { return !m.reads(topic) })
	out["group.state"] = g.state
	out["group.members"], out["group.elsewhere"] = strconv.Itoa(len(here)), strconv.Itoa(len(g.members)-len(here))
	out["group.clients"] = clientsOf(here)
	var lag, written int64
	var behind []string
	for p, end := range ends[topic] {
		written += max(end.Offset, 0)
		at := max(starts[topic][p].Offset, 0)
		if c, ok := commits.Lookup(topic, p); ok && c.At >= 0 {
			at = c.At
		} else if len(here) == 0 {
			continue // the group has never read it
		}
		if end.Offset > at {
			lag += end.Offset - at
			behind = append(behind, fmt.Sprintf("%d:%d", p, at))
		}
	}
	slices.Sort(behind)
	out["group.behind"], out["records"] = strings.Join(behind, ","), strconv.FormatInt(written, 10)
	out["group.lag"] = strconv.FormatInt(lag, 10)
}
