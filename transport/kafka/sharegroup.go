package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// ShareConfig is how a share group consumes. The zero value works with a group that reads
// from the first record on and sees committed records only; see [ShareConfig.Declare].
type ShareConfig struct {
	// Start is where the group begins in a partition that it has never read: Earliest or
	// Latest. Kafka keeps it with the group, as share.auto.offset.reset, and begins at the
	// latest record by default. Zero: Earliest.
	Start Start
	// Isolation is what the group sees of transactions. Kafka keeps it with the group, as
	// share.isolation.level, and shows all by default. Zero: ReadCommitted.
	Isolation Isolation
	// SettleLinger is how long a settlement waits for others if no fetch carries it to the
	// broker. Zero: 20 ms.
	SettleLinger time.Duration
	// Declare creates topics that do not exist, and the container's dead-letter topic. With
	// Declare.Partitions it also sets Start and Isolation for the group where its settings
	// differ; without, Open fails with [longshore.CodeMismatch] then.
	Declare Declare
}

// ShareGroup is a source that consumes topics as a member of a share group (KIP-932): a queue
// on Kafka. Any number of consumers share each partition, records have no order, and each is
// settled by itself under a lock that is renewed while it is held. See [Broker.ShareGroup].
type ShareGroup struct {
	at       *Group         // the topics, as one would look at them without a group
	group    string         // the share group to join
	cfg      ShareConfig    // as it was given
	attempts *shareAttempts // outlives each opening
}

var (
	_ transport.Source      = (*ShareGroup)(nil)
	_ transport.Describer   = (*ShareGroup)(nil)
	_ transport.Checker     = (*ShareGroup)(nil)
	_ transport.Validator   = (*ShareGroup)(nil)
	_ transport.Outlet      = (*ShareGroup)(nil)
	_ transport.Browser     = (*ShareGroup)(nil)
	_ transport.Prober      = (*ShareGroup)(nil)
	_ transport.DepthReader = (*ShareGroup)(nil)
	_ transport.Remainder   = (*ShareGroup)(nil)
	_ transport.Neighbour   = (*ShareGroup)(nil)
	_ transport.Follower    = (*ShareGroup)(nil)
	_ transport.Incarnated  = (*ShareGroup)(nil)
)

const defaultShareLinger = 20 * time.Millisecond

// ShareGroup is a source that consumes topics as a member of a share group. It needs Kafka
// 4.2 with the feature share.version enabled.
func (b *Broker) ShareGroup(group string, topics []string, cfg ShareConfig) *ShareGroup {
	return &ShareGroup{group: group, cfg: cfg, attempts: newShareAttempts(),
		at: &Group{b: b, topics: slices.Clone(topics), group: group, starts: newPositions(), label: fmt.Sprintf("kafka share group %q", group),
			cfg: GroupConfig{Start: Earliest, Isolation: cfg.Isolation, Declare: cfg.Declare}}}
}

// Capabilities is what is known without a connection.
func (s *ShareGroup) Capabilities() transport.Capabilities {
	return transport.Capabilities{Extend: true, Attempts: true, CountsReturns: true, LiveResize: true, OpensPaused: true}
}

// Describe names the source.
func (s *ShareGroup) Describe() transport.Description {
	return transport.Description{Transport: "kafka", Kind: "share group", Name: s.at.name(), Address: s.at.b.address(), Place: "topic"}
}

// Check reports all that is wrong with the configuration, the broker's included.
func (s *ShareGroup) Check() error {
	l := &problem.List{Op: s.at.title(), Source: s.at.name()}
	l.Join(s.at.Check())
	if s.cfg.Start != Earliest && s.cfg.Start != Latest {
		l.Bad("Start", "use {Earliest} or {Latest}", "is not a position at which a share group can begin")
	}
	if s.cfg.SettleLinger < 0 || s.cfg.SettleLinger > time.Second {
		l.Range("SettleLinger", s.cfg.SettleLinger, "at most 1s, or 0 for the default, 20ms")
	}
	return l.Err()
}

// ValidateOpen finds what of a container's wishes cannot be served.
func (s *ShareGroup) ValidateOpen(o transport.OpenOptions) error {
	return s.at.ValidateOpen(o)
}

// Publisher returns a publisher on the same cluster, as Config.Outlet says, and the first
// topic.
func (s *ShareGroup) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	return s.at.Publisher(ctx)
}

