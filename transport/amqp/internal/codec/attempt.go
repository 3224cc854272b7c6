package codec

import (
	"math"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
)

// A delivery's attempt counts the failed runs of handlers in its queue, and nothing the
// message brought along shortens its life there. What the broker shows is no such count:
// up to 4.2 a quorum queue counts every return, from 4.3 on every closed channel, a
// classic queue knows "redelivered" only, and whoever moves a message with all of its
// headers moves these numbers too.
//
// So a retry that is to be counted is a copy with a header of ours. It comes back through
// a delay queue of this very queue, and RabbitMQ notes that way in x-death, which a copy of
// ours never carries when it is sent. The header is believed where that is the only way
// the message has come: any other death ended the life in which it was written.

// Attempt is the attempt that a delivery of the queue carries.
func Attempt(raw *amqp091.Delivery, queue string) int {
	n, ok := raw.Headers[headerAttempt]
	if !ok || !cameBack(raw.Headers["x-death"], queue) {
		return 1
	}
	attempt, ok := longshore.Headers{{Value: n}}.Int("")
	if !ok || attempt < 1 || attempt > math.MaxInt32 {
		return 1
	}
	return int(attempt)
}

// cameBack tells from x-death whether a message has come out of a delay queue of the
// queue, and has been nowhere else since.
func cameBack(deaths any, queue string) bool {
	list, _ := deaths.([]any)
	if len(list) != 1 {
		return false
	}
	death, _ := list[0].(amqp091.Table)
	from, _ := death["queue"].(string)
	reason, _ := death["reason"].(string)
	return reason == "expired" && Integer(death["count"]) <= 1 && isDelayQueue(from, queue)
}

// Returns is how often the broker says that the delivery was given back in this queue.
// A first delivery was not, whatever it carries.
func Returns(raw *amqp091.Delivery) int {
	if !raw.Redelivered {
		return 0
	}
	return Capped(Integer(raw.Headers["x-delivery-count"]))
}

// Capped is a count of the broker's as an int.
func Capped(n int64) int { return int(min(max(n, 0), math.MaxInt32)) }

// Offset is the offset of a delivery of a stream.
func Offset(raw *amqp091.Delivery) (int64, bool) {
	at, ok := raw.Headers[HeaderOffset].(int64)
	return at, ok
}
