package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/problem"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs/internal/codec"
)

// QueueConfig is how a queue is consumed. The zero value works for a queue that
// exists.
type QueueConfig struct {
	// VisibilityTimeout is the lease of a message, in whole seconds up to 12 h. It is
	// extended as long as the message is not settled, so it bounds how long messages
	// of a process that died stay hidden, not how long a handler may take. Zero: the
	// queue's own.
	VisibilityTimeout time.Duration
	// SettleLinger is how long an accepted ack, nack or rejection waits for others
	// to share its call; ten are sent at once. It is cut to a third of the lease.
	// Zero: 50 ms.
	SettleLinger time.Duration
	// MaxPollers is how many long polls may be open at the most. They grow with the
	// load, one is open when idle. Zero: 10.
	MaxPollers int
	// BatchByBatch receives the next messages, ten at the most, only after all of the last
	// have been deleted or returned.
	BatchByBatch bool
	// Envelope is what another service wraps around the messages: [SNS],
	// [EventBridge]. Zero: None.
	Envelope Envelope
	// Declare creates what does not exist.
	Declare Declare
	// BrowseCounts allows Browse although looking counts as a delivery and hides
	// what is seen for a moment: with a redrive policy it may dead-letter
	// messages, on a FIFO queue it holds up their groups.
	BrowseCounts bool
}

// Declare creates the queue, and the container's dead-letter queue, if they do not
// exist.
type Declare struct {
	// Attributes of the queue as SQS names them, such as "VisibilityTimeout": "60".
	// Not nil, if only empty, means: create the queue if it does not exist. What is
	// given here must agree with a queue that exists. FifoQueue follows the name.
	Attributes map[string]string
	// Tags of a queue that is created.
	Tags map[string]string
}

// Limits of SQS, from its documentation.
const (
	maxBatch        = 10
	maxMessageBytes = 1 << 20 // a message and a batch, attributes included
	maxLease        = 12 * time.Hour
	maxDelay        = 15 * time.Minute // DelaySeconds
	maxWait         = 20 * time.Second
)

// seconds is a duration as SQS takes it.
func seconds(d time.Duration) int32 {
	return int32((d + time.Second - 1) / time.Second) //nolint:gosec // at most 12 h
}

// Envelope is what another service wraps around messages on their way to a queue.
type Envelope string

const (
	// None: bodies are taken as they are.
	None Envelope = ""
	// SNS: what a topic delivers to a queue. Raw delivery is recognised message by
	// message, by its form.
	SNS Envelope = "sns"
	// EventBridge: what a rule delivers to a queue. The body is the event's detail.
	EventBridge Envelope = "eventbridge"
)

// wrapping is the codec's word for it.
func (e Envelope) wrapping() codec.Wrapping {
	switch e {
	case SNS:
		return codec.SNS
	case EventBridge:
		return codec.EventBridge
	case None:
	}
	return codec.Bare
}

const (
	defaultLinger  = 50 * time.Millisecond
	defaultPollers = 10
	defaultLease   = 30 * time.Second // of a queue that does not tell
)

// queueSource is one queue as a source.
type queueSource struct {
	b        *Broker     // the account and its endpoint
	cfg      QueueConfig // as given
	ref      reference   // the queue as it was named
	problem  error       // mistakes in name and configuration; Check and Open return it
	attempts *attempts   // the known facts about its messages, shared by the broker's sources of it
	looks    looks       // the pages that Browse has given out
	// away is shared by the consumers that the container opens one after the other.
	away atomic.Bool // polls failed for so long that the consumer ended, and none has succeeded since
}

// Queue is a source on a queue given by name, URL or ARN. It does no I/O; what
// is wrong is reported by container.New and by Open.
func (b *Broker) Queue(queue string, cfg QueueConfig) transport.Source {
	s := &queueSource{b: b, cfg: cfg, attempts: b.attemptsOf(queue)}
	var err error
	s.ref, err = parseReference(queue)
	b.origins.add(s.ref)
	s.problem = errors.Join(err, cfg.check(s.ref.name))
	return s
}

