package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
)

// consume starts a container on a source and the page of it.
func consume(t *testing.T, src transport.Source, handle longshore.HandlerFunc, edit func(*container.Config)) *service {
	t.Helper()
	cc := container.Config{Name: "orders", Logger: zap.NewNop(), DrainTimeout: time.Second, Reopen: container.Backoff{Initial: 5 * time.Minute, Max: 10 * time.Minute}}
	if edit != nil {
		edit(&cc)
	}
	c, err := container.New(src, handle, cc)
	must(t, err)
	must(t, c.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Stop(ctx) // where its broker has gone it cannot end well
	})
	s := &service{t: t, c: c}
	s.cfg = admin.Config{Addr: "127.0.0.1:0", Instance: "shop-1", Containers: []*container.ListenerContainer{c}, Operators: map[string]transport.Secret{"anna": transport.Static(token)}, Logger: zap.NewNop()}
	if outlet, ok := src.(transport.Outlet); ok {
		s.pub, s.dest, err = outlet.Publisher(t.Context())
		must(t, err)
		t.Cleanup(func() { _ = s.pub.Close(context.Background()) })
	}
	s.open()
	return s
}

// seen checks that the overview and the container's view show texts within ten seconds.
func (s *service) seen(overview, view []string) *tab {
	s.t.Helper()
	end := time.Now().Add(10 * time.Second)
	p := s.logIn("")
	for route, texts := range map[string][]string{"/": overview, "/c/orders": view} {
		js[any](p, "location.hash = '"+route+"'")
		for _, text := range texts {
			p.within(max(time.Until(end), time.Second), fmt.Sprintf("document.body.innerText.includes(%q)", text))
		}
	}
	js[any](p, "location.hash = '/c/orders'")
	return p
}

func rabbit(t *testing.T, cfg amqptest.Config) (*amqptest.Server, *amqp.Queue) {
	t.Helper()
	srv := amqptest.New(t, cfg)
	return srv, amqp.New(srv.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
}

// The broker's memory is full: it takes nothing more from those who publish, so that dead
// letters wait.
func TestIncidentAlarm(t *testing.T) {
	t.Parallel()
	srv, src := rabbit(t, amqptest.Config{})
	full := make(chan struct{})
	s := consume(t, src, func(context.Context, *longshore.Delivery) error {
		<-full
		return longshore.Reject(errors.New("bad order"))
	}, func(c *container.Config) { c.DeadLetter.To = "orders.dlq" })
	s.publish(3, nil)
	srv.Block("low on memory")
	t.Cleanup(srv.Unblock) // a publisher that is blocked could not be closed
	close(full)
	s.seen([]string{"Broker alarm", "since"}, []string{"Broker alarm"})
}

// The queue was deleted and made again with other arguments. Once that is cured, "Try now"
// spares the rest of the pause.
func TestIncidentQueueRemade(t *testing.T) {
	t.Parallel()
	srv, src := rabbit(t, amqptest.Config{})
	s := consume(t, src, done, nil)
	remake := func(args amqp091.Table) {
		conn, err := amqp091.Dial(srv.URL)
		must(t, err)
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		must(t, err)
		srv.DeleteQueue("/", "orders")
		_, err = ch.QueueDeclare("orders", true, false, false, false, args)
		must(t, err)
	}
	remake(amqp091.Table{"x-queue-type": "classic", "x-message-ttl": int32(1000)})
	must(t, s.recovers())
	// The first pause of minutes has begun; the error of the second attempt names the arguments.
	_ = s.c.Reconnect(longshore.Intervention{})
	p := s.seen([]string{"Broker lost", "next attempt in", "Try now", "x-message-ttl"}, []string{"recovering", "since", "next attempt in", "x-message-ttl"})
	remake(amqp091.Table{"x-queue-type": "classic"})
	p.click("Try now")
	p.until("document.querySelector('h1 + .badge').innerText.includes('running')")
	p.shows("resubscribing now, as requested by anna")
}

// recovers waits until the container does.
func (s *service) recovers() error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if s.c.State() == container.StateRecovering {
			return nil
		}
	}
	return errors.New("it does not recover")
}

// The password was changed: the page names it, with since and next attempt.
func TestIncidentRevoked(t *testing.T) {
	t.Parallel()
	srv, src := rabbit(t, amqptest.Config{})
	s := consume(t, src, done, func(c *container.Config) {
		c.Reopen = container.Backoff{Initial: 200 * time.Millisecond, Max: 20 * time.Second}
	})
	srv.SetPassword("guest", "another")
	srv.Cut(nil)
	s.seen([]string{"Broker lost", "auth", "next attempt in"}, []string{"auth", "Try now"})
}

// The consumer is on another virtual host than its producers, where Declare made the queue.
func TestIncidentWrongVhost(t *testing.T) {
	t.Parallel()
	srv := amqptest.New(t, amqptest.Config{VHosts: []string{"/", "shop-test"}})
	u, err := url.Parse(srv.URL)
	must(t, err)
	u.Path = "/shop-test"
	s := consume(t, amqp.New(u.String(), amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic,
		Bindings: []amqp.Binding{{Exchange: "shop", Key: "order.placed", Kind: amqp.Topic}}}}), done, nil)
	<-time.After(6 * time.Second)
	s.seen([]string{"Nothing ever came"}, []string{"never", "vhost shop-test", u.Host, `bound to exchange "shop" with key "order.placed"`})
}

