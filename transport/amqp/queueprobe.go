package amqp

import (
	"errors"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport/amqp/internal/conn"
)

// Where a quorum queue does not answer its broker for 250 ms (it is busy, has no leader,
// waits for a disk), RabbitMQ answers in its place that it has no messages and no consumers.
// An answer that comes sooner is true.
const (
	answeredFor = 200 * time.Millisecond
	askTimes    = 4
	// howFar is how often it is measured how far away the broker is: the least counts, for
	// one measurement may have met a moment in which this process, or the broker, was busy.
	howFar = 3
)

var errSilent = &longshore.Error{Code: longshore.CodeTimeout, Op: "ask a queue",
	Err:  errors.New("the queue did not answer the broker, which then says that it is empty"),
	Hint: "it is busy or has no leader; see rabbitmq-diagnostics check_if_any_local_queues_have_no_leader, or rabbitmq-queues quorum_status"}

// stat asks for a queue once; known is false where the broker answered in its place.
// qos is the channel's, which is asked for by itself to know how far away the broker is.
func stat(ch conn.Channel, queue string, qos int) (st amqp091.Queue, known bool, err error) {
	begin := time.Now()
	st, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	took := time.Since(begin)
	if err != nil || st.Messages > 0 || st.Consumers > 0 || took < answeredFor {
		return st, err == nil, err
	}
	for range howFar {
		begin = time.Now()
		if err = ch.Qos(qos, 0, false); err != nil {
			return st, false, err
		}
		if took-time.Since(begin) >= answeredFor {
			return st, false, nil
		}
	}
	return st, true, nil
}

// ask asks a few times, on a channel without consumers. It fails with errSilent where
// only the broker answered.
func ask(ch conn.Channel, queue string) (amqp091.Queue, error) {
	for range askTimes {
		if st, known, err := stat(ch, queue, 0); known || err != nil {
			return st, err
		}
	}
	return amqp091.Queue{Name: queue}, errSilent
}
