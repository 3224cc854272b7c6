package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka/internal/cluster"
)

// The settings of a share group, as Kafka names them, and the broker's for all groups.
const (
	shareReset     = "share.auto.offset.reset"
	shareIsolation = "share.isolation.level"
	shareRenew     = "share.renew.acknowledge.enable"
	shareLimit     = "share.delivery.count.limit"
	shareLocks     = "share.partition.max.record.locks"
	ofBroker       = "group." // before a setting's name: the broker's default for it
)

// shareFacts is what a cluster has about a share group.
type shareFacts struct {
	limit   int      // deliveries of a record, after which the broker archives it
	locks   int      // records of one partition that may be locked at a time, by all members
	changed []string // settings that were set just now
	unread  error    // why the group's settings could not be read; nil if they were
}

// Kafka's defaults, where they may not be read.
const defaultShareLimit, defaultShareLocks = 5, 2000

// settingsMode is what happens to settings of the group that are not those wanted.
type settingsMode uint8

const (
	settingsCheck  settingsMode = iota // they are an error
	settingsSet                        // they are changed
	settingsIgnore                     // nothing
)

// examine checks that the cluster has share groups, and the group's settings.
func (s *ShareGroup) examine(ctx context.Context, cl *kgo.Client, adm *kadm.Client, mode settingsMode) (shareFacts, error) {
	facts := shareFacts{limit: defaultShareLimit, locks: defaultShareLocks}
	if err := s.supported(ctx, cl); err != nil {
		return facts, err
	}
	have, err := s.groupSettings(ctx, cl)
	if err != nil {
		if facts.unread = err; !denied(err) && !errors.Is(err, kerr.GroupAuthorizationFailed) {
			return facts, err
		}
		return facts, nil
	}
	// Kafka's own defaults (latest, read_uncommitted) would skip what was published before the first
	// member joined, and show records of aborted transactions.
	want := s.wantedSettings(have)
	switch {
	case len(want) == 0 || mode == settingsIgnore:
	case mode == settingsCheck:
		return facts, s.mismatch(have, want)
	default:
		if err := s.setGroup(ctx, cl, want); err != nil {
			return facts, err
		}
		facts.changed = slices.Sorted(maps.Keys(want))
	}
	facts.readLimits(ctx, adm, have)
	return facts, nil
}

// supported finds out whether the cluster has share groups with renewals.
func (s *ShareGroup) supported(ctx context.Context, cl *kgo.Client) error {
	answer, err := cluster.First(ctx, cl, func() kmsg.Request {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "longshore", "1"
		return req
	})
	if err != nil {
		return err
	}
	// ShareFetch 2 came with Kafka 4.2 and KIP-1222. Without renewals a handler that takes longer than
	// the lock would lose its record while it works on it.
	resp := answer.(*kmsg.ApiVersionsResponse) //nolint:errcheck,forcetypeassert // the answer to this request
	versions := map[int16]int16{}
	for _, k := range resp.ApiKeys {
		versions[k.ApiKey] = k.MaxVersion
	}
	op := s.at.opening()
	if v, known := versions[int16(kmsg.ShareFetch)]; !known || v < 2 {
		return unsupported(op, s.at.name(), "the broker has no share groups with renewed locks (KIP-932 and KIP-1222)", "use Kafka 4.2 or later, or a consumer group")
	}
	// A broker of the right version may run in a cluster whose feature level is older: it then lists
	// the requests and refuses them.
	for _, f := range resp.SupportedFeatures {
		if f.Name == "share.version" && f.MaxVersion > 0 && !slices.ContainsFunc(resp.FinalizedFeatures, func(f kmsg.ApiVersionsResponseFinalizedFeature) bool {
			return f.Name == "share.version" && f.MaxVersionLevel > 0
		}) {
			return s.switchedOff(op)
		}
	}
	return nil
}

// switchedOff is the error of a cluster that could have share groups and has them switched off.
func (s *ShareGroup) switchedOff(op string) error {
	return unsupported(op, s.at.name(), "share groups are switched off in this cluster", "switch them on: kafka-features.sh upgrade --feature share.version=1 (Kafka 4.2 or later)")
}

// groupSettings are the group's settings, the defaults included.
func (s *ShareGroup) groupSettings(ctx context.Context, cl *kgo.Client) (map[string]string, error) {
	answer, err := cluster.First(ctx, cl, func() kmsg.Request {
		req := kmsg.NewPtrDescribeConfigsRequest()
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeGroupConfig, s.group
		req.Resources = append(req.Resources, r)
		return req
	})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	resp := answer.(*kmsg.DescribeConfigsResponse) //nolint:errcheck,forcetypeassert // the answer to this request
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, err
		}
		for _, c := range r.Configs {
			if c.Value != nil && strings.HasPrefix(c.Name, "share.") {
				out[c.Name] = *c.Value
			}
		}
	}
	return out, nil
}

