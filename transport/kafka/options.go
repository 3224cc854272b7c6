package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/problem"
)

// owned are the options of franz-go that this package sets. What a user would set
// there is in Config, or would break the promise that no record is lost.
func owned() []string {
	return []string{
		"SeedBrokers", "ClientID", "SASL", "DialTLS", "DialTLSConfig", "DialTimeout", "Rack",
		"ConsumerGroup", "ShareGroup", "ConsumeTopics", "ConsumeExcludeTopics", "ConsumeRegex", "ConsumePartitions", "ConsumeStartOffset", "ConsumeResetOffset",
		"FetchIsolationLevel", "KeepControlRecords", "KeepRetryableFetchErrors", "RequireStableFetchOffsets", "DisableFetchSessions",
		"AutoCommitMarks", "AutoCommitInterval", "AutoCommitCallback", "DisableAutoCommit", "GreedyAutoCommit",
		"BlockRebalanceOnPoll", "OnPartitionsAssigned", "OnPartitionsRevoked", "OnPartitionsLost", "OnOffsetsFetched", "OnPartitionsCallbackBlocked",
		"AdjustFetchOffsetsFn", "InstanceID", "ServerSideBalancer", "SessionTimeout", "RebalanceTimeout", "GroupProtocol",
		"TransactionalID", "RequiredAcks", "DisableIdempotentWrite", "RecordPartitioner", "ManualFlushing", "AllowAutoTopicCreation",
		"DefaultProduceTopic", "DefaultProduceTopicAlways", "ProducerLinger", "ProducerBatchMaxBytes", "ProducerBatchCompression", "RecordDeliveryTimeout",
		"WithContext",
	}
}

// checkOptions refuses those options that are ours. An option is a function which
// only a client can show: one is made with them and one without, neither connects.
func checkOptions(opts []kgo.Opt) error {
	if len(opts) == 0 {
		return nil
	}
	noDial := kgo.Dialer(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("not now") })
	// The default partitioner holds functions, which never compare equal: one and
	// the same for all clients does.
	same := []kgo.Opt{noDial, kgo.RecordPartitioner(&chosen{kgo.StickyKeyPartitioner(nil)}), kgo.MetadataMinAge(10 * time.Millisecond)}
	plain, err := kgo.NewClient(same...)
	if err != nil {
		return badConfig("Options", err.Error(), "")
	}
	defer plain.Close()
	// Each by itself, so that one option cannot hide another.
	var problems []error
	for i, o := range opts {
		if o == nil {
			problems = append(problems, badConfig("Options", fmt.Sprintf("entry %d is nil", i+1), ""))
			continue
		}
		given, helped, err := clientWith(o, same)
		if err != nil {
			problems = append(problems, badConfig("Options", fmt.Sprintf("entry %d: %s", i+1, firstLine(err.Error())), ""))
			continue
		}
		for _, name := range owned() {
			if name != helped && !reflect.DeepEqual(given.OptValues(name), plain.OptValues(name)) {
				problems = append(problems, badConfig("Options", "kgo."+name+" belongs to this package", "use the fields of Config, GroupConfig and PublisherConfig"))
			}
		}
		given.Close()
	}
	return errors.Join(problems...)
}

// clientWith makes a client with one option. Some are accepted only beside another,
// whose name is returned.
func clientWith(o kgo.Opt, same []kgo.Opt) (cl *kgo.Client, helped string, err error) {
	if cl, err = kgo.NewClient(append(slices.Clone(same), o)...); err == nil {
		return cl, "", nil
	}
	for name, helper := range map[string]kgo.Opt{"ConsumerGroup": kgo.ConsumerGroup("check"), "DisableIdempotentWrite": kgo.DisableIdempotentWrite()} {
		if cl, e := kgo.NewClient(append(slices.Clone(same), helper, o)...); e == nil {
			return cl, name, nil
		}
	}
	return nil, "", err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// badConfig is one mistake of a broker's or a publisher's settings.
func badConfig(field, what, hint string) error {
	return problem.Bad(field, hint, "%s", what).Of("kafka", "")
}
