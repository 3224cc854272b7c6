package amqp

import (
	"context"
	"errors"
	"strconv"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Depth is how many messages are ready in the source's queues. Unlike Browse it takes
// none of them. Errors: those of Open.
func (s *Queue) Depth(ctx context.Context) (transport.Depth, error) {
	found, err := s.measure(ctx)
	return transport.Depth{Ready: found.ready}, err
}

// Vocabulary is that of Settings.
func (s *Queue) Vocabulary() transport.Vocabulary { return transport.VocabularyRabbitMQ }

// Settings are what RabbitMQ reports over AMQP, for tools that examine a queue: version
// and cluster_name of the broker, messages and consumers of the queues. Errors: those of
// Open.
func (s *Queue) Settings(ctx context.Context) (map[string]string, error) {
	found, err := s.measure(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"version": found.version, "cluster_name": found.cluster,
		"messages": strconv.Itoa(found.ready), "consumers": strconv.Itoa(found.consumers)}, nil
}

// depth is what the broker counts in a source's queues.
type depth struct{ ready, consumers int }

// countReady sums up the queues.
func countReady(ctx context.Context, sess *conn.Session, queues []string) (depth, error) {
	got := make(chan depth, 1)
	err := sess.Scratch(ctx, func(ch conn.Channel) error {
		var sum depth
		for _, name := range queues {
			q, err := ask(ch, name)
			if err != nil {
				return err
			}
			sum.ready += q.Messages
			sum.consumers += q.Consumers
		}
		got <- sum
		return nil
	})
	if err != nil {
		return depth{}, err
	}
	return <-got, nil
}

// measured is the depth and what the broker says of itself.
type measured struct {
	depth
	version, cluster string // the broker's, from the handshake
}

// measure counts over the connection for consuming, so that a look needs no connection of its own.
func (s *Queue) measure(ctx context.Context) (m measured, err error) {
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return m, s.opening(err)
	}
	m.version, _ = sess.AMQP.Properties["version"].(string)
	m.cluster, _ = sess.AMQP.Properties["cluster_name"].(string)
	if m.depth, err = countReady(ctx, sess, s.queues); err != nil {
		err = s.b.set.brokerError("read the depth of "+s.title(), s.name(), err)
	}
	return m, errors.Join(err, s.b.consume.Release(ctx, sess))
}
