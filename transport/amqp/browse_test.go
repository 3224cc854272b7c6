package amqp_test

import (
	"testing"

	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
)

// What a look has given back is there for the next one: the broker puts it back on its
// own time, and a look that did not wait for that would be followed by one that finds
// less, or nothing, and says that this is all.
func TestOneLookAfterAnother(t *testing.T) {
	t.Parallel()
	const messages, looks = 40, 6
	onBrokers(t, func(t *testing.T, s *site) {
		for _, kind := range []amqp.QueueType{amqp.Quorum, amqp.Classic} {
			queue := s.declare(t, kind, nil)
			s.publish(t, queue, numbered(messages)...)
			for i := range looks {
				src := as[transport.Browser](t, amqp.New(s.url, amqp.Config{}).Queue(queue, amqp.QueueConfig{BrowseCounts: true}))
				ds, _, err := src.Browse(t.Context(), "", 2*messages)
				if err != nil || len(ds) != messages {
					t.Fatalf("%s: look %d found %d of %d: %v", kind, i, len(ds), messages, err)
				}
			}
		}
	})
}
