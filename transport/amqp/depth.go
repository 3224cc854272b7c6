package amqp

import (
	"context"
	"errors"
)

// Depth is how many messages are ready in the source's queues. Unlike Browse it takes
// none of them. Errors: those of Open.
func (s *queueSource) Depth(ctx context.Context) (int, error) {
	sess, err := s.b.consume.acquire(ctx)
	if err != nil {
		return 0, s.opening(err)
	}
	got := make(chan int, 1)
	err = sess.scratch(ctx, func(ch channel) error {
		n := 0
		for _, name := range s.queues {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if err != nil {
				return err
			}
			n += q.Messages
		}
		got <- n
		return nil
	})
	if err != nil {
		err = s.b.set.brokerError("read the depth of "+s.title(), s.name(), err)
	}
	if err = errors.Join(err, s.b.consume.release(ctx, sess)); err != nil {
		return 0, err
	}
	return <-got, nil
}
