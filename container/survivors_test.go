package container

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// An item that is used again knows nothing of its last message.
func TestUsedItemsAreNew(t *testing.T) {
	var free freeItems
	it := &item{d: &longshore.Delivery{}, gen: &generation{}, id: "1", key: []byte("k"), headers: longshore.Headers{{Name: "a"}},
		fail: errGoexit, dead: &deadLetter{}, releases: 3, solo: true, permit: true, returned: true, leaving: true, started: time.Unix(1, 0)}
	it.notes.Store(closedNotes)
	free.put(it)
	got, fresh := reflect.ValueOf(free.get()).Elem(), reflect.ValueOf(&item{}).Elem()
	for i := range got.NumField() {
		if name := got.Type().Field(i).Name; !got.Field(i).IsZero() && !fresh.Field(i).Equal(got.Field(i)) {
			t.Errorf("%s is left", name)
		}
	}
}

// A level is reported when it is reached, and again only after the use has fallen to half.
func TestAsideLevelsAreReportedOnce(t *testing.T) {
	var a asideWatch
	for _, tc := range []struct {
		share float64
		want  int
	}{{0.09, 0}, {0.10, 10}, {0.49, 0}, {0.5, 50}, {0.3, 0}, {0.5, 0}, {0.24, 0}, {0.5, 50}, {1, 100}, {1, 0}, {0, 0}, {1, 100}} {
		if got := a.rise(tc.share); got != tc.want {
			t.Errorf("%v: reports %d, want %d", tc.share, got, tc.want)
		}
	}
}

// The usual latency follows faster calls within minutes and slower ones hardly.
func TestUsualLatencyFollowsDown(t *testing.T) {
	now := time.Unix(1000, 0)
	var l latencies
	window := func(took time.Duration) time.Duration {
		l.rotate(now)
		for range fewCalls {
			l.add(math.Log(took.Seconds()))
		}
		now = now.Add(latencyEvery)
		l.rotate(now)
		return l.calls().Usual
	}
	first := window(time.Second)
	if got, want := window(100*time.Millisecond), first-(first-100*time.Millisecond)/4; (got - want).Abs() > first/20 {
		t.Errorf("from %v to %v, about %v is wanted", first, got, want)
	}
	before := l.calls().Usual
	if after := window(10 * time.Second); after < before || after > before*11/10 {
		t.Errorf("slower calls move it from %v to %v", before, after)
	}
}

// A start that ends in time-out is both: the last attempt's error and the context's.
func TestStartOverKeepsItsCauses(t *testing.T) {
	last, ctx, cause := errors.New("refused"), errors.New("over"), errors.New("shutting down")
	err := error(&startOver{text: "refused", last: last, ctx: ctx, cause: cause})
	for _, want := range []error{last, ctx, cause} {
		if !errors.Is(err, want) {
			t.Errorf("it is not %v", want)
		}
	}
}

// What leaves goes back, of the consumer that reports it and of those partitions only.
func TestOnlyTheLeavingPartitionsOfAConsumerGoBack(t *testing.T) {
	d := restingDispatcher(1)
	c := receiverOf(d)
	other := &generation{id: 2}
	for _, of := range []*generation{d.sub.gen, other} {
		for p := range int32(2) {
			one := longshore.NewDelivery(t.Context(), settles{}, 1)
			one.Origin.Partition = p
			c.accept(of, []*longshore.Delivery{one}, nil)
		}
	}
	out := c.takeLeaving(d.sub.gen, func(at longshore.Origin) bool { return at.Partition == 1 })
	if len(out) != 1 || out[0].Of.gen != d.sub.gen || out[0].Of.d.Origin.Partition != 1 {
		t.Errorf("%d go back", len(out))
	}
	d.sub.gen.interrupt()
}

// A window that is at least half full counts, if anything could start at all.
func TestHalfAWindowThatWaitsIsFull(t *testing.T) {
	for _, tc := range []struct{ startable, spare, full int }{{0, 0, 0}, {1, 3, 0}, {1, 2, 1}, {2, 3, 1}} {
		var l workload
		if l.queued(tc.startable, tc.spare); l.full != tc.full || l.looks != 1 {
			t.Errorf("%d of %d: full %d, looks %d", tc.startable, tc.spare, l.full, l.looks)
		}
	}
}

