package kafka

import (
	"fmt"
	"regexp"
	"strconv"

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
	return l.Err()
}

// together looks at how a group consumes.
func (s *Group) together(l *problem.List) {
	g := &s.cfg
	if g.SessionTimeout > 0 {
		if beat := s.b.tried().heartbeat; beat >= g.SessionTimeout {
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
func (s *Group) ValidateOpen(o transport.OpenOptions) error {
	l := &problem.List{Op: s.title(), Source: s.name()}
	if o.Native {
		l.Conflict("DeadLetter.Policy", "native", "kafka", "Kafka has no dead-letter destination of its own", "set {DeadLetter.To}, or {DeadLetter.Policy} {Keep} or {Discard}")
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
