package amqp

import (
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// A queue that has messages and sends none ends the consumer after some looks. Where that
// did not help, the next consumer waits twice as long, up to a bound, until one gets
// something.
func TestAStarvedConsumerIsReplacedEverMoreSeldom(t *testing.T) {
	src := New("amqp://h", Config{}).Queue("q", QueueConfig{})
	looks := func(now arrivals) int {
		l := &liveness{src: src, look: func(string) (amqp091.Queue, bool, error) { return amqp091.Queue{Messages: 3, Consumers: 1}, true, nil }}
		for n := 1; n < 1000; n++ {
			if l.check([]string{"q"}, 1, now) != nil {
				return n
			}
		}
		return 0
	}
	for _, want := range []int{4, 8, 16, 32, 64, 128, 128, 128} {
		if got := looks(arrivals{}); got != want {
			t.Errorf("it ended after %d looks, want %d", got, want)
		}
	}
	// The first look sees what has arrived, which counts as none and begins again.
	if got := looks(arrivals{top: 7}); got != 5 {
		t.Errorf("once something has arrived it ended after %d looks, want 5", got)
	}
	if got := looks(arrivals{outstanding: 1}); got != 0 {
		t.Errorf("with work in hand it ended after %d looks", got)
	}
}
