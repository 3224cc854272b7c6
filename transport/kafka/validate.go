package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
)

// This file is about settings that are right by themselves and not together: refused
// before anything is connected, each pair by the names of both.

// notWith refuses a setting beside another one, and says what to do.
func notWith(op, field, other, why, todo string) error {
	return badConfig(op, fmt.Sprintf("%s does not go with %s: %s", field, other, why), todo)
}

// together looks at a cluster's settings.
func (c *Config) together() error {
	var errs []error
	if c.SASL.Mechanism == OAuthBearer && c.SASL.User != "" && c.SASL.Native == nil {
		errs = append(errs, notWith("broker", "SASL.User", "the mechanism OAUTHBEARER", "the token says who logs in", "leave User out"))
	}
	if c.tls() != nil && c.accepts() && !c.accepts(kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12})) {
		errs = append(errs, notWith("broker", "kgo.Dialer in Options", "TLS", "the client makes either the connection or the handshake", "make the handshake in the Dialer and leave TLS and TLSConfig out, or leave the Dialer out"))
	}
	return errors.Join(errs...)
}

// client has the Options and more; it connects to nothing. nil: they are not accepted,
// which is told elsewhere.
func (c *Config) client(more ...kgo.Opt) *kgo.Client {
	opts := append(slices.Clone(c.Options), more...)
	if slices.ContainsFunc(opts, func(o kgo.Opt) bool { return o == nil }) {
		return nil
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil
	}
	return cl
}

func (c *Config) accepts(more ...kgo.Opt) bool {
	cl := c.client(more...)
	if cl != nil {
		cl.Close()
	}
	return cl != nil
}

// heartbeat is the interval that the Options say; 0 if they are not accepted.
func (c *Config) heartbeat() time.Duration {
	cl := c.client()
	if cl == nil {
		return 0
	}
	defer cl.Close()
	beat, _ := cl.OptValue(kgo.HeartbeatInterval).(time.Duration)
	return beat
}

// together looks at how a group consumes.
func (s *groupSource) together(op string) error {
	var errs []error
	bad := func(field, other, why, todo string) { errs = append(errs, notWith(op, field, other, why, todo)) }
	g := &s.cfg
	if g.SessionTimeout > 0 {
		if beat := s.b.cfg.heartbeat(); beat >= g.SessionTimeout {
			bad("SessionTimeout "+g.SessionTimeout.String(), "the heartbeat of "+beat.String(), "a member would be dead before its next one",
				"raise SessionTimeout to three heartbeats or more, or lower kgo.HeartbeatInterval in Options")
		}
	}
	if g.Pattern {
		for _, t := range s.topics {
			if _, err := regexp.Compile(t); err != nil {
				bad(fmt.Sprintf("topic %q", t), "Pattern", "it is no regular expression", "correct it, or leave Pattern out if it is a name")
			}
		}
		if g.Declare.Partitions > 0 {
			bad("Declare", "Pattern", "a pattern names no topic that could be created", "leave one of them out")
		}
	}
	if least, err := strconv.Atoi(g.Declare.Settings["min.insync.replicas"]); err == nil && g.Declare.Replicas > 0 && least > int(g.Declare.Replicas) {
		bad(fmt.Sprintf("Declare.Replicas %d", g.Declare.Replicas), fmt.Sprintf("min.insync.replicas %d in Declare.Settings", least), "nothing could ever be published to the topic", "lower min.insync.replicas, or raise Replicas")
	}
	return errors.Join(errs...)
}

// together looks at how one publishes.
func (c *PublisherConfig) together() error {
	if timeout := or(c.Timeout, defaultTimeout); c.Linger >= timeout {
		return notWith("publisher", "PublisherConfig.Linger "+c.Linger.String(), "Timeout "+timeout.String(), "a record would be given up before its batch is sent", "lower Linger, or raise Timeout")
	}
	return nil
}

// ValidateOpen finds what of a container's wishes cannot be served: dead letters that lead
// nowhere, or back here.
func (s *groupSource) ValidateOpen(o transport.OpenOptions) error {
	op := s.title()
	if o.Native {
		return notWith(op, "DeadLetter.Policy native", "kafka", "a log has no dead-letter place of its own", "set DeadLetter.To, or Policy Keep or Discard")
	}
	if o.DeadLetter == "" {
		return nil
	}
	topic, _, err := parseDest(o.DeadLetter)
	if err != nil {
		return badConfig(fmt.Sprintf("%s: DeadLetter.To %q", op, o.DeadLetter), "is no topic", "letters, digits, dots, underscores and hyphens, at most 249")
	}
	for _, t := range s.topics {
		mine := t == topic
		if s.cfg.Pattern {
			mine, _ = regexp.MatchString(t, topic)
		}
		if mine {
			return notWith(op, fmt.Sprintf("DeadLetter.To %q", o.DeadLetter), fmt.Sprintf("topic %q", t), "what failed for the last time would come here again, for ever", "name another topic, or a narrower pattern")
		}
	}
	return nil
}
