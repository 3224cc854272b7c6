package kafka_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/kafka"
)

// An ack that comes while a seek moves the position is refused: no commit would have what its
// handler has published, and behind the new position nobody publishes it again.
func TestTransactionAndAnAckDuringASeek(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, 1)
	out := c.withOut(1)
	c.produce(0, 3, 3, 0)
	m := open(t, c.group(kafka.GroupConfig{Transactional: &kafka.Transactional{}}))
	ds := m.take(3)
	pass(t, out, ds[0])
	ack(t, ds[0])
	m.flush()
	pass(t, out, ds[1])
	var moving atomic.Bool
	var late error
	tried := make(chan struct{})
	c.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Observe: true, Count: -1, When: func(kmsg.Request) bool {
		if moving.CompareAndSwap(true, false) {
			late = ds[1].Ack(t.Context())
			close(tried)
		}
		return true
	}})
	s := m.Consumer.(transport.Seeker) //nolint:errcheck // it is one
	if _, err := s.Seek(t.Context(), transport.Position{Partition: 0, End: true}, 0, func() { moving.Store(true) }); err != nil {
		t.Fatal(err)
	}
	<-tried
	if !errors.Is(late, longshore.ErrLost) {
		t.Errorf("the late ack: %v, want that the delivery is lost", late)
	}
	if got := c.results(out, 1); len(got) != 1 {
		t.Errorf("%d results, want that of the first", len(got))
	}
}
