package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

func TestAckedIsGoneAndNackedComesBackInItsPlace(t *testing.T) {
	b := New(Config{})
	c := open(t, b.Queue("q", QueueConfig{}), transport.OpenOptions{})
	publish(t, b, "q", "a", "b", "c")
	ds := receive(t, c, 3)
	for _, d := range ds[1:] {
		if err := d.Nack(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := ds[0].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "second ack", ds[0].Ack(t.Context()), longshore.ErrSettled)
	again := receive(t, c, 2)
	want(t, "redelivered", bodies(again), "b c")
	want(t, "attempt", again[0].Attempt, 2)
	want(t, "flag", again[0].Origin.Redelivered, true)
	want(t, "queue", state(b, "q"), "ready 0 unsettled 2 delayed 0")
}

func TestDelayedNackHoldsTheMessageForItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		c := open(t, b.Queue("q", QueueConfig{MaxDelay: time.Hour}), transport.OpenOptions{})
		publish(t, b, "q", "slow", "fast")
		ds := receive(t, c, 2)
		start := time.Now()
		wantErr(t, "beyond the longest", ds[0].Nack(t.Context(), 2*time.Hour), longshore.CodeUnsupported)
		_ = ds[0].Nack(t.Context(), 30*time.Second)
		_ = ds[1].Nack(t.Context(), time.Second)
		want(t, "queue", state(b, "q"), "ready 0 unsettled 0 delayed 2")
		want(t, "first", bodies(receive(t, c, 1)), "fast")
		want(t, "after", time.Since(start), time.Second)
		want(t, "second", bodies(receive(t, c, 1)), "slow")
		want(t, "after", time.Since(start), 30*time.Second)
	})
}

// What several consumers hold is taken back at one moment: a consumer must not be given its
// own messages again while another one still holds older ones.
func TestTakeBackOfSeveralConsumersKeepsTheOrder(t *testing.T) {
	for range 20 { // the broker goes over its consumers in no fixed order
		b := New(Config{})
		older := open(t, b.Queue("q", QueueConfig{}), transport.OpenOptions{Window: 3})
		publish(t, b, "q", "a", "b", "c", "d", "e")
		receive(t, older, 3)
		if err := older.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		newer := open(t, b.Queue("q", QueueConfig{}), transport.OpenOptions{Window: 5})
		receive(t, newer, 2)
		b.TakeBack("q")
		want(t, "redelivered", bodies(receive(t, newer, 5)), "a b c d e")
	}
}

func TestRejectMovesToTheDeadLetterQueue(t *testing.T) {
	b := New(Config{})
	c := open(t, b.Queue("q", QueueConfig{DeadLetter: "q.dlq"}), transport.OpenOptions{})
	publish(t, b, "q", "a")
	if err := receive(t, c, 1)[0].Reject(t.Context(), errors.New("bad")); err != nil {
		t.Fatal(err)
	}
	want(t, "dead", state(b, "q.dlq"), "ready 1 unsettled 0 delayed 0")

	plain := open(t, b.Queue("plain", QueueConfig{}), transport.OpenOptions{})
	publish(t, b, "plain", "a")
	d := receive(t, plain, 1)[0]
	wantErr(t, "reject without a place", d.Reject(t.Context(), nil), longshore.CodeUnsupported)
	want(t, "still owned", d.Owned(), true)
}

func TestDeliveryLimitCountsFailuresOnly(t *testing.T) {
	b := New(Config{})
	c := open(t, b.Queue("q", QueueConfig{DeadLetter: "dlq", DeliveryLimit: 3}), transport.OpenOptions{})
	publish(t, b, "q", "a")
	for range 10 {
		d := receive(t, c, 1)[0]
		_ = d.Apply(t.Context(), longshore.Settlement{Verb: longshore.VerbNack, Attempt: d.Attempt})
	}
	for i := range 3 {
		d := receive(t, c, 1)[0]
		want(t, "attempt", d.Attempt, i+1)
		_ = d.Nack(t.Context(), 0)
	}
	want(t, "dead", b.Inspect("dlq").Ready, 1)
	want(t, "counted", b.Inspect("q").DeadLettered, 1)
}

func TestReturnsCountWhereTheQueueSaysSo(t *testing.T) {
	b := New(Config{})
	src := b.Queue("q", QueueConfig{DeliveryLimit: 2, CountsReturns: true})
	publish(t, b, "q", "a")
	for range 2 {
		c := open(t, src, transport.OpenOptions{})
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "dropped", b.Inspect("q").Dropped, 1)
}