// What the broker holds for a while is remembered in bounded space, and what has come back is
// dropped long before that.
func TestDelayedForgetsWhatCameBack(t *testing.T) {
	var d delayed
	now := time.Unix(1000, 0)
	for range 20_000 {
		d.add(now.Add(time.Second), now)
		now = now.Add(time.Millisecond)
	}
	if len(d.due) > 4096 {
		t.Errorf("%d are remembered, of which 1000 can be there", len(d.due))
	}
	if n := d.count(now); n < 999 || n > 1000 {
		t.Errorf("%d are counted", n)
	}
	for range 4 * awayMost {
		d.add(now.Add(time.Hour), now)
	}
	if len(d.due) > 2*awayMost {
		t.Errorf("%d are remembered", len(d.due))
	}
}

// What the broker did not take after all does not wait there.
func TestAFailedReturnIsNotDelayed(t *testing.T) {
	var d delayed
	now := time.Unix(1000, 0)
	d.failed(time.Second) // of one that is not remembered
	d.add(now.Add(time.Second), now)
	d.add(now.Add(time.Second), now)
	d.failed(0) // of another verb
	if d.failed(time.Second); d.count(now) != 1 {
		t.Errorf("%d are counted", d.count(now))
	}
}

// The container is not idle before the last of what the broker holds for a while is back,
// in whichever order it was given back.
func TestTheLastDelayedReturnCounts(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, order := range [][]time.Duration{{time.Second, time.Minute}, {time.Minute, time.Second}} {
		var d delayed
		for _, after := range order {
			d.add(now.Add(after), now)
		}
		if want := now.Add(time.Minute); !d.until.Equal(want) {
			t.Errorf("%v: until %v, want %v", order, d.until, want)
		}
	}
}

// brings is a consumer whose next Receive brings a delivery.
type brings struct {
	transport.Consumer
	d *longshore.Delivery
}

func (b brings) Receive(context.Context, int) ([]*longshore.Delivery, error) {
	return []*longshore.Delivery{b.d}, nil
}

// A lease runs from the time at which the transport received a delivery, which may have been
// long before the container asked for it: a hold gives its place up by that time.
func TestALeaseRunsFromTheReceiveOfTheTransport(t *testing.T) {
	d := restingDispatcher(1)
	g := d.sub.gen
	one := longshore.NewDelivery(t.Context(), settles{}, 1)
	one.Origin.ReceivedAt = d.s.clock.Now().Add(-time.Minute)
	g.c = brings{d: one}
	d.locked(func() { receiverOf(d).receive(workerReceives) })
	if !g.fresh.Equal(one.Origin.ReceivedAt) {
		t.Errorf("it runs from %v, and not from %v", g.fresh, one.Origin.ReceivedAt)
	}
	g.interrupt()
}

// With manual settling, a delivery whose ack the broker refuses stays open, and the handler
// can settle it later.
func TestARefusedAckLeavesADeliveryOpen(t *testing.T) {
	d := restingDispatcher(1)
	d.s.manual = true
	d.held.manual = map[*longshore.Delivery]*item{}
	refuses := true
	one := longshore.NewDelivery(t.Context(), settles{func() error {
		if refuses {
			return errGoexit
		}
		return nil
	}}, 1)
	d.held.manual[one] = &item{d: one}
	c := &caller{common: d.common, pool: &d.hand.pool, held: &d.held, settler: &settler{s: d.s, clock: d.runClock}}
	err := c.Settle(t.Context(), one, longshore.Settlement{Verb: longshore.VerbAck})
	if !errors.Is(err, errGoexit) || d.held.manual[one] == nil {
		t.Errorf("after %v it is held as %v", err, d.held.manual[one])
	}
	d.sub.gen.interrupt()
}

// A log line has the facts that there are, and no empty ones.
func TestFieldsThatAreThere(t *testing.T) {
	names := func(fs []zap.Field) (names []string) {
		for _, f := range fs {
			names = append(names, f.Key)
		}
		return names
	}
	for _, ids := range [][]string{nil, {"a"}} {
		got := names((&Report{AbandonedIDs: ids, UnflushedIDs: ids}).fields())
		for _, name := range []string{"abandoned_ids", "unflushed_ids"} {
			if slices.Contains(got, name) != (ids != nil) {
				t.Errorf("of %q: %q", ids, got)
			}
		}
	}
	for kind, want := range map[EventKind]bool{EventLost: true, EventDeadLettered: false} { // which has "attempts"
		got := names(fields(Event{Kind: kind, Delivery: &DeliveryFacts{Attempt: 2}}))
		if slices.Contains(got, "attempt") != want {
			t.Errorf("%s: %q", kind, got)
		}
	}
}
