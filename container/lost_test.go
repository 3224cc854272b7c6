package container_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
)

// handout is a source whose only consumer hands out what it is given, and notes what
// becomes of it.
type handout struct {
	transport.Consumer
	o     transport.OpenOptions
	in    chan *longshore.Delivery
	n     uint64
	seen  seen
	mu    sync.Mutex
	given map[uint64]string
	nack  error // of each
}

func (*handout) Capabilities() transport.Capabilities { return transport.Capabilities{} }
func (s *handout) Open(_ context.Context, o transport.OpenOptions) (transport.Consumer, error) {
	s.o = o
	return s, nil
}

func (s *handout) give(id string) *longshore.Delivery {
	s.mu.Lock()
	s.n++
	d := longshore.NewDelivery(s.o.Base, s, s.n)
	d.ID, d.Key = id, []byte("k")
	s.given[s.n] = id
	s.mu.Unlock()
	s.in <- d
	synctest.Wait()
	return d
}

func (s *handout) Receive(ctx context.Context, _ int) ([]*longshore.Delivery, error) {
	select {
	case d := <-s.in:
		return []*longshore.Delivery{d}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *handout) name(t uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given[t]
}

func (s *handout) Ack(_ context.Context, t uint64) error { s.seen.add("ack " + s.name(t)); return nil }
func (s *handout) Nack(_ context.Context, t uint64, _ time.Duration, attempt int) error {
	s.seen.add(fmt.Sprintf("nack %s %d", s.name(t), attempt))
	return s.nack
}
func (*handout) Reject(context.Context, uint64, error) error         { return nil }
func (*handout) Extend(context.Context, uint64, time.Duration) error { return nil }
func (*handout) Cancel(context.Context) error                        { return nil }
func (*handout) Release(context.Context) error                       { return nil }
func (*handout) Flush(context.Context) error                         { return nil }
func (*handout) Close(context.Context) error                         { return nil }

// One in the middle of a lane is taken back (its partition, its lease) while the first
// waits for its retry: what was behind the lost one goes back, and the lane still waits
// for its first.
func TestLossInTheMiddleOfALaneLetsNobodyPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &handout{in: make(chan *longshore.Delivery), given: map[uint64]string{}}
		c := start(t, s, handle(func(d *longshore.Delivery) error {
			s.seen.add(fmt.Sprint("handle ", d.ID, " ", d.Attempt))
			if d.ID == "a" && d.Attempt == 1 {
				return longshore.Retry(errors.New("busy"), time.Second)
			}
			return nil
		}), container.Config{Order: container.ByKey})
		s.give("a")
		lost := s.give("b")
		s.give("c")
		lost.Lose(longshore.ErrLost)
		s.o.Observer.Lost([]*longshore.Delivery{lost}, longshore.ErrLost)
		synctest.Wait()
		s.give("d")
		wait(2 * time.Second)
		if got, want := fmt.Sprint(s.seen.all()), "[handle a 1 nack c 1 handle a 2 ack a handle d 1 ack d]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if st := c.Stats(); st.InFlight+st.Parked+st.Lanes != 0 {
			t.Errorf("idle, with %d in flight, %d parked, %d lanes", st.InFlight, st.Parked, st.Lanes)
		}
	})
}

// What is lost while it goes back is counted as lost, and not as given back.
func TestLossOnTheWayBackIsNoRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &handout{in: make(chan *longshore.Delivery), given: map[uint64]string{}, nack: longshore.ErrLost}
		c := start(t, s, handle(func(*longshore.Delivery) error {
			return longshore.Retry(errors.New("busy"), time.Minute)
		}), container.Config{Order: container.ByKey})
		s.give("a")
		lost := s.give("b")
		s.give("c")
		lost.Lose(longshore.ErrLost)
		s.o.Observer.Lost([]*longshore.Delivery{lost}, longshore.ErrLost)
		synctest.Wait()
		if st := c.Stats(); st.Released != 0 || st.VerdictLost != 1 {
			t.Errorf("%d released, %d lost", st.Released, st.VerdictLost)
		}
	})
}

// With manual settling, what was lost after its handler had returned gives its permit
// back, and is told and counted as lost.
func TestManualLossGivesThePermitBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "1", "2")
		l := later{make(chan *longshore.Delivery, 100)}
		g, o := newGate(2, 0), &verdicts{}
		c := start(t, b.Queue("q", memory.QueueConfig{}), l, container.Config{Settle: container.SettleManual, Throttle: g, Middleware: []longshore.Middleware{o}})
		wait(time.Second)
		if n, _ := g.out(); n != 2 || len(l.ch) != 2 {
			t.Fatalf("%d permits, %d handed out", n, len(l.ch))
		}
		b.TakeBack("q")
		wait(time.Second)
		if n, _ := g.out(); n != 2 || len(l.ch) != 4 {
			t.Errorf("%d permits are taken, %d were handed out: the lost ones keep theirs", n, len(l.ch))
		}
		if st := c.Stats(); st.VerdictLost != 2 || o.seen.len() != 2 {
			t.Errorf("%d counted as lost, told of %v", st.VerdictLost, o.seen.all())
		}
		for len(l.ch) > 0 {
			_ = (<-l.ch).Ack(context.Background())
			synctest.Wait()
		}
		wait(time.Second)
		if n, _ := g.out(); n != 0 {
			t.Errorf("%d permits are taken, and nothing is here", n)
		}
	})
}

// verdicts hears of what became of deliveries.
type verdicts struct{ seen seen }

func (*verdicts) Wrap(next longshore.Handler) longshore.Handler { return next }
func (o *verdicts) Outcome(d *longshore.Delivery, out longshore.Outcome) {
	o.seen.add(fmt.Sprint(d.ID, " ", out.Verdict))
}