func TestLostDeliverySettlesNothing(t *testing.T) {
	b := New(Config{})
	src := b.Queue("q", QueueConfig{})
	obs := &observer{}
	c := open(t, src, transport.OpenOptions{Observer: obs})
	publish(t, b, "q", "a", "b")
	old := receive(t, c, 1)[0]
	ctx := old.Context()
	b.Drop()
	<-ctx.Done()
	wantErr(t, "cause", context.Cause(ctx), longshore.ErrLost)
	wantErr(t, "receive", func() error { _, err := c.Receive(t.Context(), 1); return err }(), longshore.CodeConnLost)

	next := open(t, src, transport.OpenOptions{})
	ds := receive(t, next, 2)
	want(t, "all came back in order", bodies(ds), "a b")
	want(t, "same token", ds[0].Token(), old.Token())
	wantErr(t, "late ack", old.Ack(t.Context()), longshore.ErrLost)
	want(t, "nothing settled", state(b, "q"), "ready 0 unsettled 2 delayed 0")
	want(t, "redelivered", ds[0].Origin.Redelivered, true)
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, _, down := obs.counts()
	want(t, "told lost", lost, 1)
	want(t, "told down", down, 1)
}

func TestCancelKeepsAndReleaseGivesBack(t *testing.T) {
	b := New(Config{})
	src := b.Queue("q", QueueConfig{Prefetch: 4})
	c := open(t, src, transport.OpenOptions{})
	publish(t, b, "q", "a", "b", "c", "d", "e", "f")
	d := receive(t, c, 1)[0]
	if buf, ok := c.(transport.Bufferer); !ok || buf.Buffered() != 3 {
		t.Errorf("must have 3 buffered")
	}
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "from the buffer", bodies(receive(t, c, 1)), "b")
	if err := c.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Receive(t.Context(), 1)
	wantErr(t, "receive after release", err, longshore.ErrCanceled)
	want(t, "queue", state(b, "q"), "ready 4 unsettled 2 delayed 0")
	if err := d.Ack(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, "settled after cancel", state(b, "q"), "ready 4 unsettled 1 delayed 0")
}

func TestBatchedSettlementsAreFlushedOrReported(t *testing.T) {
	b := New(Config{})
	src := b.Queue("q", QueueConfig{SettleLinger: time.Hour})
	obs := &observer{}
	c := open(t, src, transport.OpenOptions{Observer: obs})
	publish(t, b, "q", "a", "b", "c")
	ds := receive(t, c, 3)
	_ = ds[0].Ack(t.Context())
	want(t, "accepted only", state(b, "q"), "ready 0 unsettled 3 delayed 0")
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "carried out", state(b, "q"), "ready 0 unsettled 2 delayed 0")
	_ = ds[1].Ack(t.Context())
	b.Drop("q")
	wantErr(t, "flush", c.Flush(t.Context()), longshore.CodeSettle)
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, failed, _ := obs.counts()
	want(t, "failed", failed, 1)
	want(t, "lost", lost, 1)
	want(t, "both back", state(b, "q"), "ready 2 unsettled 0 delayed 0")
}

func TestSettlementThatFailsIsReported(t *testing.T) {
	b := New(Config{})
	obs := &observer{}
	c := open(t, b.Queue("q", QueueConfig{}), transport.OpenOptions{Observer: obs})
	publish(t, b, "q", "a")
	b.FailSettle(1, errors.New("disk full"))
	if err := receive(t, c, 1)[0].Ack(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "flush", c.Flush(t.Context()), longshore.CodeSettle)
	d := receive(t, c, 1)[0]
	_ = d.Ack(t.Context())
	if err := c.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, failed, _ := obs.counts()
	want(t, "failed", failed, 1)
}

func TestLeaseEndsUnlessExtendedOrKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		obs := &observer{}
		c := open(t, b.Queue("q", QueueConfig{Lease: 10 * time.Second}), transport.OpenOptions{Observer: obs})
		kept := open(t, b.Queue("kept", QueueConfig{Lease: 10 * time.Second, KeepLease: true}), transport.OpenOptions{})
		publish(t, b, "q", "a")
		publish(t, b, "kept", "a")
		d, k := receive(t, c, 1)[0], receive(t, kept, 1)[0]
		<-time.After(8 * time.Second)
		if err := d.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		<-time.After(9 * time.Second)
		synctest.Wait()
		want(t, "extended", d.Owned(), true)
		<-time.After(2 * time.Second)
		synctest.Wait()
		want(t, "after its end", d.Owned(), false)
		want(t, "kept", k.Owned(), true)
		wantErr(t, "ack", d.Ack(t.Context()), longshore.ErrLost)
		lost, _, down := obs.counts()
		want(t, "told", lost, 1)
		want(t, "consumer lives", down, 0)
		want(t, "redelivered", receive(t, c, 1)[0].Origin.Redelivered, true)
	})
}

