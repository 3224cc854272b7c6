package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/bridge"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/memory"
)

func newRoute(t *testing.T, cfg bridge.Config) *bridge.Route {
	t.Helper()
	if cfg.Container.Logger == nil {
		cfg.Container.Logger = zap.NewNop()
	}
	r, err := bridge.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// F-M03: a finite route ends when the source is empty, retries that wait and late messages
// included, and its progress is known.
func TestARouteUntilEmptyEnds(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	put(t, from, number(50, "k")...)
	c, err := from.Open(t.Context(), transport.OpenOptions{Window: 1})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := c.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ds[0].Nack(t.Context(), 1500*time.Millisecond), c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	r := newRoute(t, bridge.Config{From: from, To: to, UntilEmpty: 400 * time.Millisecond})
	if left, err := r.Remaining(t.Context()); err != nil || left.Source.Messages() != 50 || left.Source.Delayed != 1 || left.Empty() {
		t.Errorf("%+v, %v", left, err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(look(t, to)); n != 50 {
		t.Errorf("%d arrived", n)
	}
	if left, err := r.Remaining(t.Context()); err != nil || !left.Empty() || left.Source.Consumers != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	if p := r.Progress(); p.Moved != 50 || p.Known != 50 || p.Lag != 0 || p.At.IsZero() {
		t.Errorf("%+v", p)
	}
}

// The rate bounds what is forwarded, and progress says so.
func TestRateLimitsForwarding(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	put(t, from, number(500, "k")...)
	r := run(t, bridge.Config{From: from, To: to, Rate: 40})
	began := time.Now()
	until(t, "the rate limits it", func() bool { return r.Progress().Limit == bridge.ByRate })
	until(t, "60 are moved", func() bool { return r.Stats().Forwarded >= 60 })
	if took := time.Since(began); took < time.Second/2 {
		t.Errorf("60 messages at 40/s took %s", took)
	}
	if _, err := bridge.New(bridge.Config{From: from, To: to, Rate: -1}); !errors.Is(err, longshore.CodeConfig) {
		t.Errorf("%v", err)
	}
}

// What stops a route is typed and says what differs; what it held is back at the source.
func TestWhatStopsARoute(t *testing.T) {
	for name, like := range map[string]struct {
		cfg    func(cfg *bridge.Config, stop *bool)
		reason bridge.Reason
		text   string
	}{
		"the guard": {func(cfg *bridge.Config, stop *bool) {
			cfg.UntilEmpty = 200 * time.Millisecond // looks every second
			cfg.Guard = func(context.Context) error {
				if *stop {
					return errors.New("a binding was added")
				}
				*stop = true
				return nil
			}
		}, bridge.Guarded, "a binding was added"},
		"a new target": {func(cfg *bridge.Config, _ *bool) {
			cfg.To = &remade{Source: cfg.To}
			cfg.UntilEmpty = 200 * time.Millisecond
		}, bridge.TargetRecreated, "it was 1 and is 2"},
		"no source": {func(cfg *bridge.Config, _ *bool) {
			cfg.From = &remade{Source: cfg.From, gone: true}
			cfg.UntilEmpty = 200 * time.Millisecond
		}, bridge.SourceGone, "does not exist"},
		"unsendable": {func(cfg *bridge.Config, _ *bool) {
			cfg.To, cfg.OnUnsendable = &refusing{Source: cfg.To, body: "7"}, bridge.StopRoute
		}, bridge.Unsendable, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
			cfg := bridge.Config{Name: "orders", From: src.Queue("orders", memory.QueueConfig{}), To: target.Queue("orders", memory.QueueConfig{})}
			target.Declare("orders")
			put(t, cfg.From, number(20, "k")...)
			like.cfg(&cfg, new(bool))
			r := newRoute(t, cfg)
			err := r.Run(t.Context())
			stopped, ok := errors.AsType[*bridge.StoppedError](err)
			if !ok || stopped.Reason != like.reason || stopped.Route != "orders" || !strings.Contains(err.Error(), like.text) || r.Err() == nil {
				t.Fatalf("%v", err)
			}
			if left, moved := src.Inspect("orders"), len(look(t, target.Queue("orders", memory.QueueConfig{}))); left.Ready+moved != 20 || left.Consumers+left.Unsettled != 0 {
				t.Errorf("%d moved, at the source %+v", moved, left)
			}
		})
	}
}

// remade is a place that is another one at its second look, or gone.
type remade struct {
	transport.Source
	looks int
	gone  bool
}

func (r *remade) Describe() transport.Description {
	return r.Source.(transport.Describer).Describe() //nolint:errcheck // it does
}

func (r *remade) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	return r.Source.(transport.Outlet).Publisher(ctx) //nolint:errcheck // it has one
}

func (r *remade) Remaining(ctx context.Context) (transport.Remaining, error) {
	return r.Source.(transport.Remainder).Remaining(ctx) //nolint:errcheck // it does
}

func (r *remade) Incarnation(context.Context) (string, error) {
	r.looks++
	if r.gone {
		return "", &longshore.Error{Code: longshore.CodeNotFound, Op: "look at it", Err: errors.New("it does not exist")}
	}
	return fmt.Sprint((r.looks + 1) / 2), nil
}

// A route that must be alone refuses to start beside another consumer.
func TestARouteThatMustBeAlone(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from := src.Queue("orders", memory.QueueConfig{})
	c, err := from.Open(t.Context(), transport.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRoute(t, bridge.Config{From: from, To: target.Queue("orders", memory.QueueConfig{}), Alone: true})
	err = r.Start(t.Context())
	if stopped, ok := errors.AsType[*bridge.StoppedError](err); !ok || stopped.Reason != bridge.OtherConsumers {
		t.Errorf("%v", err)
	}
	if err := errors.Join(c.Close(t.Context()), r.Start(t.Context()), r.Stop(t.Context())); err != nil {
		t.Errorf("alone: %v", err)
	}
}

// A route does not start without its target: it could move nothing.
func TestARouteWithoutItsTarget(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	to := &remade{Source: target.Queue("orders", memory.QueueConfig{}), gone: true}
	r := newRoute(t, bridge.Config{From: src.Queue("orders", memory.QueueConfig{}), To: to})
	err := r.Start(t.Context())
	if stopped, ok := errors.AsType[*bridge.StoppedError](err); !ok || stopped.Reason != bridge.TargetMissing || !stopped.Reason.Precondition() {
		t.Errorf("%v", err)
	}
	src.Declare("orders.parked")
	_, err = bridge.Unpark(t.Context(), bridge.Config{Name: "orders", From: src.Queue("orders.parked", memory.QueueConfig{}), To: to}, []byte("k"))
	if stopped, ok := errors.AsType[*bridge.StoppedError](err); !ok || stopped.Reason != bridge.TargetMissing {
		t.Errorf("unpark: %v", err)
	}
	to.gone = false
	if err := errors.Join(r.Start(t.Context()), r.Stop(t.Context())); err != nil {
		t.Errorf("with a target: %v", err)
	}
}

// A route that waits for its own lock, because an earlier subscription still has messages on
// their way to the target, does not stand by.
func TestARouteDoesNotStandByForItself(t *testing.T) {
	src := source(t, queueOn(t, amqptest.New(t).URL))
	publish(t, src, 2)
	target := memory.New(memory.Config{Name: "b"})
	to := &stuck{copies: &copies{Source: target.Queue("orders", memory.QueueConfig{})}, until: make(chan struct{})}
	var waits atomic.Int64
	r := newRoute(t, bridge.Config{From: src, To: to, OpenFor: 10 * time.Millisecond, Container: container.Config{Workers: container.Workers{Min: 2, Max: 2}, OnEvent: func(e container.Event) {
		if e.Kind == container.EventDown && errors.Is(e.Err, longshore.CodeExclusive) {
			waits.Add(1)
		}
	}}})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "it waits for its own lock", func() bool { return waits.Load() > 0 })
	if r.Progress().Standby {
		t.Error("it stands by for itself")
	}
	close(to.until)
	until(t, "it goes on", func() bool { return r.Stats().Forwarded == 2 })
	if err := r.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// stuck is a target that fails the first call and keeps the others until a channel is closed.
type stuck struct {
	*copies

	until chan struct{}
	calls atomic.Int64
}

func (s *stuck) Publisher(ctx context.Context) (transport.Publisher, string, error) {
	p, self, err := s.copies.Publisher(ctx)
	return &sticking{p, s}, self, err
}

type sticking struct {
	transport.Publisher

	s *stuck
}

func (p *sticking) Publish(ctx context.Context, dest string, msgs ...*longshore.Message) error {
	if p.s.calls.Add(1) == 1 {
		return &longshore.Error{Code: longshore.CodeConnLost}
	}
	<-p.s.until
	return p.Publisher.Publish(ctx, dest, msgs...)
}

// Rollback: messages go back with the identity and the headers they had, pass the loop guard,
// and can be forwarded again, those too that were published at the target.
func TestAReturnRouteTakesBackWhatWasForwarded(t *testing.T) {
	oldBroker, newBroker := memory.New(memory.Config{Name: "old"}), memory.New(memory.Config{Name: "new"})
	old, next := oldBroker.Queue("orders", memory.QueueConfig{}), newBroker.Queue("orders", memory.QueueConfig{})
	dir := t.TempDir()
	ledger := openLedger(t, dir)
	move := func(cfg bridge.Config) *bridge.Route {
		cfg.UntilEmpty, cfg.Ledger, cfg.Identity = 200*time.Millisecond, ledger, bridge.ByMessageID
		r := newRoute(t, cfg)
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return r
	}
	put(t, old, number(10, "k")...)
	move(bridge.Config{From: old, To: next})
	put(t, next, number(3, "native")...)
	if s := move(bridge.Config{Name: "return", From: next, To: old, Return: true}).Stats(); s.Forwarded != 13 || s.Looped+s.Parked+s.Renamed != 0 {
		t.Errorf("%+v", s)
	}
	var ids []string
	for _, d := range look(t, old) {
		ids = append(ids, d.ID)
		if h := d.Received().Headers; h.Has(longshore.HeaderVia) {
			t.Errorf("%s still has its way: %v", d.ID, h)
		}
	}
	slices.Sort(ids)
	if want := []string{"k-0", "k-1", "k-2", "k-3", "k-4", "k-5", "k-6", "k-7", "k-8", "k-9", "native-0", "native-1", "native-2"}; !slices.Equal(ids, want) {
		t.Errorf("%v", ids)
	}
	if v := verified(t, dir, nil); !v.OK() || v.Returned != 13 {
		t.Errorf("%v, %v", v, v.Missing)
	}
	if s := move(bridge.Config{From: old, To: next}).Stats(); s.Forwarded != 13 || s.Looped != 0 {
		t.Errorf("again: %+v", s)
	}
	if v := verified(t, dir, next); !v.OK() || v.Reread != 13 || v.Inversions != 0 || v.Copies != 0 {
		t.Errorf("%v, missing %v, extra %v", v, v.Missing, v.Extra)
	}
}

// A run does not end for a reason of the run before: many messages were refused at once.
func TestARouteStartsAfreshAfterItStopped(t *testing.T) {
	src, target := memory.New(memory.Config{Name: "a"}), memory.New(memory.Config{Name: "b"})
	from, to := src.Queue("orders", memory.QueueConfig{}), target.Queue("orders", memory.QueueConfig{})
	target.Declare("orders")
	msgs := number(50, "k")
	for i, m := range msgs {
		m.Key, m.Body = []byte(fmt.Sprint(i)), []byte("bad")
	}
	put(t, from, msgs...)
	picky := &refusing{Source: to, body: "bad"}
	r := newRoute(t, bridge.Config{Name: "orders", From: from, To: picky, OnUnsendable: bridge.StopRoute, UntilEmpty: 200 * time.Millisecond,
		Container: container.Config{Workers: container.Workers{Min: 32, Max: 32}}})
	if why, ok := errors.AsType[*bridge.StoppedError](r.Run(t.Context())); !ok || why.Reason != bridge.Unsendable {
		t.Fatalf("it stopped for %v", why)
	}
	picky.body = ""
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(look(t, to)); n != 50 {
		t.Errorf("%d arrived", n)
	}
}

// A route whose target is deleted stops at once: a drain would wait in vain for its confirmations.
func TestStopWithoutItsTarget(t *testing.T) {
	t.Parallel()
	src := memory.New(memory.Config{Name: "source"})
	from, b := src.Queue("orders", memory.QueueConfig{}), topicOn(t, brokertest.Kafka(t))
	publish(t, from, 200)
	r := newRoute(t, bridge.Config{From: from, To: source(t, b), Ledger: openLedger(t, t.TempDir()), Rate: 50})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "it moves", func() bool { return r.Stats().Forwarded > 20 })
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokertest.Kafka(t)...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	topic := path.Base(strings.Split(b, "?")[0])
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	until(t, "messages wait for confirmations", func() bool {
		moved := r.Stats().Forwarded
		<-time.After(300 * time.Millisecond) // at 50/s
		return r.Stats().Forwarded == moved
	})
	began := time.Now()
	stop(t, r)
	if took := time.Since(began); took > r.StopBudget()/2 {
		t.Errorf("it took %s of %s", took, r.StopBudget())
	}
	if left := src.Inspect("orders"); left.Ready+int(r.Stats().Forwarded) < 200 || left.Unsettled > 0 {
		t.Errorf("%+v", left)
	}
}
