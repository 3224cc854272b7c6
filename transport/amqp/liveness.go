package amqp

import (
	"errors"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// A broker does not report everything: when a queue fails over or is replaced, a consumer
// may be forgotten without basic.cancel and with a connection in perfect health. The queue
// is therefore looked at now and then. With consumers of other instances on the queue their
// number says nothing, so a queue that has messages and sends none counts too.
//
// One case cannot be seen. Where a quorum queue is deleted and created again at once,
// RabbitMQ 3.10 goes on to count the consumer on the new queue, hands messages to it and
// drops them on the way, because it takes their numbers for ones that it has sent before.
// The documentation of the transport says so.

const (
	patrolEvery  = 5 * time.Second
	patrolShort  = 2 // so many looks with too few consumers end the consumer
	patrolStill  = 4 // and so many with messages ready, nothing in work and nothing coming
	orphanReason = "the broker no longer counts this consumer"
)

// liveness looks at a consumer's queues now and then. One goroutine owns it.
type liveness struct {
	src     *Queue                                                       // for names
	counted func() int                                                   // how many consumers each queue should count for us
	look    func(queue string) (st amqp091.Queue, known bool, err error) // counts the queue's messages and consumers
	top     uint64                                                       // the highest tag at the last look
	short   int                                                          // looks in a row with too few consumers
	still   int                                                          // looks in a row with messages ready, nothing in work and nothing coming
}

// check returns why the consumer is at its end, nil while it is not. Each queue should
// count so many consumers for us; 0: that is not known. What cannot be known now is no
// reason.
func (l *liveness) check(queues []string, consumers int, now arrivals) error {
	if consumers == 0 {
		l.top, l.short, l.still = now.top, 0, 0
		return nil
	}
	short, ready := false, false
	for _, name := range queues {
		st, known, err := l.look(name)
		if e, ok := conn.AsAMQP(err); ok && e.Code == amqp091.NotFound {
			return l.orphaned(fmt.Errorf("queue %q was deleted", name))
		}
		if err != nil || !known {
			return nil
		}
		short = short || st.Consumers < consumers
		ready = ready || st.Messages > 0
	}
	l.short = inARow(l.short, short)
	l.still = inARow(l.still, ready && now.outstanding == 0 && now.top == l.top)
	if now.top != l.top {
		l.src.starved.Store(0)
	}
	l.top = now.top
	switch {
	case l.short >= patrolShort:
		return l.orphaned(errors.New(orphanReason))
	case l.still >= patrolStill<<l.src.starved.Load():
		// Nothing is lost by subscribing again. Where other consumers have priority, or one
		// is the single active one, it does not help either, so it comes ever more seldom.
		l.src.starved.Store(min(l.src.starved.Load()+1, 5))
		return l.orphaned(errors.New("messages are ready and the broker sends none"))
	}
	return nil
}

// inARow counts on, or begins again.
func inARow(n int, again bool) int {
	if again {
		return n + 1
	}
	return 0
}

// orphaned is the end of a consumer that RabbitMQ does not know any more.
func (l *liveness) orphaned(why error) error {
	return &longshore.Error{Code: longshore.CodeCanceledBy, Op: "consume from " + l.src.title(), Source: l.src.name(),
		Err: why, Hint: "it is opened again by itself"}
}
