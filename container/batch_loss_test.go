package container_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
)

// batchOf starts a batch container with one worker on a hand-made source, whose
// deliveries all have one key.
func batchOf(t *testing.T, cfg container.Config, h func(ds []*longshore.Delivery) error) (*handout, *container.ListenerContainer) {
	t.Helper()
	s := &handout{in: make(chan *longshore.Delivery), given: map[uint64]string{}}
	cfg.Order, cfg.Workers = container.ByKey, container.Workers{Max: 1}
	cfg.Batch = container.Batch{Size: 3, Linger: time.Second}
	return s, startBatch(t, s, func(_ context.Context, ds []*longshore.Delivery) error {
		for _, d := range ds {
			s.seen.add(fmt.Sprint("handle ", d.ID, " ", d.Attempt))
		}
		return h(ds)
	}, cfg)
}

// take takes deliveries back as a broker does, which may tell of it later.
func (s *handout) take(told bool, ds ...*longshore.Delivery) {
	for _, d := range ds {
		d.Lose(longshore.ErrLost)
	}
	if told {
		s.o.Observer.Lost(ds, longshore.ErrLost)
	}
}

// happened returns what was handled, in order, and what was settled, sorted: what goes
// back is sent by more than one.
func (s *handout) happened() string {
	var handled, settled []string
	for _, v := range s.seen.all() {
		if rest, ok := strings.CutPrefix(v, "handle "); ok {
			handled = append(handled, rest)
		} else {
			settled = append(settled, v)
		}
	}
	slices.Sort(settled)
	return strings.Join(handled, " ") + " | " + strings.Join(settled, " ")
}

func wantHappened(t *testing.T, s *handout, c *container.ListenerContainer, want string) {
	t.Helper()
	if got := s.happened(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if st := c.Stats(); st.InFlight+st.Parked+st.Lanes != 0 {
		t.Errorf("idle, with %d in flight, %d parked, %d lanes", st.InFlight, st.Parked, st.Lanes)
	}
}

// failing fails those of a first attempt.
func failing(ds []*longshore.Delivery, ids string) error {
	failed := longshore.BatchError{}
	for i, d := range ds {
		if d.Attempt == 1 && strings.Contains(ids, d.ID) {
			failed[i] = errBad
		}
	}
	return failed
}

// One of a lane is lost while its batch is handled: those behind it in the same batch
// that failed go back too. Tried again here, they would come before it.
func TestLossInABatchLetsNobodyPast(t *testing.T) {
	for name, tc := range map[string]struct {
		lost       int
		fail, want string
	}{
		"the first":     {0, "b", "a 1 b 1 c 1 | ack c nack b 2 nack d 1"},
		"in the middle": {1, "ac", "a 1 b 1 c 1 a 2 | ack a nack c 2 nack d 1"},
		"the last":      {2, "ab", "a 1 b 1 c 1 a 2 b 2 | ack a ack b nack d 1"},
	} {
		for _, told := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, told %t", name, told), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ds []*longshore.Delivery
					s, c := batchOf(t, container.Config{}, func(got []*longshore.Delivery) error {
						wait(time.Second)
						return failing(got, tc.fail)
					})
					for _, id := range []string{"a", "b", "c", "d"} {
						ds = append(ds, s.give(id))
					}
					wait(1500 * time.Millisecond) // the batch has begun
					s.take(told, ds[tc.lost])
					wait(time.Minute)
					wantHappened(t, s, c, tc.want)
				})
			})
		}
	}
}

// One is lost before its batch begins, and nobody has told of it yet: the handler is
// not given those behind it.
func TestBatchEndsBeforeALostOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := batchOf(t, container.Config{}, func(ds []*longshore.Delivery) error { return failing(ds, "") })
		s.give("a")
		b := s.give("b")
		s.take(false, b)
		s.give("c")
		s.give("d")
		wait(time.Minute)
		wantHappened(t, s, c, "a 1 | ack a nack c 1 nack d 1")
	})
}

// The lost one comes again while its batch is still handled, and what is behind it
// too: what failed is older than that.
func TestLostInABatchAndBackBeforeItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := batchOf(t, container.Config{}, func(ds []*longshore.Delivery) error {
			wait(time.Second)
			return failing(ds, "b")
		})
		a := s.give("a")
		s.give("b")
		s.give("c")
		wait(1500 * time.Millisecond) // the batch has begun
		s.take(true, a)
		s.give("a'")
		s.give("d'")
		wait(time.Minute)
		wantHappened(t, s, c, "a 1 b 1 c 1 | ack c nack a' 1 nack b 2 nack d' 1")
	})
}

// dawdler takes a dead letter in two seconds, and calls meanwhile.
type dawdler struct {
	batch     []*longshore.Delivery
	meanwhile func(batch []*longshore.Delivery)
}

func (p *dawdler) Publish(context.Context, string, ...*longshore.Message) error {
	wait(time.Second)
	p.meanwhile(p.batch)
	wait(time.Second)
	return nil
}
func (*dawdler) Close(context.Context) error { return nil }

// The verdicts of a batch are carried out one after the other, and one of them takes
// long: what happens to those before it meanwhile counts for those after it, and what
// comes again meanwhile is not taken for something older.
func TestVerdictsOfABatchTakeLong(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(c *container.ListenerContainer, s *handout, batch []*longshore.Delivery)
		want      string
	}{
		"the first is lost": {func(_ *container.ListenerContainer, s *handout, batch []*longshore.Delivery) {
			s.take(true, batch[0])
		}, "[handle a 1 handle b 1 handle c 1 nack d 1 ack b nack c 2]"},
		"all are lost": {func(_ *container.ListenerContainer, s *handout, batch []*longshore.Delivery) {
			s.take(true, batch...)
			s.give("a'")
			s.give("b'")
		}, "[handle a 1 handle b 1 handle c 1 nack d 1 handle a' 1 handle b' 1 ack a' ack b']"},
		"stopped": {func(c *container.ListenerContainer, _ *handout, _ []*longshore.Delivery) {
			go func() { _ = c.Stop(context.Background()) }()
		}, "[handle a 1 handle b 1 handle c 1 ack b nack a 2 nack c 2 nack d 1]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &dawdler{}
				s, c := batchOf(t, container.Config{DeadLetter: container.DeadLetter{To: "dead", Via: p}, Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Minute}}},
					func(ds []*longshore.Delivery) error {
						if len(ds) < 3 {
							return nil
						}
						p.batch = append(p.batch, ds...)
						return longshore.BatchError{0: errBad, 1: longshore.Reject(errBad), 2: errBad}
					})
				p.meanwhile = func(batch []*longshore.Delivery) { tc.meanwhile(c, s, batch) }
				for _, id := range []string{"a", "b", "c", "d"} {
					s.give(id)
				}
				wait(5 * time.Minute)
				if got := fmt.Sprint(s.seen.all()); got != tc.want {
					t.Errorf("%s, want %s", got, tc.want)
				}
			})
		})
	}
}