// Browse looks at the records of the first topic, whoever has consumed them.
func (s *ShareGroup) Browse(ctx context.Context, from string, n int) ([]*longshore.Delivery, string, error) {
	return s.at.Browse(ctx, from, n)
}

// Follow returns a source of the records that are written from now on, without the group.
func (s *ShareGroup) Follow(ctx context.Context) (transport.Source, string, error) {
	return s.at.Follow(ctx)
}

// Incarnation names the topics' identities.
func (s *ShareGroup) Incarnation(ctx context.Context) (string, error) { return s.at.Incarnation(ctx) }

// Neighbour is another topic, consumed by the same share group. It must exist.
func (s *ShareGroup) Neighbour(name string) transport.Source {
	cfg := s.cfg
	cfg.Declare = Declare{}
	return s.at.b.ShareGroup(s.group, []string{name}, cfg)
}

// Probe connects and looks whether the topics can be used and the cluster has share groups.
func (s *ShareGroup) Probe(ctx context.Context) error {
	if err := s.Check(); err != nil {
		return err
	}
	_, err := withAdmin(s.at.b, func(cl *kgo.Client, adm *kadm.Client) (none struct{}, err error) {
		found, err := s.at.look(ctx, cl)
		if err == nil && len(found.missing) > 0 {
			return none, s.at.notFound(ctx, cl, found.missing)
		}
		if err == nil {
			settings := settingsCheck
			if s.cfg.Declare.Partitions > 0 {
				settings = settingsIgnore // Open sets them
			}
			_, err = s.examine(ctx, cl, adm, settings)
		}
		return none, s.at.b.opened("probe "+s.at.title()+" at "+s.at.b.address(), s.at.name(), err)
	})
	return err
}

// Depth counts what the group has not done. Records that a member holds are in Ready: Kafka
// does not count them apart.
func (s *ShareGroup) Depth(ctx context.Context) (transport.Depth, error) {
	r, err := s.Remaining(ctx)
	return transport.Depth{Ready: int(r.Ready)}, err
}

// Remaining counts what the group has not done of its topics, and its members. Records that a
// member holds are in Ready. Errors: those of Open.
func (s *ShareGroup) Remaining(ctx context.Context) (transport.Remaining, error) {
	op := "count what remains for " + s.at.title() + " at " + s.at.b.address()
	return withAdmin(s.at.b, func(cl *kgo.Client, adm *kadm.Client) (r transport.Remaining, err error) {
		found, err := s.at.look(ctx, cl)
		if err == nil && len(found.missing) > 0 {
			return r, s.at.notFound(ctx, cl, found.missing)
		}
		if err != nil {
			return r, s.at.b.opened(op, s.at.name(), err)
		}
		lags, err := s.lags(ctx, cl, adm)
		if err != nil {
			return r, s.at.b.failure(op, s.at.name(), err)
		}
		r.Exact = true
		members := s.members(ctx, adm)
		for _, topic := range slices.Sorted(slices.Values(s.at.topics)) {
			r.Add(transport.Place{Name: topic, Ready: lags[topic], Consumers: members})
		}
		r.Consumers = members
		return r, nil
	})
}

// members is how many members the group has, or -1 if that cannot be read.
func (s *ShareGroup) members(ctx context.Context, adm *kadm.Client) int64 {
	groups, err := adm.DescribeShareGroups(ctx, s.group)
	if err != nil || groups[s.group].Err != nil {
		return -1
	}
	return int64(len(groups[s.group].Members))
}

// lags is what the group has not done, by topic. Where it has never read a partition, that is
// all of it, or nothing if it would begin at the end.
func (s *ShareGroup) lags(ctx context.Context, cl *kgo.Client, adm *kadm.Client) (map[string]int64, error) {
	logs, err := logsOf(ctx, cl, s.at.topics, s.at.committedOnly())
	if err != nil {
		return nil, err
	}
	described, err := adm.DescribeShareGroupOffsets(ctx, s.group)
	if err != nil {
		return nil, err
	}
	done := described[s.group]
	if err := done.Err; err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, err
	}
	out := map[string]int64{}
	for part, log := range logs {
		at, known := done.Offsets.Lookup(part.Topic, part.Num)
		switch {
		case known && at.Err == nil && at.Lag >= 0:
			out[part.Topic] += at.Lag
		case known && at.Err == nil && at.StartOffset >= 0:
			out[part.Topic] += max(0, log.End-max(at.StartOffset, log.Start))
		case s.cfg.Start == Earliest:
			out[part.Topic] += max(0, log.End-log.Start)
		}
	}
	return out, nil
}