// wantedSettings are those that the group has not, although this source wants them.
func (s *ShareGroup) wantedSettings(have map[string]string) map[string]string {
	want := map[string]string{shareReset: "earliest", shareIsolation: "read_committed"}
	if s.cfg.Start == Latest {
		want[shareReset] = "latest"
	}
	if s.cfg.Isolation == ReadUncommitted {
		want[shareIsolation] = "read_uncommitted"
	}
	// Brokers that do not list it have no switch for it, and renew.
	if v, known := have[shareRenew]; known && v != "true" {
		want[shareRenew] = "true"
	}
	maps.DeleteFunc(want, func(name, value string) bool { return strings.EqualFold(have[name], value) })
	return want
}

// mismatch lists every setting of the group that differs, with the command that sets all of them:
// others may use the group, so it is not changed without being asked for.
func (s *ShareGroup) mismatch(have, want map[string]string) error {
	var differ, settings []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		differ = append(differ, fmt.Sprintf("%s is %q (wanted %q)", name, have[name], want[name]))
		settings = append(settings, name+"="+want[name])
	}
	return &longshore.Error{Code: longshore.CodeMismatch, Op: s.at.opening(), Source: s.at.name(), Err: errors.New(strings.Join(differ, ", ")),
		Hint: fmt.Sprintf("set them: kafka-configs.sh --alter --entity-type groups --entity-name %s --add-config %s; or set Declare; or change Start or Isolation", s.group, strings.Join(settings, ","))}
}

// setGroup changes settings of the group, and waits until they can be read.
func (s *ShareGroup) setGroup(ctx context.Context, cl *kgo.Client, want map[string]string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeGroupConfig, s.group
	for _, name := range slices.Sorted(maps.Keys(want)) {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = name, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(want[name])
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, r := range resp.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return err
		}
	}
	for {
		have, err := s.groupSettings(ctx, cl)
		if err != nil || len(s.wantedSettings(have)) == 0 {
			return err
		}
		select {
		// The controller has the change before the brokers: a member that joined at once could begin with
		// the old settings.
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readLimits takes the group's limits, or the broker's where the group has none of its own.
func (f *shareFacts) readLimits(ctx context.Context, adm *kadm.Client, group map[string]string) {
	// A group without settings of its own is not described with the broker's values, so those are read
	// from a broker. Any will do: they are the same in a cluster that is kept in order.
	limits := map[string]string{}
	if brokers, err := adm.ListBrokers(ctx); err == nil && len(brokers) > 0 {
		if configs, err := adm.DescribeBrokerConfigs(ctx, brokers[0].NodeID); err == nil { // else Kafka's defaults stand
			all := map[string]string{}
			copyConfigs(all, configs, map[string]bool{ofBroker + shareLimit: true, ofBroker + shareLocks: true})
			for name, v := range all {
				limits[strings.TrimPrefix(name, ofBroker)] = v
			}
		}
	}
	maps.Copy(limits, group)
	for name, to := range map[string]*int{shareLimit: &f.limit, shareLocks: &f.locks} {
		if n, err := strconv.Atoi(limits[name]); err == nil && n > 0 {
			*to = n
		}
	}
}

// text is what examine has set, for people; "" if nothing.
func (f *shareFacts) text(group string) string {
	if len(f.changed) == 0 {
		return ""
	}
	return fmt.Sprintf("settings of share group %q: %s", group, strings.Join(f.changed, ", "))
}

// Vocabulary is that of Settings.
func (s *ShareGroup) Vocabulary() transport.Vocabulary { return transport.VocabularyKafka }

// Settings are those of the first topic, as for a [Group], with the share group's own settings
// under Kafka's names and its members and lag.
func (s *ShareGroup) Settings(ctx context.Context) (map[string]string, error) {
	topic := *s.at
	topic.group, topic.cast = "", true
	out, err := topic.Settings(ctx)
	if err != nil {
		return nil, err
	}
	return withAdmin(s.at.b, func(cl *kgo.Client, adm *kadm.Client) (map[string]string, error) {
		if have, err := s.groupSettings(ctx, cl); err == nil {
			maps.Copy(out, have)
		}
		if n := s.members(ctx, adm); n >= 0 {
			out["group.members"] = strconv.FormatInt(n, 10)
		}
		if lags, err := s.lags(ctx, cl, adm); err == nil {
			out["group.lag"] = strconv.FormatInt(lags[s.at.topics[0]], 10)
		}
		return out, nil
	})
}
