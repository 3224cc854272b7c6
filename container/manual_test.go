package container_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/transport/memory"
)

// later settles deliveries from another goroutine.
type later struct{ ch chan *longshore.Delivery }

func (l later) Handle(_ context.Context, d *longshore.Delivery) error {
	l.ch <- d
	return nil
}

func TestManualSettlingHoldsSlotLaneAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "a:1", "a:2", "b:1")
		l := later{make(chan *longshore.Delivery, 10)}
		c := start(t, b.Queue("q", memory.QueueConfig{}), l, container.Config{Settle: container.SettleManual, Order: container.ByKey})
		synctest.Wait()
		a1, b1 := <-l.ch, <-l.ch
		if len(l.ch) != 0 || string(a1.Body) != "a:1" || string(b1.Body) != "b:1" {
			t.Fatalf("%s, %s and %d more", a1.Body, b1.Body, len(l.ch))
		}
		if st := c.Stats(); st.Busy != 0 || st.InFlight != 3 || a1.Context().Err() != nil {
			t.Errorf("busy %d, in flight %d, context %v", st.Busy, st.InFlight, a1.Context().Err())
		}
		ctx := context.Background()
		if err := a1.Ack(ctx); err != nil {
			t.Fatal(err)
		}
		if a1.Context().Err() == nil {
			t.Error("the context outlives the settlement")
		}
		if err := a1.Ack(ctx); !errors.Is(err, longshore.ErrSettled) {
			t.Errorf("second ack: %v", err)
		}
		a2 := <-l.ch
		if err := a2.Nack(ctx, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		again := <-l.ch
		if took := time.Since(begin); took < 5*time.Second || again.Attempt != 2 || again == a2 {
			t.Errorf("came back after %v as attempt %d", took, again.Attempt)
		}
		if err := a2.Ack(ctx); !errors.Is(err, longshore.ErrSettled) {
			t.Errorf("ack of the old attempt: %v", err)
		}
		_ = again.Ack(ctx)
		_ = b1.Ack(ctx)
		stop(t, c)
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 3")
	})
}

func TestManualDrainWaitsForWhatIsOutstanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(2)...)
		l := later{make(chan *longshore.Delivery, 10)}
		c := start(t, b.Queue("q", memory.QueueConfig{}), l, container.Config{Settle: container.SettleManual, DrainTimeout: 5 * time.Second})
		synctest.Wait()
		first, second := <-l.ch, <-l.ch
		_ = second.Context().Done() // somebody waits for it
		time.AfterFunc(2*time.Second, func() { _ = first.Ack(context.Background()) })
		begin := time.Now()
		err := c.Stop(context.Background())
		if took := time.Since(begin); took < 5*time.Second || took > c.StopBudget()+100*time.Millisecond {
			t.Errorf("stop took %v", took)
		}
		if rep := c.Report(); !errors.Is(err, longshore.CodeDrain) || rep.Completed != 1 || rep.Abandoned != 1 {
			t.Errorf("%v: %v", err, rep)
		}
		if !errors.Is(context.Cause(second.Context()), longshore.ErrStopping) {
			t.Errorf("cause %v", context.Cause(second.Context()))
		}
		if err := second.Ack(context.Background()); !errors.Is(err, longshore.ErrLost) && !errors.Is(err, longshore.ErrClosed) {
			t.Errorf("late ack: %v", err)
		}
		wantHeld(t, b, "q", "ready 1, unsettled 0, delayed 0, acked 1")
	})
}

// A lost delivery frees its slot although nobody will settle it.
func TestManualLossFreesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", numbered(30)...)
		l := later{make(chan *longshore.Delivery, 1000)}
		c := start(t, b.Queue("q", memory.QueueConfig{}), l, container.Config{Settle: container.SettleManual, Workers: container.Workers{Max: 1}})
		for i := range 5 {
			wait(time.Second)
			if st := c.Stats(); st.InFlight != st.Window || len(l.ch) != (i+1)*st.Window {
				t.Errorf("%d in flight of %d, %d handed out", st.InFlight, st.Window, len(l.ch))
			}
			b.Drop("q")
			wait(time.Minute)
		}
		if err := c.Stop(context.Background()); !errors.Is(err, longshore.CodeDrain) {
			t.Errorf("nobody settles, yet Stop says %v", err)
		}
	})
}

func TestManualRejectAndFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		publish(t, b, "q", "reject", "fail", "fine")
		var runs atomic.Int32
		c := start(t, b.Queue("q", memory.QueueConfig{}), handle(func(d *longshore.Delivery) error {
			runs.Add(1)
			switch string(d.Body) {
			case "reject":
				return d.Reject(context.Background(), errBad)
			case "fail":
				return errBad
			}
			return d.Ack(context.Background())
		}), container.Config{Settle: container.SettleManual, DeadLetter: container.DeadLetter{To: "dead"}, Redelivery: container.Redelivery{MaxAttempts: 3}})
		wait(time.Minute)
		stop(t, c)
		if runs.Load() != 5 || b.Inspect("dead").Published != 2 {
			t.Errorf("%d runs, %d dead", runs.Load(), b.Inspect("dead").Published)
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 3")
	})
}

// Settling from many goroutines, also twice, also late.
func TestManualSettlingFromEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Config{})
		b.Delay(memory.OpSettle, time.Millisecond)
		var bodies []string
		for i := range 300 {
			bodies = append(bodies, fmt.Sprintf("k%d:%d", i%20, i))
		}
		publish(t, b, "q", bodies...)
		var acked, refused atomic.Int32
		var out atomic.Int32
		h := handle(func(d *longshore.Delivery) error {
			for range 3 {
				out.Add(1)
				go func() {
					defer out.Add(-1)
					wait(time.Duration(len(d.Body)) * time.Millisecond)
					switch err := d.Ack(context.Background()); {
					case err == nil:
						acked.Add(1)
					case errors.Is(err, longshore.ErrSettled):
						refused.Add(1)
					}
				}()
			}
			return nil
		})
		c := start(t, b.Queue("q", memory.QueueConfig{}), h, container.Config{Settle: container.SettleManual, Order: container.ByKey})
		wait(time.Minute)
		stop(t, c)
		if acked.Load() != 300 || refused.Load() != 600 || out.Load() != 0 {
			t.Errorf("%d accepted, %d refused", acked.Load(), refused.Load())
		}
		wantHeld(t, b, "q", "ready 0, unsettled 0, delayed 0, acked 300")
	})
}
