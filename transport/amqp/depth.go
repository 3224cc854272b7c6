package amqp

import (
	"context"
	"errors"
	"strconv"

	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Depth is how many messages are ready in the source's queues. Unlike Browse it takes
// none of them. Errors: those of Open.
func (s *queueSource) Depth(ctx context.Context) (int, error) {
	found, err := s.measure(ctx)
	return found.ready, err
}

// Settings are what RabbitMQ tells over AMQP, for tools that examine a queue: version
// and cluster_name of the broker, messages and consumers of the queues. Errors: those of
// Open.
func (s *queueSource) Settings(ctx context.Context) (map[string]string, error) {
	found, err := s.measure(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"version": found.version, "cluster_name": found.cluster,
		"messages": strconv.Itoa(found.ready), "consumers": strconv.Itoa(found.consumers)}, nil
}

type measured struct {
	version, cluster string
	ready, consumers int
}

func (s *queueSource) measure(ctx context.Context) (measured, error) {
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return measured{}, s.opening(err)
	}
	got := make(chan measured, 1)
	err = sess.Scratch(ctx, func(ch conn.Channel) error {
		var m measured
		m.version, _ = sess.AMQP.Properties["version"].(string)
		m.cluster, _ = sess.AMQP.Properties["cluster_name"].(string)
		for _, name := range s.queues {
			q, err := ask(ch, name)
			if err != nil {
				return err
			}
			m.ready += q.Messages
			m.consumers += q.Consumers
		}
		got <- m
		return nil
	})
	if err != nil {
		err = s.b.set.brokerError("read the depth of "+s.title(), s.name(), err)
	}
	if err = errors.Join(err, s.b.consume.Release(ctx, sess)); err != nil {
		return measured{}, err
	}
	return <-got, nil
}