// check reports every mistake in the settings at once.
func (c *QueueConfig) check(queue string) error {
	l := &problem.List{Op: "sqs queue " + quote(queue), Source: queue}
	switch v := c.VisibilityTimeout; {
	case v < 0, v > maxLease, v%time.Second != 0:
		l.Add(problem.Range("VisibilityTimeout", v, "whole seconds from 1s to 12h, or 0 for the queue's own"))
	}
	if c.SettleLinger < 0 {
		l.Add(problem.Range("SettleLinger", c.SettleLinger, "positive, or 0 for the default, %s", defaultLinger))
	}
	if c.MaxPollers < 0 {
		l.Add(problem.Range("MaxPollers", c.MaxPollers, "positive, or 0 for the default, %d", defaultPollers))
	}
	c.checkBatchByBatch(l)
	switch c.Envelope {
	case None, SNS, EventBridge:
	default:
		l.Add(problem.Bad("Envelope", "it must be sns or eventbridge", "is %q", string(c.Envelope)).OfKind(problem.UnknownWord))
	}
	if v, ok := c.Declare.Attributes["FifoQueue"]; ok && (v == "true") != isFIFO(queue) {
		l.Add(problem.Conflict("Declare.Attributes", "FifoQueue "+v, "queue "+problem.Literal(quote(queue)), "the name of a FIFO queue, and no other, ends with .fifo", "rename the queue, or leave FifoQueue out"))
	}
	if c.Declare.Attributes == nil && c.Declare.Tags != nil {
		l.Add(problem.Bad("Declare.Tags", "set {Declare.Attributes}, if only to an empty map", "are given without {Declare.Attributes}").OfKind(problem.Missing))
	}
	l.Join(c.Declare.together(queue))
	return l.Err()
}

// Check finds mistakes in the configuration. It reads the SDK's files and
// variables and does not use the network.
func (s *queueSource) Check() error {
	if s.ref.name == "" {
		return errors.Join(s.problem, s.b.chain().err)
	}
	_, err := s.place()
	return errors.Join(s.problem, err)
}

// place finds region and endpoint without a call, so that Describe can name them before Open.
func (s *queueSource) place() (place, error) {
	chain := s.b.chain()
	if chain.err != nil {
		return place{}, chain.err
	}
	return locate(s.ref, &s.b.cfg, chain.env, &s.b.origins)
}

// Describe names the queue.
func (s *queueSource) Describe() transport.Description {
	d := transport.Description{Transport: "aws_sqs", Kind: "queue", Name: first(s.ref.name, "queue"), Approximate: true}
	if p, err := s.place(); err == nil {
		d.Address = hostOf(p)
	}
	return d
}

// hostOf is the host that is called, for errors about it.
func hostOf(p place) string {
	if p.endpoint == "" {
		return "sqs." + p.region + ".amazonaws.com"
	}
	_, host, _ := strings.Cut(p.endpoint, "://")
	host, _, _ = strings.Cut(host, "/")
	return host
}

func (s *queueSource) title() string { return "sqs queue " + quote(s.ref.name) }

// Capabilities is what every such queue can do; an open consumer knows of the
// redrive policy.
func (s *queueSource) Capabilities() longshore.Capabilities {
	c := longshore.Capabilities{
		Delay: true, MaxDelay: maxLease, Extend: true, MaxLease: maxLease, Attempts: true, LiveResize: true, OpensPaused: true,
		MaxPublishBatch: maxBatch, MaxMessageBytes: maxMessageBytes, MaxHeaders: codec.MaxAttributes,
	}
	if isFIFO(s.ref.name) {
		c.Ordering, c.Keyed = longshore.OrderGroup, true
	}
	return c
}

// Probe tests address, credentials and that the queue exists.
func (s *queueSource) Probe(ctx context.Context) error {
	l, err := s.handle(ctx, transport.OpenOptions{}, false)
	if err != nil {
		return err
	}
	l.close()
	return nil
}

// Publisher returns a publisher on the same broker and the address that leads back
// here. Names that it is given mean queues alongside this one.
func (s *queueSource) Publisher(context.Context) (transport.Publisher, string, error) {
	if s.problem != nil {
		return nil, "", s.problem
	}
	p, err := s.b.Publisher(PublisherConfig{})
	if err != nil {
		return nil, "", err
	}
	p.near = s.ref
	return p, first(s.ref.url, s.ref.arn, s.ref.name), nil
}

// RemovalCommand implements [transport.Removable].
func (s *queueSource) RemovalCommand() string {
	return fmt.Sprintf(`aws sqs delete-queue --queue-url "$(aws sqs get-queue-url --queue-name %s --query QueueUrl --output text)"`, first(s.ref.name, "queue"))
}
