package container_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

var errLedger = errors.New("the ledger is down")

// lanes is a container whose first record of key a fails once and is parked for an
// hour, with a follower behind it.
func lanes(t *testing.T, b *memory.Broker, cfg container.Config) (c *container.ListenerContainer, got *seen) {
	t.Helper()
	publish(t, b, "q", "a:1", "a:2", "b:1")
	got = &seen{}
	failed := false
	cfg.Order = container.ByKey
	cfg.Redelivery = container.Redelivery{Backoff: container.Backoff{Initial: time.Hour, Max: time.Hour, Jitter: -1}}
	c = start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
		if string(d.Body) == "a:1" && !failed {
			failed = true
			return errLedger
		}
		got.add(string(d.Body))
		return nil
	}), cfg)
	synctest.Wait()
	return c, got
}

func records(held []container.Held) string {
	var s []string
	for _, h := range held {
		s = append(s, h.Record+" "+string(h.State))
	}
	return strings.Join(s, ", ")
}

func TestParkedRecordIsRetriedNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, got := lanes(t, b, container.Config{})
		held, total := c.InFlight(0)
		if records(held) != "memory/q/1 parked, memory/q/2 behind" || total != 2 {
			t.Fatalf("%s of %d", records(held), total)
		}
		if h := held[0]; h.Key != "a" || h.Attempt != 2 || time.Until(h.Due) < 59*time.Minute {
			t.Errorf("%+v", h)
		}
		if _, err := c.RetryNow(container.Intervention{Record: "a:2"}); !errors.Is(err, longshore.CodeState) || !strings.Contains(err.Error(), `retry "memory/q/1"`) {
			t.Errorf("a follower: %v", err)
		}
		if _, err := c.RetryNow(container.Intervention{Record: "nobody's"}); !errors.Is(err, longshore.CodeNotFound) {
			t.Errorf("an unknown one: %v", err)
		}
		if h, err := c.RetryNow(container.Intervention{Record: "a:1"}); err != nil || h.State != container.HeldParked {
			t.Fatal(h, err)
		}
		synctest.Wait()
		if s := strings.Join(got.all(), " "); s != "b:1 a:1 a:2" && s != "a:1 b:1 a:2" {
			t.Errorf("handled %s", s)
		}
		stop(t, c)
		if i := b.Inspect("q"); i.Ready+i.Unsettled != 0 {
			t.Errorf("%+v", i)
		}
	})
}

func TestParkedRecordIsDeadLettered(t *testing.T) {
	for _, to := range []string{"q.dead", ""} {
		t.Run("to "+to, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				cfg := container.Config{}
				cfg.DeadLetter.To = to
				c, got := lanes(t, b, cfg)
				_, err := c.DeadLetterNow(container.Intervention{Record: "memory/q/1", Reason: "ticket 7"})
				synctest.Wait()
				if to == "" { // kept: nowhere to go
					if !errors.Is(err, longshore.CodeState) || c.Stats().Parked != 2 {
						t.Errorf("%v, %d parked", err, c.Stats().Parked)
					}
					return
				}
				if err != nil || got.len() != 2 || c.Stats().Parked != 0 {
					t.Fatalf("%v, handled %v, %d parked", err, got.all(), c.Stats().Parked)
				}
				m := b.Inspect(to)
				if m.Ready != 1 {
					t.Fatalf("%+v", m)
				}
				stop(t, c)
				if i := b.Inspect("q"); i.Ready+i.Unsettled != 0 {
					t.Errorf("%+v", i)
				}
			})
		})
	}
}

