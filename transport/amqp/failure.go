package amqp

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/notify"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// lostError makes the reason for a loss wrap ErrLost.
type lostError struct{ error }

func (e *lostError) Unwrap() []error { return []error{longshore.ErrLost, e.error} }

// failure explains why the broker ended a consumer, and remembers in the source what the
// next opening has to know about it.
type failure struct {
	src     *Queue           // for names, and what it learns for the next opening
	sess    *conn.Session    // whether the connection ended too
	notices *notify.Notifier // causes that last
	window  windowPlan       // what had been asked for
	// held is what is lost with the consumer.
	held interface {
		oldest() (handed, buffered *longshore.Delivery)
		arrivals(from uint64) arrivals
		streamDeleted(queue string)
	}
}

// ended explains why the broker or the client closed the channel.
func (f *failure) ended(e *amqp091.Error) error {
	err := f.src.b.set.brokerError("consume from "+f.src.title(), f.src.name(), e)
	switch err.Code {
	case longshore.CodeAckTimeout:
		return f.ackTimeout(e, conn.Describe(e))
	case longshore.CodeConnLost:
		err.Op = fmt.Sprintf("consume from %s at %s", f.src.title(), f.sess.Node)
		err.Err = fmt.Errorf("the connection is lost: %w", conn.Describe(e))
		err.Hint = "reconnecting automatically; if this repeats, check the network and the broker's log"
	}
	return err
}

// because names the source in a reason that the deliveries found.
func (f *failure) because(reason error) error {
	e, ok := errors.AsType[*longshore.Error](reason)
	if !ok {
		return reason
	}
	out := *e
	out.Op, out.Source = "consume from "+f.src.title(), f.src.name()
	return &out
}

// ackTimeout says how much is lost and which delivery is the likely cause.
func (f *failure) ackTimeout(told *amqp091.Error, cause error) error {
	f.noteAckTimeout()
	oldest, _ := f.held.oldest()
	err := &longshore.Error{Code: longshore.CodeAckTimeout, Op: f.src.title(), Source: f.src.name(),
		Err:  fmt.Errorf("the broker took back %d deliveries because one stayed unacknowledged too long: %w", f.held.arrivals(0).outstanding, cause),
		Hint: "raise x-consumer-timeout (quorum queues) or consumer_timeout, or shorten the handler"}
	if oldest != nil {
		age := time.Since(oldest.Origin.ReceivedAt).Round(time.Millisecond)
		err.Hint += fmt.Sprintf("; the broker's patience is %s, and from the next subscription on no retry waits here for more than half of it", f.src.patience.learn(told, age))
		err.Hint += fmt.Sprintf("; the oldest is message %.64q, key %.64q, %s old", oldest.Received().ID, oldest.Received().Key, age)
	}
	return err
}

// noteAckTimeout remembers that the shared window was too large for handlers this slow:
// messages that no handler had begun were in it for most of the ack timeout. It would run
// out again and again, and each time counts as a delivery of the whole window.
func (f *failure) noteAckTimeout() {
	oldest, waiting := f.held.oldest()
	if !f.window.shared || oldest == nil || waiting == nil {
		return
	}
	if now := time.Now(); 2*now.Sub(waiting.Origin.ReceivedAt) < now.Sub(oldest.Origin.ReceivedAt) {
		return // one handler hangs, the others go on
	}
	if !f.src.slow.Swap(true) {
		f.notices.Event(transport.Event{Kind: transport.EventNotice, Text: fmt.Sprintf(keptWhile, f.src.title()) +
			fmt.Sprintf("all instances have the same window; this one follows the workers from now on, because the ack timeout ran out on messages that waited in a window of %d. Set the same smaller Prefetch on all instances", f.window.limit)})
	}
}

// canceled finds out why the broker cancelled a consumer of a queue: from 4.3 on an ack
// timeout of a quorum queue looks like a queue that was deleted.
func (f *failure) canceled(queue string) error {
	oldest, _ := f.held.oldest()
	err := f.exists(queue)
	// The queue may be there a little longer than its consumers.
	for n := 0; n < 5 && err == nil && oldest != nil && time.Since(oldest.Origin.ReceivedAt) < 10*time.Second; n++ {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-f.sess.Done():
		}
		err = f.exists(queue)
	}
	out := &longshore.Error{Code: longshore.CodeCanceledBy, Op: "consume from " + f.src.title(), Source: f.src.name(),
		Err:  errors.New("the broker cancelled the consumer"),
		Hint: "the queue moved to another node or its leader changed; it is opened again by itself"}
	if deleted(err) {
		f.held.streamDeleted(queue)
	}
	if e, ok := conn.AsAMQP(err); ok && e.Code == amqp091.NotFound {
		out.Err = fmt.Errorf("queue %q was deleted", queue)
		out.Hint = "create it again, or set Declare"
		return out
	}
	if err == nil && oldest != nil && f.sess.Version.CountsRejectsOnly() {
		return f.ackTimeout(nil, errors.New("the broker cancelled the consumer"))
	}
	return out
}

// exists asks the broker for a queue.
func (f *failure) exists(queue string) error {
	_, _, err := inspect(f.sess, queue)
	return err
}

// inspect looks at a queue; known is false where only the broker answered.
func inspect(sess *conn.Session, queue string) (st amqp091.Queue, known bool, err error) {
	type answer struct {
		st    amqp091.Queue
		known bool
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	found := make(chan answer, 1)
	err = sess.Scratch(ctx, func(ch conn.Channel) error {
		st, known, err := stat(ch, queue, 0)
		found <- answer{st, known}
		return err
	})
	if err != nil {
		return st, false, err
	}
	a := <-found
	return a.st, a.known, nil
}
