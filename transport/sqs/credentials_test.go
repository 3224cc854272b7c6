package sqs_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
	"github.com/longshore-go/longshore/transport/sqs/sqstest"
)

// rotating is a broker whose key changes when change is called: the old one is refused
// from then on.
func rotating(s *sqstest.Server) (b *sqs.Broker, change func()) {
	var changed atomic.Bool
	cfg := s.Config()
	cfg.Credentials = keyProvider(func() string {
		if changed.Load() {
			return "new"
		}
		return "old"
	})
	s.AllowKeys("old", "test")
	return sqs.New(cfg), func() {
		changed.Store(true)
		s.AllowKeys("new", "test")
	}
}

// F-J03: a publisher uses changed credentials at its next call.
func TestPublisherFollowsChangedCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		b, change := rotating(s)
		p, err := b.Publisher(sqs.PublisherConfig{})
		must(t, err)
		for range 3 {
			must(t, p.Publish(t.Context(), "orders", &longshore.Message{Body: []byte("a")}))
			change()
		}
		must(t, p.Close(t.Context()))
		if st := state(t, s, "orders"); st.Visible != 3 {
			t.Errorf("%+v, want 3 messages", st)
		}
	})
}

// F-J03: what was done is deleted with changed credentials, and leases are kept, also
// where no poll finds out that they have changed.
func TestSettlementsAndLeasesFollowChangedCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		publish(t, sqs.New(s.Config()), "orders", "", numbered(5)...)
		b, change := rotating(s)
		w := &watcher{}
		c := open(t, b.Queue("orders", sqs.QueueConfig{}), w)
		ds := take(t, c, 5)
		must(t, c.(transport.Pauser).Pause(t.Context())) //nolint:errcheck // it is one
		change()
		for _, d := range ds[:2] {
			must(t, d.Ack(t.Context()))
		}
		wait(5 * time.Minute)
		if lost, failed, _ := w.counts(); lost+failed > 0 {
			t.Errorf("%d leases lost, %d settlements failed", lost, failed)
		}
		if st := state(t, s, "orders"); st.Visible != 0 || st.Hidden != 3 {
			t.Errorf("%+v, want 3 hidden", st)
		}
	})
}

// F-J03: credentials that come a while after the old ones were refused are in time for
// what is done, as long as its lease lasts.
func TestCredentialsThatComeLate(t *testing.T) {
	bubble(t, func(t *testing.T, s *sqstest.Server) {
		s.CreateQueue(t, "orders", nil)
		publish(t, sqs.New(s.Config()), "orders", "", numbered(1)...)
		b, change := rotating(s)
		w := &watcher{}
		c := open(t, b.Queue("orders", sqs.QueueConfig{}), w)
		d := take(t, c, 1)[0]
		must(t, c.(transport.Pauser).Pause(t.Context())) //nolint:errcheck // it is one
		s.AllowKeys("none", "test")
		must(t, d.Ack(t.Context()))
		wait(15 * time.Second)
		change()
		wait(30 * time.Second)
		if _, failed, _ := w.counts(); failed > 0 || state(t, s, "orders").Visible != 0 {
			t.Errorf("%d settlements failed, %+v", failed, state(t, s, "orders"))
		}
	})
}