// A follower that is given up is taken out of its lane; the lane still waits for its
// head.
func TestFollowerIsDeadLettered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, got := lanes(t, b, container.Config{DeadLetter: container.DeadLetter{To: "q.dead"}})
		publish(t, b, "q", "a:3")
		synctest.Wait()
		if _, err := c.DeadLetterNow(container.Intervention{Record: "a:2"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		held, _ := c.InFlight(0)
		if records(held) != "memory/q/1 parked, memory/q/4 behind" || b.Inspect("q.dead").Ready != 1 {
			t.Fatalf("%s, %+v", records(held), b.Inspect("q.dead"))
		}
		if _, err := c.ReleaseNow(container.Intervention{Record: "a:1"}); !errors.Is(err, longshore.CodeUnsupported) {
			t.Errorf("a release that others would overtake: %v", err)
		}
		if _, err := c.RetryNow(container.Intervention{Record: "a:1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := strings.Join(got.all(), " "); !strings.HasSuffix(s, "a:1 a:3") && s != "a:1 b:1 a:3" {
			t.Errorf("handled %s", s)
		}
		stop(t, c)
		if st := c.Stats(); st.InFlight+st.Parked != 0 || st.Bytes != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// A place that takes nothing keeps the record here; the next try can be asked for.
func TestDeadLetterThatFailsIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, _ := lanes(t, b, container.Config{DeadLetter: container.DeadLetter{To: "q.dead"}})
		b.FailPublish("q.dead", 1, errLedger)
		if _, err := c.DeadLetterNow(container.Intervention{Record: "a:1"}); !errors.Is(err, longshore.CodeDeadLetter) {
			t.Fatal(err)
		}
		held, _ := c.InFlight(0)
		if records(held) != "memory/q/1 moving, memory/q/2 behind" {
			t.Fatal(records(held))
		}
		if _, err := c.RetryNow(container.Intervention{Record: "a:1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := c.Stats(); b.Inspect("q.dead").Ready != 1 || st.Parked != 0 || st.Acked != 2 {
			t.Errorf("%+v, %+v", b.Inspect("q.dead"), st)
		}
	})
}

// One that was given up behind others of its key, and stays because its place takes
// nothing, has been overtaken: given back to the broker it would come out of order.
func TestGivenUpFollowerIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		c, _ := lanes(t, b, container.Config{DeadLetter: container.DeadLetter{To: "q.dead"}})
		b.FailPublish("q.dead", 1, errLedger)
		if _, err := c.DeadLetterNow(container.Intervention{Record: "a:2"}); !errors.Is(err, longshore.CodeDeadLetter) {
			t.Fatal(err)
		}
		if _, err := c.ReleaseNow(container.Intervention{Record: "a:2"}); !errors.Is(err, longshore.CodeUnsupported) {
			t.Errorf("released: %v", err)
		}
		wait(2 * time.Hour)
		if n := b.Inspect("q.dead").Ready; n != 1 {
			t.Errorf("%d dead letters, want it there when its place is back", n)
		}
	})
}

// What runs is taken only with Interrupt; then its handler is told, and the wish
// counts whatever it returns.
func TestRunningRecordIsInterrupted(t *testing.T) {
	type call func(*container.ListenerContainer, container.Intervention) (container.Held, error)
	dead, release := call((*container.ListenerContainer).DeadLetterNow), call((*container.ListenerContainer).ReleaseNow)
	for name, what := range map[string]struct {
		do     call
		settle container.Settle
		dead   int
	}{
		"dead-letter":              {dead, container.SettleAuto, 1},
		"release":                  {release, container.SettleAuto, 0},
		"dead-letter, by hand":     {dead, container.SettleManual, 1},
		"release, settled by hand": {release, container.SettleManual, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := memory.New(memory.Config{})
				publish(t, b, "q", "m")
				calls := 0
				c := start(t, b.Queue("q", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
					if calls++; calls > 1 {
						if d.Attempt != 1 {
							t.Errorf("attempt %d: it was to be uncounted", d.Attempt)
						}
						_ = d.Ack(ctx)
						return nil
					}
					<-ctx.Done()
					return nil
				}), container.Config{Settle: what.settle, DeadLetter: container.DeadLetter{To: "q.dead"}, Stuck: container.Stuck{After: time.Minute}})
				synctest.Wait()
				in := container.Intervention{Record: "m"}
				if _, err := what.do(c, in); !errors.Is(err, longshore.CodeState) || !strings.Contains(err.Error(), "interrupt") {
					t.Fatal(err)
				}
				<-time.After(2 * time.Minute) // of virtual time
				stuck := c.Stuck()
				if len(stuck) != 1 || stuck[0].Age < time.Minute || !strings.Contains(stuck[0].Stack, "TestRunningRecordIsInterrupted") {
					t.Errorf("stuck: %+v", stuck)
				}
				in.Interrupt = true
				if h, err := what.do(c, in); err != nil || h.State != container.HeldStuck {
					t.Fatal(h, err)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				if got := b.Inspect("q.dead").Ready; got != what.dead || calls != 2-what.dead {
					t.Errorf("%d dead, %d calls", got, calls)
				}
				stop(t, c)
				if i := b.Inspect("q"); i.Ready+i.Unsettled != 0 {
					t.Errorf("%+v", i)
				}
			})
		})
	}
}

