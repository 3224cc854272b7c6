package amqp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/transporttest"
)

const patience = 20 * time.Second

// site is a broker behind a fault proxy.
type site struct {
	direct, url string
	proxy       *faultproxy.Proxy
	embedded    *amqptest.Server // nil on a real broker
}

// onBrokers runs f on the embedded broker and, where there is one, on RabbitMQ.
func onBrokers(t *testing.T, f func(t *testing.T, s *site)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, embeddedSite(t, amqptest.Config{}))
	})
	t.Run("rabbitmq", func(t *testing.T) {
		t.Parallel()
		direct := brokertest.AMQP(t)
		p, through := proxied(t, direct)
		f(t, &site{direct: direct, url: through, proxy: p})
	})
}

func embeddedSite(t *testing.T, cfg amqptest.Config) *site {
	srv := amqptest.New(t, cfg)
	p, through := proxied(t, srv.URL)
	return &site{direct: srv.URL, url: through, proxy: p, embedded: srv}
}

// declare makes a queue around the proxy.
func (s *site) declare(t *testing.T, kind amqp.QueueType, args amqp091.Table) string {
	t.Helper()
	name := transporttest.Name(t)
	s.declareNamed(t, name, kind, args)
	return name
}

func (s *site) declareNamed(t *testing.T, name string, kind amqp.QueueType, args amqp091.Table) {
	t.Helper()
	all := amqp091.Table{"x-queue-type": string(kind)}
	for k, v := range args {
		all[k] = v
	}
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, all)
		return err
	})
}

// fullConsumer is somebody else's consumer that takes nothing.
func (s *site) fullConsumer(t *testing.T, queue string) {
	t.Helper()
	conn, err := amqp091.Dial(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Qos(1, 0, false); err != nil {
		t.Fatal(err)
	}
	s.publish(t, queue, "held")
	if _, err := ch.Consume(queue, "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}

// publish sends bodies 0…n-1 around the proxy, by hand.
func (s *site) publish(t *testing.T, queue string, bodies ...string) {
	t.Helper()
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		var last *amqp091.DeferredConfirmation
		for _, b := range bodies {
			dc, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp091.Publishing{Body: []byte(b), DeliveryMode: 2})
			if err != nil {
				return err
			}
			last = dc
		}
		if last != nil && !last.Wait() {
			return errors.New("not confirmed")
		}
		return nil
	})
}

// left returns the bodies of what a queue holds and takes them away.
func (s *site) left(t *testing.T, queue string) (bodies []string) {
	t.Helper()
	onChannel(t, s.direct, func(ch *amqp091.Channel) error {
		for {
			d, ok, err := ch.Get(queue, true)
			if err != nil || !ok {
				return err
			}
			bodies = append(bodies, string(d.Body))
		}
	})
	slices.Sort(bodies)
	return bodies
}

func (s *site) ready(t *testing.T, queue string) int { t.Helper(); return ready(t, s.direct, queue) }

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("m%04d", i)
	}
	return out
}

// ears is an observer that remembers.
type ears struct {
	mu     sync.Mutex
	lost   []*longshore.Delivery
	failed []error
	downs  []error
	events []transport.Event
}

func (e *ears) Lost(ds []*longshore.Delivery, _ error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost = append(e.lost, ds...)
}

func (e *ears) SettleFailed(_ *longshore.Delivery, _ longshore.Settlement, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = append(e.failed, err)
}

func (e *ears) Down(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.downs = append(e.downs, err)
}

func (e *ears) Event(ev transport.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, ev)
}

func (e *ears) down() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return errors.Join(e.downs...)
}

func (e *ears) counts() (lost, failed, downs int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.lost), len(e.failed), len(e.downs)
}

func (e *ears) heard(kind transport.EventKind) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.events, func(ev transport.Event) bool { return ev.Kind == kind })
}

// sub is an open consumer.
type sub struct {
	transport.Consumer
	*ears
	t *testing.T
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func open(t *testing.T, src transport.Source, o transport.OpenOptions) *sub {
	t.Helper()
	s, err := tryOpen(t, src, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func tryOpen(t *testing.T, src transport.Source, o transport.OpenOptions) (*sub, error) {
	t.Helper()
	ctx, cancel := within(patience)
	defer cancel()
	e := &ears{}
	o.Observer = e
	c, err := src.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &sub{Consumer: c, ears: e, t: t}
	t.Cleanup(s.close)
	return s, nil
}

// reopen opens as a container does: again until it works.
func reopen(t *testing.T, src transport.Source, o transport.OpenOptions) *sub {
	t.Helper()
	var s *sub
	eventually(t, "the source opens again", func() bool {
		var err error
		s, err = tryOpen(t, src, o)
		return err == nil
	})
	return s
}

func (s *sub) close() {
	ctx, cancel := within(patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		s.t.Errorf("Close: %v", err)
	}
}

// take receives exactly n.
func (s *sub) take(n int) []*longshore.Delivery {
	s.t.Helper()
	ctx, cancel := within(patience)
	defer cancel()
	var all []*longshore.Delivery
	for len(all) < n {
		ds, err := s.Receive(ctx, n-len(all))
		if err != nil {
			s.t.Fatalf("Receive after %d of %d: %v", len(all), n, err)
		}
		all = append(all, ds...)
	}
	return all
}

func (s *sub) ack(ds ...*longshore.Delivery) {
	s.t.Helper()
	for _, d := range ds {
		if err := d.Ack(context.Background()); err != nil {
			s.t.Errorf("Ack %s: %v", d.Body, err)
		}
	}
}

func (s *sub) must(what string, f func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := within(patience)
	defer cancel()
	if err := f(ctx); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// eventually polls.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	eventuallyWithin(t, patience, what, cond)
}

func eventuallyWithin(t *testing.T, patience time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not seen within %s: %s", patience, what)
		}
	}
}

// still holds for a while.
func still(t *testing.T, d time.Duration, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(d)
	defer end.Stop()
	for {
		if !cond() {
			t.Fatalf("did not last for %s: %s", d, what)
		}
		select {
		case <-tick.C:
		case <-end.C:
			return
		}
	}
}

func wants(t *testing.T, what string, err error, target error, texts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v; want %v", what, err, target)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q is missing in: %v", what, text, err)
		}
	}
}

func publisher(t *testing.T, b *amqp.Broker, cfg amqp.PublisherConfig) *amqp.Publisher {
	t.Helper()
	p, err := b.Publisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := within(patience)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Errorf("Publisher.Close: %v", err)
		}
	})
	return p
}

func publish(p transport.Publisher, dest string, ms ...*longshore.Message) error {
	ctx, cancel := within(patience)
	defer cancel()
	return p.Publish(ctx, dest, ms...)
}

// as is a type assertion that fails the test.
func as[T any](t testing.TB, v any) T {
	t.Helper()
	x, ok := v.(T)
	if !ok {
		t.Fatalf("%T is not what the test needs", v)
	}
	return x
}

func buffered(t *testing.T, c transport.Consumer) int {
	t.Helper()
	return as[transport.Bufferer](t, c).Buffered()
}
