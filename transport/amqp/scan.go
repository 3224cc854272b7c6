package amqp

import (
	"context"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// giveBackTime is how long a scan whose context has ended may still take to give back
// what it has read. Without it the broker does so when the connection closes.
const giveBackTime = 2 * time.Second

// Scan shows messages as Browse does, at the same cost, but each as soon as it is read;
// no message is taken after the last one that was shown.
func (s *Queue) Scan(ctx context.Context, n int, each func(*longshore.Delivery) bool) (whole bool, err error) {
	at, err := s.browsable("")
	if err != nil {
		return false, err
	}
	sess, err := s.b.consume.Acquire(ctx)
	if err != nil {
		return false, s.opening(err)
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ended := context.AfterFunc(ctx, func() { time.AfterFunc(giveBackTime, cancel) })
	defer ended()
	whole, err = browserOf(s).scan(ctx, late, sess, at, n, each)
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer stop()
	if rerr := s.b.consume.Release(closing, sess); err == nil {
		err = rerr
	}
	if err != nil {
		err = s.b.set.brokerError("browse "+s.title(), s.name(), err)
	}
	return whole, err
}

// scan reads on a goroutine of the session, because a read cannot be interrupted, and
// shows on the caller's. late ends after ctx: the time to give back.
func (b browser) scan(ctx, late context.Context, sess *conn.Session, at position, n int, each func(*longshore.Delivery) bool) (whole bool, err error) {
	shown, more := make(chan *longshore.Delivery), make(chan bool)
	result, end := make(chan error, 1), make(chan position, 1)
	go func() {
		result <- sess.Scratch(late, func(ch conn.Channel) error {
			p, err := b.look(ch, at, max(n, 1), func(d *longshore.Delivery) bool { return handOver(ctx, d, shown, more) }) //nolint:contextcheck // what is shown belongs to no call
			end <- p
			return err
		})
	}()
	stopped := false
	for {
		select {
		case d := <-shown:
			stopped = !each(d)
			select {
			case more <- !stopped:
			case <-ctx.Done():
			}
		case err := <-result:
			if err == nil && !stopped {
				err = ctx.Err()
			}
			if err != nil {
				return false, err
			}
			p := <-end
			return !stopped && p.seen >= p.total, nil
		}
	}
}

// handOver gives d to the caller's goroutine and reports whether it wants more.
func handOver(ctx context.Context, d *longshore.Delivery, shown chan<- *longshore.Delivery, more <-chan bool) bool {
	select {
	case shown <- d:
	case <-ctx.Done():
		return false
	}
	select {
	case yes := <-more:
		return yes
	case <-ctx.Done():
		return false
	}
}
