package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/problem"
)

// The options of Config.Options come before this package's own, so that ours win where both
// set the same. What remains are switches that no later option turns off again, and places
// to consume from, which add up: those are refused by name.

// refusedOptions are the names of options that would break a promise of this package: that
// no record is lost, that its order is kept, or that it reads and writes what it is told to.
func refusedOptions() []string {
	return []string{
		"ConsumerGroup", "ShareGroup", "ConsumeTopics", "ConsumeRegex", "ConsumePartitions",
		"BlockRebalanceOnPoll", "AutoCommitMarks", "GreedyAutoCommit", "InstanceID", "ServerSideBalancer",
		"TransactionalID", "DisableIdempotentWrite", "ManualFlushing", "DefaultProduceTopicAlways", "RecordDeliveryTimeout",
	}
}

const defaultHeartbeat = 3 * time.Second // franz-go's

// optionFacts is what a client says of the options that it was made with.
type optionFacts struct {
	problem   error         // what the client refused
	heartbeat time.Duration // their interval between heartbeats
}

// tryOptions makes a client with the options, which connects to nothing: an option is a
// function that only a client can show.
func (c *Config) tryOptions() optionFacts {
	facts := optionFacts{heartbeat: defaultHeartbeat}
	if len(c.Options) == 0 {
		return facts
	}
	if i := slices.IndexFunc(c.Options, func(o kgo.Opt) bool { return o == nil }); i >= 0 {
		facts.problem = badConfig("Options", fmt.Sprintf("entry %d is nil", i+1), "")
		return facts
	}
	cl, err := kgo.NewClient(c.Options...)
	if err != nil {
		facts.problem = badOptions(err)
		return facts
	}
	defer cl.Close()
	if beat, ok := cl.OptValue(kgo.HeartbeatInterval).(time.Duration); ok {
		facts.heartbeat = beat
	}
	var problems []error
	for _, name := range refusedOptions() {
		if isSet(cl.OptValue(name)) {
			problems = append(problems, badConfig("Options", "kgo."+name+" belongs to this package", "use the fields of Config, GroupConfig and PublisherConfig"))
		}
	}
	facts.problem = errors.Join(append(problems, c.dialerWithTLS())...)
	return facts
}

// isSet reports whether an option has another value than none.
func isSet(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Map, reflect.Slice:
		return v.Len() > 0
	default:
		return !v.IsZero()
	}
}

// dialerWithTLS: the client makes either the connection or the handshake.
func (c *Config) dialerWithTLS() error {
	if c.tls() == nil {
		return nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(c.Options), kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))...)
	if err == nil {
		cl.Close()
		return nil
	}
	l := &problem.List{Op: "kafka broker"}
	l.Conflict("Options", "with kgo.Dialer", "{TLS}", "the client makes either the connection or the handshake", "make the handshake in the Dialer and leave TLS and TLSConfig out, or leave the Dialer out")
	return l.Err()
}

// firstLine keeps texts of the client that go over several lines to one line of the log.
func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// badOptions is the client's word about its options.
func badOptions(err error) error { return badConfig("Options", firstLine(err.Error()), "") }

// badConfig is one mistake of a broker's or a publisher's settings.
func badConfig(field, what, hint string) error {
	return problem.Bad(field, hint, "%s", what).Of("kafka", "")
}
