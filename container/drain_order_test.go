package container_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
)

// hoard is a source whose only consumer has its deliveries in its buffer, and a broker
// that puts what it gets back into a row, in the order in which it gets it: as a
// quorum queue does from RabbitMQ 4.0 on.
type hoard struct {
	transport.Consumer
	counts bool
	slow   time.Duration // the first receive hangs with what it has, and ends so long after its context

	mu       sync.Mutex
	buffer   []*longshore.Delivery
	bodies   map[uint64]string
	hung     bool
	canceled bool
	acked    int
	back     seen
}

func newHoard(bodies []string) *hoard {
	s := &hoard{bodies: map[uint64]string{}}
	for i, body := range bodies {
		key, _, _ := strings.Cut(body, ":")
		d := longshore.NewDelivery(context.Background(), s, uint64(i))
		d.Body, d.Key, d.Attempt = []byte(body), []byte(key), 1
		s.buffer, s.bodies[uint64(i)] = append(s.buffer, d), body
	}
	return s
}

func (s *hoard) Describe() transport.Description {
	return transport.Description{Transport: "hoard", Kind: "queue", Name: "q"}
}
func (*hoard) Check() error { return nil }
func (s *hoard) Capabilities() transport.Capabilities {
	return transport.Capabilities{Attempts: true, CountsReturns: s.counts}
}
func (s *hoard) Open(context.Context, transport.OpenOptions) (transport.Consumer, error) {
	return s, nil
}

func (s *hoard) Receive(ctx context.Context, n int) ([]*longshore.Delivery, error) {
	s.mu.Lock()
	n = min(n, len(s.buffer))
	out := s.buffer[:n:n]
	s.buffer = s.buffer[n:]
	hang := !s.hung && s.slow > 0
	s.hung = true
	over := n == 0 && s.canceled
	s.mu.Unlock()
	switch {
	case over:
		return nil, longshore.ErrCanceled
	case n > 0 && !hang:
		return out, nil
	}
	<-ctx.Done()
	wait(s.slow)
	return out, nil
}

func (s *hoard) Cancel(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.canceled = true
	return nil
}

func (s *hoard) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.buffer {
		s.back.add(string(d.Body))
	}
	s.buffer = nil
	return nil
}

func (s *hoard) Ack(context.Context, uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acked++
	return nil
}

func (s *hoard) Nack(_ context.Context, tag uint64, _ time.Duration, _ int) error {
	s.back.add(s.bodies[tag])
	return nil
}
func (*hoard) Reject(context.Context, uint64, error) error         { return nil }
func (*hoard) Extend(context.Context, uint64, time.Duration) error { return nil }
func (*hoard) Resize(int)                                          {}
func (*hoard) Flush(context.Context) error                         { return nil }
func (*hoard) Close(context.Context) error                         { return nil }

// A stop whose time is over gives back what it has in hand before what the transport
// still has in its buffer: also where what was received was to be worked off, where
// heads wait for their retry, and where a receive was under way.
func TestWhatADrainGivesBackIsInOrder(t *testing.T) {
	busy := func(ctx context.Context, _ *longshore.Delivery) error {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
		return ctx.Err()
	}
	waiting := func(context.Context, *longshore.Delivery) error {
		return longshore.Retry(errors.New("not yet"), time.Minute)
	}
	for name, x := range map[string]struct {
		work   longshore.HandlerFunc
		counts bool
		slow   time.Duration
	}{
		"busy":                  {work: busy},
		"busy, counted":         {work: busy, counts: true},
		"busy, receiving":       {work: busy, counts: true, slow: 5 * time.Millisecond},
		"waiting":               {work: waiting},
		"waiting, counted":      {work: waiting, counts: true},
		"idle, receiving":       {slow: 5 * time.Millisecond},
		"idle, still receiving": {counts: true, slow: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHoard(keyed(300, 7))
				s.counts, s.slow = x.counts, x.slow
				c := start(t, s, x.work, container.Config{Order: container.ByKey, DrainTimeout: 3 * time.Millisecond,
					Workers: container.Workers{Min: 3, Max: 3}, Redelivery: container.Redelivery{Parked: 10}})
				wait(24 * time.Millisecond)
				rep := stop(t, c)
				if rep.Released == 0 {
					t.Errorf("nothing was in hand: %v", rep)
				}
				inOrder(t, s.back.all(), 300-s.acked)
			})
		})
	}
}