// A lease that ends takes the later messages of its key along, whether they were handed out
// or not: they must come again behind it. Other keys stay.
func TestLeaseThatEndsKeepsTheOrderOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		obs := &observer{}
		c := open(t, b.Queue("q", QueueConfig{Lease: 10 * time.Second}), transport.OpenOptions{Observer: obs})
		publish(t, b, "q", "a1", "b1", "a2")
		ds := receive(t, c, 3)
		<-time.After(5 * time.Second)
		publish(t, b, "q", "a3", "b2") // buffered, with leases that end later
		for _, d := range ds[1:] {
			if err := d.Extend(t.Context(), 10*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(6 * time.Second)
		synctest.Wait()
		want(t, "the head", ds[0].Owned(), false)
		want(t, "another key", ds[1].Owned(), true)
		want(t, "behind the head", ds[2].Owned(), false)
		lost, _, _ := obs.counts()
		want(t, "reported", lost, 2)
		want(t, "in order again", bodies(receive(t, c, 4)), "b2 a1 a2 a3")
	})
}

func TestFIFOHoldsBackTheGroupOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		publish(t, b, "q", "a1", "a2", "b1", "a3", "b2") // before it is declared
		c := open(t, b.Queue("q", QueueConfig{FIFO: true}), transport.OpenOptions{})
		ds := receive(t, c, 2)
		want(t, "heads", bodies(ds), "a1 b1")
		_ = ds[0].Nack(t.Context(), time.Second)
		_ = ds[1].Ack(t.Context())
		got := bodies(receive(t, c, 1))
		for range 3 {
			d := receive(t, c, 1)[0]
			got += " " + string(d.Body)
			_ = d.Ack(t.Context())
		}
		want(t, "order", got, "b2 a1 a2 a3")
	})
}

func TestSingleActiveHandsOver(t *testing.T) {
	b := New(Config{})
	src := b.Queue("q", QueueConfig{SingleActive: true})
	first := open(t, src, transport.OpenOptions{})
	obs := &observer{}
	second := open(t, src, transport.OpenOptions{Observer: obs})
	publish(t, b, "q", "a", "b")
	want(t, "active", bodies(receive(t, first, 2)), "a b")
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "taken over", bodies(receive(t, second, 2)), "a b")
	if err := second.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "events", len(obs.events), 2)
	want(t, "standby", obs.events[0], transport.EventStandby)
	want(t, "then active", obs.events[1], transport.EventActive)
}

func TestBroadcastReachesAllAndLateJoinersGetTheLast(t *testing.T) {
	b := New(Config{})
	src := b.Broadcast("control", BroadcastConfig{Retain: true})
	one := open(t, src, transport.OpenOptions{})
	two := open(t, src, transport.OpenOptions{})
	publish(t, b, "control", "a1", "a2", "b1")
	want(t, "one", bodies(receive(t, one, 3)), "a1 a2 b1")
	want(t, "two", bodies(receive(t, two, 3)), "a1 a2 b1")
	late := open(t, src, transport.OpenOptions{})
	want(t, "late", bodies(receive(t, late, 2)), "a2 b1")
}

func TestPullHoldsNothingInAdvance(t *testing.T) {
	b := New(Config{})
	c := open(t, b.Queue("q", QueueConfig{Pull: true}), transport.OpenOptions{})
	publish(t, b, "q", "a", "b", "c")
	want(t, "before", state(b, "q"), "ready 3 unsettled 0 delayed 0")
	receive(t, c, 2)
	want(t, "after", state(b, "q"), "ready 1 unsettled 2 delayed 0")
	receive(t, c, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Receive(ctx, 1)
	wantErr(t, "canceled receive", err, context.Canceled)
	publish(t, b, "q", "d")
	want(t, "nobody waits", state(b, "q"), "ready 1 unsettled 3 delayed 0")
}

func TestEveryCallCanBeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Config{})
		b.DelayAll(time.Second)
		b.Delay(OpSettle, 3*time.Second)
		start := time.Now()
		lap := func(what string, want time.Duration) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("%s took %v, want %v", what, got, want)
			}
			start = time.Now()
		}
		c, err := b.Queue("q", QueueConfig{}).Open(t.Context(), transport.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lap("open", time.Second)
		publish(t, b, "q", "a", "b")
		lap("publish", 2*time.Second)
		ds := receive(t, c, 1)
		lap("receive", time.Second)
		_ = ds[0].Ack(t.Context())
		lap("ack", 0)
		want(t, "on its way", state(b, "q"), "ready 0 unsettled 2 delayed 0")
		_ = c.Flush(t.Context())
		lap("flush and settle", 4*time.Second)
		want(t, "there", state(b, "q"), "ready 0 unsettled 1 delayed 0")
		_ = c.Cancel(t.Context())
		lap("cancel", time.Second)
		_ = c.Release(t.Context())
		lap("release", time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		wantErr(t, "close", c.Close(short), context.DeadlineExceeded)
		lap("close", time.Millisecond)
		want(t, "closed all the same", b.Connections(), 0)
	})
}