// A downstream that has become slow: handlers take several times as long as usual.
func TestIncidentSlowDownstream(t *testing.T) {
	t.Parallel()
	var pace atomic.Int64
	pace.Store(int64(2 * time.Millisecond))
	s := serve(t, func(ctx context.Context, _ *longshore.Delivery) error {
		select {
		case <-time.After(time.Duration(pace.Load())):
		case <-ctx.Done():
		}
		return nil
	}, func(c *container.Config) { c.Workers = container.Workers{Min: 4, Max: 8} })
	for s.c.Stats().Handler.Usual == 0 {
		s.publish(50, nil)
		<-time.After(500 * time.Millisecond)
	}
	pace.Store(int64(400 * time.Millisecond))
	s.publish(3000, nil)
	for end := time.Now().Add(25 * time.Second); s.c.Stats().Handler.P50 < 300*time.Millisecond; <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the handlers are not slow")
		}
	}
	s.seen([]string{"Slow downstream"}, []string{"Slow downstream", "usual p50", "handler p50 · p99"})
}

// A record that is kept and tried again for ever holds its partition back: the page shows
// where each partition is, what holds one back, and the two ways out.
func TestIncidentPartitionBlocked(t *testing.T) {
	t.Parallel()
	f, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "billing"))
	must(t, err)
	t.Cleanup(f.Close)
	src := kafka.New(f.ListenAddrs(), kafka.Config{}).Group("billing", []string{"billing"}, kafka.GroupConfig{Window: 8, SettleLinger: 20 * time.Millisecond})
	s := consume(t, src, func(_ context.Context, d *longshore.Delivery) error {
		if string(d.Key) == "c-bad" {
			return errBank
		}
		return nil
	}, func(c *container.Config) {
		c.DeadLetter.Policy = container.DeadLetterKeep
		c.Redelivery = container.Redelivery{MaxAttempts: 2, Backoff: container.Backoff{Initial: 100 * time.Millisecond, Max: time.Minute}}
	})
	s.dest = kafka.To("billing", 1)
	s.publish(30, func(i int, m *longshore.Message) {
		m.Key = []byte("c-good")
		if i == 2 {
			m.Key = []byte("c-bad")
		}
	})
	<-time.After(5 * time.Second) // less is only slow
	p := s.seen([]string{"Partition stands still"}, []string{"billing/1", "offset 2, key c-bad", "committed to 2", "attempt", "next try in", "8 of 8 in the window", "billing/0", "Dead-letter…"})
	p.shows("Seek past…")
	p.shows("our share of what arrives is 100 %")
	js[any](p, "[...document.querySelectorAll('button')].find((b) => b.textContent === 'Seek past…' && b.getClientRects().length).scrollIntoView()")
	p.click("Seek past…")
	p.shows("Offset 2 is skipped for good")
	js[any](p, "document.querySelector('dialog[open] button[type=submit]').click()")
	p.shows("committed to 30")
}

// An old version of the service takes half of the messages, on a real RabbitMQ: the page
// lists it with host, product and version, and our share.
func TestIncidentStolenMessages(t *testing.T) {
	t.Parallel()
	addr := brokertest.AMQP(t)
	name := brokertest.Name(t, "orders")
	src := amqp.New(addr, amqp.Config{Management: withLogin(t, addr, brokertest.Management(t, addr))}).Queue(name, amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Classic}})
	s := consume(t, src, done, nil)
	conn, err := amqp091.DialConfig(addr, amqp091.Config{Properties: amqp091.Table{"product": "old shop", "version": "1.0"}})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	must(t, err)
	stolen, err := ch.Consume(name, "thief", true, false, false, false, nil)
	must(t, err)
	go func() {
		for range stolen { //nolint:revive // it throws them away
		}
	}()
	feeding, stop := context.WithCancel(t.Context())
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for i := 0; feeding.Err() == nil; i++ {
			m := &longshore.Message{Body: []byte("{}")}
			_ = s.pub.Publish(feeding, s.dest, m)
			<-time.After(10 * time.Millisecond)
		}
	}()
	defer func() { stop(); <-fed }()
	p := s.logIn("/c/orders")
	p.within(20*time.Second, "document.body.innerText.includes('old shop 1.0') && document.body.innerText.includes('○ another') && document.body.innerText.includes('● this instance')")
	p.within(40*time.Second, `/our share of what arrives is [3-7]\d %/.test(document.body.innerText)`)
}

// withLogin adds the login of a broker's URL to the address of its management API.
func withLogin(t *testing.T, broker, management string) string {
	t.Helper()
	b, err := url.Parse(broker)
	must(t, err)
	m, err := url.Parse(management)
	must(t, err)
	m.User = b.User
	return strings.TrimSuffix(m.String(), "/")
}
