package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/autoscale"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
)

// leg is one broker's part of a demo: a producer, a container and a ledger.
type leg struct {
	rig      *rig
	ledger   *ledger
	gate     *throttle.Limiter
	pace     *atomic.Int64 // how many times as long an order takes
	box      *container.ListenerContainer
	outlet   *outlet
	producer *producer
	backlog  func() int // orders that wait here
	tell     func(kind, text string)

	events  sync.WaitGroup
	unwatch func()

	mu      sync.Mutex
	nextTry time.Time // of a container that recovers
	cutAt   time.Time
	lostAt  int // losses before the cut
	sureAt  int // settlements without confirmation before the cut
	shown   int // workers in the last event that was shown
	buried  int
}

// newLeg makes a leg with its own ledger, or one that shares that of another leg.
func newLeg(r *rig, cfg Config, account *ledger, tell func(kind, text string)) (*leg, error) {
	l := &leg{rig: r, ledger: account, gate: throttle.NewUnlimited(), pace: &atomic.Int64{}, tell: tell, shown: 1}
	l.pace.Store(1)
	l.backlog = account.waiting
	log := cfg.Log.With(zap.String("demo", r.name))
	var err error
	l.box, err = container.New(r.source, handler(l.ledger, l.pace), container.Config{
		Name:       r.name,
		Workers:    container.Workers{Min: cfg.workersMin(), Max: workersMax},
		Lookahead:  r.lookahead,
		Order:      container.ByKey,
		Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: 200 * time.Millisecond, Max: 2 * time.Second}},
		DeadLetter: container.DeadLetter{To: r.deadTo},
		Throttle:   l.gate,
		Middleware: []longshore.Middleware{witness{l.ledger}},
		// Long waits would not be seen in a run of seconds.
		Reopen:        container.Backoff{Initial: 200 * time.Millisecond, Max: time.Second},
		WaitForBroker: true,
		Logger:        log,
	})
	return l, err
}

// start subscribes and makes a producer.
func (l *leg) start(ctx context.Context, seed uint64) error {
	if err := l.subscribe(ctx); err != nil {
		return err
	}
	l.producer = newProducer(l.ledger, l.outlet, seed)
	return nil
}

// subscribe starts the container, makes the publisher and begins to listen to events.
func (l *leg) subscribe(ctx context.Context) error {
	events, unwatch := l.box.Events(4096)
	l.unwatch = unwatch
	l.events.Go(func() {
		for e := range events {
			l.hear(e)
		}
	})
	err := l.box.Start(ctx)
	if err == nil {
		l.outlet, err = outletAt(ctx, l.rig.source)
	}
	return err
}

// outletAt is a publisher on the source's own broker, with the way back to it.
func outletAt(ctx context.Context, src transport.Source) (*outlet, error) {
	at, ok := src.(transport.Outlet)
	if !ok {
		return nil, &longshore.Error{Code: longshore.CodeUnsupported, Op: "make a publisher", Err: errors.New("the source has none")}
	}
	pub, dest, err := at.Publisher(ctx)
	if err != nil {
		return nil, err
	}
	return &outlet{pub: pub, dest: dest}, nil
}

// hear follows the container's events.
func (l *leg) hear(e container.Event) {
	l.ledger.drop(e.Dropped)
	switch e.Kind {
	case container.EventSettleFailed:
		if e.Delivery != nil && e.Reason != longshore.VerbNack.String() {
			l.ledger.unsettled(numberOf(e.Delivery.MessageID))
		}
	case container.EventScaled:
		l.scaled(e)
	case container.EventDown:
		l.mu.Lock()
		l.nextTry = e.Time.Add(e.Delay)
		l.mu.Unlock()
	case container.EventSubscribed:
		l.subscribed(e)
	case container.EventDeadLettered:
		l.mu.Lock()
		l.buried++
		n := l.buried
		l.mu.Unlock()
		if n == poisonSize {
			l.tell("dead", fmt.Sprintf("%s: %d orders that cannot be decoded are in %s; the other orders continue", l.rig.name, n, e.Reason))
		}
	case container.EventStuck, container.EventParkingFull, container.EventDeadLetterFailed, container.EventSkipped:
		l.tell(string(e.Kind), l.rig.name+": "+e.Text)
	}
}

// scaled shows a decision when the workers have at least doubled or halved since
// the last one that was shown.
func (l *leg) scaled(e container.Event) {
	l.mu.Lock()
	from := l.shown
	big := e.To >= 2*from || e.To <= from/2
	if big {
		l.shown = e.To
	}
	l.mu.Unlock()
	if big {
		l.tell("scale", fmt.Sprintf("%s %d → %d workers: %s, %s waiting", l.rig.name, from, e.To, l.because(e), thousands(l.ledger.waiting())))
	}
}

// because is the reason of a scaling; where the throttle leaves room for fewer workers, the
// throttle.
func (l *leg) because(e container.Event) string {
	if n, _ := l.gate.Limits(); e.Reason == autoscale.FewerMay && n >= 0 && n < e.From {
		return fmt.Sprintf("throttled to %s", count(n, "permit", "permits"))
	}
	return e.Reason
}

func (l *leg) subscribed(e container.Event) {
	l.mu.Lock()
	cut := l.cutAt
	l.cutAt, l.nextTry = time.Time{}, time.Time{}
	lost, unsure := l.ledger.losses()
	lost, unsure = lost-l.lostAt, unsure-l.sureAt
	l.mu.Unlock()
	if !cut.IsZero() && e.Generation > 1 {
		l.tell("recover", fmt.Sprintf("%s resubscribed after %.1f s; %s lost while being handled, %s not confirmed; unsettled messages will be redelivered",
			l.rig.name, e.Time.Sub(cut).Seconds(), count(lost, "delivery", "deliveries"), count(unsure, "ack", "acks")))
	}
}

// cut breaks the connections and returns how many, and how many handlers ran.
func (l *leg) cut() (conns, running int) {
	running = l.box.Stats().Busy
	l.mu.Lock()
	l.cutAt = time.Now()
	l.lostAt, l.sureAt = l.ledger.losses()
	l.mu.Unlock()
	return l.rig.cut(), running
}

// idle reports whether all that was published is done.
func (l *leg) idle() bool {
	if l.ledger.waiting() > 0 {
		return false
	}
	st := l.box.Stats()
	return st.InFlight == 0 && st.Parked == 0
}

// recovering is how long until the next try to subscribe; ok is false while
// subscribed.
func (l *leg) recovering(now time.Time) (in time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.nextTry.Sub(now), 0), !l.nextTry.IsZero()
}

// close ends what start began, after the container was stopped.
func (l *leg) close(ctx context.Context) error {
	l.unwatch()
	l.events.Wait()
	if l.outlet == nil {
		return nil
	}
	return l.outlet.pub.Close(ctx)
}
