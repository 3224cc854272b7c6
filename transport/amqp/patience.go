package amqp

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// How long RabbitMQ waits for an acknowledgement is a setting of the broker, a policy or the
// queue, and AMQP does not show it. It becomes known when the broker takes deliveries back:
// up to 4.2 the number is in the text, later it is at most the age of the oldest delivery.
// The source remembers it, so that from the next subscription on nothing waits for longer.

// patience is the broker's, as far as it was seen; zero: not yet.
type patience struct{ seen atomic.Int64 }

// lease is what a delivery may take, where the configuration says how long it is.
func (p *patience) lease(configured time.Duration) time.Duration {
	if seen := time.Duration(p.seen.Load()); seen > 0 && configured > 0 {
		return min(seen, configured)
	}
	return configured
}

// learn notes a timeout: the broker's word, or else the age of what it took back.
func (p *patience) learn(e *amqp091.Error, age time.Duration) time.Duration {
	d := age
	if e != nil {
		if told, ok := timeoutIn(e.Reason); ok {
			d = told
		}
	}
	if d > 0 {
		p.seen.Store(int64(d))
	}
	return d
}

// timeoutIn reads "Timeout value used: 5000 ms", which RabbitMQ writes from 3.8.15 to 4.2:
// no code and no field has it.
func timeoutIn(reason string) (time.Duration, bool) {
	_, rest, ok := strings.Cut(reason, "Timeout value used: ")
	digits, _, unit := strings.Cut(rest, " ms")
	ms, err := strconv.ParseInt(digits, 10, 32)
	return time.Duration(ms) * time.Millisecond, ok && unit && err == nil && ms > 0
}
