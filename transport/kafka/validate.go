package kafka

import (
	"crypto/tls"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
)

// This file refuses settings that are valid alone but do not work together, before anything
// is connected. Each error names both settings.

// together looks at a cluster's settings.
func (c *Config) together() error {
	l := &problem.List{Op: "kafka broker"}
	if c.SASL.Mechanism == OAuthBearer && c.SASL.User != "" && c.SASL.Native == nil {
		l.Conflict("SASL.User", nil, "the mechanism OAUTHBEARER", "the token says who logs in", "leave {SASL.User} out")
	}
	if c.tls() != nil && c.accepts() && !c.accepts(kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12})) {
		l.Conflict("Options", "with kgo.Dialer", "{TLS}", "the client makes either the connection or the handshake", "make the handshake in the Dialer and leave TLS and TLSConfig out, or leave the Dialer out")
	}
	return l.Err()
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
func (s *groupSource) together(l *problem.List) {
	g := &s.cfg
	if g.SessionTimeout > 0 {
		if beat := s.b.cfg.heartbeat(); beat >= g.SessionTimeout {
			l.Conflict("SessionTimeout", g.SessionTimeout, "the heartbeat of "+beat.String(), "the session would expire before the next heartbeat",
				"raise {SessionTimeout} to at least three heartbeats{?, or lower kgo.HeartbeatInterval in Options}")
		}
	}
	if g.Pattern {
		for _, t := range s.topics {
			if _, err := regexp.Compile(t); err != nil {
				l.Conflict("", "topic "+strconv.Quote(t), "{Pattern}", "it is not a valid regular expression", "correct it, or leave {Pattern} out if it is a name")
			}
		}
		if g.Declare.Partitions > 0 {
			l.Conflict("Declare", nil, "{Pattern}", "a pattern names no topic that could be created", "leave one of them out")
		}
	}
	if least, err := strconv.Atoi(g.Declare.Settings["min.insync.replicas"]); err == nil && g.Declare.Replicas > 0 && least > int(g.Declare.Replicas) {
		l.Conflict("Declare.Replicas", g.Declare.Replicas, fmt.Sprintf("min.insync.replicas %d in {Declare.Settings}", least), "nothing could ever be published to the topic", "lower min.insync.replicas, or raise {Declare.Replicas}")
	}
}

// together looks at how one publishes.
func (c *PublisherConfig) together(l *problem.List) {
	if timeout := or(c.Timeout, defaultTimeout); timeout > 0 && c.Linger >= timeout {
		l.Conflict("PublisherConfig.Linger", c.Linger, "a {PublisherConfig.Timeout} of "+timeout.String(), "a record would time out before its batch is sent", "lower {PublisherConfig.Linger}, or raise {PublisherConfig.Timeout}")
	}
}

// ValidateOpen finds what of a container's wishes cannot be served: dead letters that lead
// nowhere, or back here.
func (s *groupSource) ValidateOpen(o transport.OpenOptions) error {
	l := &problem.List{Op: s.title(), Source: s.name()}
	if o.Native {
		l.Conflict("DeadLetter.Policy", "native", "kafka", "Kafka has no dead-letter place of its own", "set {DeadLetter.To}, or {DeadLetter.Policy} {Keep} or {Discard}")
		return l.Err()
	}
	if o.DeadLetter == "" {
		return nil
	}
	topic, _, err := parseDest(o.DeadLetter)
	if err != nil {
		l.Bad("DeadLetter.To", topicHint, "%q is not a valid topic name", o.DeadLetter)
		return l.Err()
	}
	for _, t := range s.topics {
		mine := t == topic
		if s.cfg.Pattern {
			mine, _ = regexp.MatchString(t, topic)
		}
		if mine {
			l.Conflict("DeadLetter.To", strconv.Quote(o.DeadLetter), "topic "+problem.Literal(strconv.Quote(t)), "dead letters would come back here, over and over", "name another topic, or a narrower pattern")
			return l.Err()
		}
	}
	return nil
}