// Given back, a record is the broker's again, uncounted.
func TestReadyRecordIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "1", "2")
		hold := make(chan struct{})
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(*longshore.Delivery) error { <-hold; return nil }), container.Config{Workers: container.Workers{Max: 1}})
		synctest.Wait()
		c.Pause()
		if _, err := c.ReleaseNow(container.Intervention{Record: "2"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := c.Stats(); st.InFlight != 1 || st.Released != 1 {
			t.Errorf("%d in flight, %d released", st.InFlight, st.Released)
		}
		close(hold)
		c.Resume()
		synctest.Wait()
		if st := c.Stats(); st.Acked != 2 || st.Received != 3 {
			t.Errorf("%d acked of %d received: the one that was given back comes again", st.Acked, st.Received)
		}
		stop(t, c)
		if _, err := c.RetryNow(container.Intervention{Record: "1"}); !errors.Is(err, longshore.CodeState) {
			t.Errorf("after the stop: %v", err)
		}
	})
}

// Hands everywhere while half of the calls fail: nothing is lost, nothing is both
// handled and dead, and the sums come out even.
func TestHandsUnderLoad(t *testing.T) {
	for _, order := range []container.Order{container.Unordered, container.ByKey} {
		t.Run(order.String(), func(t *testing.T) {
			const n = 400
			b := memory.New(memory.Config{})
			var bodies []string
			for i := range n {
				bodies = append(bodies, fmt.Sprintf("%d:%d", i%23, i))
			}
			publish(t, b, "q", bodies...)
			var acked sync.Map
			c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
				if rand.IntN(2) == 0 {
					return errLedger
				}
				if _, twice := acked.LoadOrStore(string(d.Body), true); twice {
					t.Errorf("%s was handled twice", d.Body)
				}
				return nil
			}), container.Config{Order: order, DeadLetter: container.DeadLetter{To: "q.dead"}, Workers: container.Workers{Min: 4, Max: 8},
				Redelivery: container.Redelivery{MaxAttempts: 100, Backoff: container.Backoff{Initial: 3 * time.Millisecond, Max: 40 * time.Millisecond}}})
			hands := 0
			eventually(t, "all are through", func() bool {
				held, _ := c.InFlight(50)
				for _, h := range held {
					in := container.Intervention{Record: h.Record}
					switch rand.IntN(8) {
					case 0:
						_, _ = c.DeadLetterNow(in) // refused where it runs
					case 1:
						_, _ = c.ReleaseNow(in) // refused with an order, or where it runs
					default:
						_, _ = c.RetryNow(in) // refused unless parked
					}
					hands++
				}
				return int(c.Stats().Acked)+b.Inspect("q.dead").Ready == n
			})
			stop(t, c)
			i, st := b.Inspect("q"), c.Stats()
			if int(st.Acked)+b.Inspect("q.dead").Ready != n || i.Ready+i.Unsettled+i.Delayed != 0 || st.InFlight+st.Parked+st.Queued != 0 || st.Bytes != 0 || hands == 0 {
				t.Errorf("%+v, %+v, after %d hands", i, st, hands)
			}
		})
	}
}
