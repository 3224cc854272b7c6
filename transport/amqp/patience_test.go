package amqp

import (
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// The number is in the text up to 4.2; where it is not, the age of what was taken back is
// the most that it can be.
func TestPatienceIsLearned(t *testing.T) {
	const text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: "
	for _, like := range []struct {
		told *amqp091.Error
		want time.Duration
	}{
		{&amqp091.Error{Reason: text + "5000 ms. This timeout value can be configured, see consumers doc guide to learn more"}, 5 * time.Second},
		{&amqp091.Error{Reason: text + "x ms."}, time.Minute},
		{&amqp091.Error{Reason: text + "5000"}, time.Minute},
		{&amqp091.Error{Reason: text + "-5 ms"}, time.Minute},
		{nil, time.Minute},
	} {
		var p patience
		p.learn(like.told, time.Minute)
		if got := p.lease(defaultLease); got != like.want {
			t.Errorf("%v: %s, want %s", like.told, got, like.want)
		}
		if got := p.lease(time.Second); got != time.Second {
			t.Errorf("what is configured is longer than what was seen: %s", got)
		}
		if got := p.lease(0); got != 0 {
			t.Errorf("without leases: %s", got)
		}
	}
}
