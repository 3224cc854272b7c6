package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/breaker"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/telemetry"
	"github.com/longshore-go/longshore/telemetry/prom"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
)

// site is what the processes share: the brokers and what stands behind the handlers.
type site struct {
	rabbit *amqptest.Server
	kafka  []string
	memory *memory.Broker
	orders downstream
}

// downstream is what the handlers of orders call.
type downstream struct {
	mu    sync.Mutex
	down  bool
	takes time.Duration // of each call
}

func (d *downstream) set(down bool, takes time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down, d.takes = down, takes
}

func (d *downstream) call(ctx context.Context) error {
	d.mu.Lock()
	down, takes := d.down, d.takes
	d.mu.Unlock()
	wait(ctx, takes)
	if down {
		return breaker.Unavailable(errors.New("the downstream is away"))
	}
	return nil
}

// wait takes its time, as work does.
func wait(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "invoices"), kfake.SeedTopics(1, "invoices.dead"),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &site{rabbit: amqptest.New(t), kafka: c.ListenAddrs(), memory: memory.New(memory.Config{})}
}

func (s *site) kafkaBroker() *kafka.Broker {
	return kafka.New(s.kafka, kafka.Config{Options: []kgo.Opt{kgo.HeartbeatInterval(200 * time.Millisecond)}})
}

// program is one process: containers, a page for Prometheus at its admin API.
type program struct {
	addr                     string
	tel                      *telemetry.Telemetry
	orders, invoices, parcel *container.ListenerContainer
	permits                  *throttle.Limiter // of orders
	handled                  atomic.Int64      // calls of the handlers of orders
	free                     chan struct{}     // closed: the stuck handler goes on
}

// handle does what the message says; the second attempt is always right.
func (p *program) handle(s *site) longshore.HandlerFunc {
	return func(ctx context.Context, d *longshore.Delivery) error {
		p.handled.Add(1)
		switch {
		case d.ID == "bad":
			return longshore.Reject(errors.New("no such customer"))
		case d.ID == "again" && d.Attempt == 1:
			return errors.New("not yet")
		}
		return s.orders.call(ctx)
	}
}

// invoice is stuck at one record, whose partition waits for it.
func (p *program) invoice(ctx context.Context, d *longshore.Delivery) error {
	switch d.ID {
	case "head":
		return errors.New("the ledger is closed")
	case "bad":
		return longshore.Reject(errors.New("no such account"))
	}
	wait(ctx, time.Millisecond)
	return nil
}

func (p *program) parcels(ctx context.Context, d *longshore.Delivery) error {
	switch d.ID {
	case "stuck":
		<-p.free // heeds no context
	case "slow":
		wait(ctx, 5*time.Second)
	}
	return nil
}

// newProgram starts one; with parcels it has a container more, for what happens to one.
func newProgram(t *testing.T, s *site, parcels bool) *program {
	t.Helper()
	page, err := prom.New(prom.Config{})
	must(t, err)
	p := &program{tel: telemetry.New(telemetry.Config{MeterProvider: page.MeterProvider()}), permits: throttle.NewPermits(50), free: make(chan struct{})}
	down, err := breaker.New(breaker.Config{Name: "downstream", Ramp: -1})
	must(t, err)
	base := container.Config{Logger: zap.NewNop(), Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: 2 * time.Second}}}

	cfg := base
	cfg.Throttle, cfg.DeadLetter = p.permits, container.DeadLetter{To: "orders.dead"}
	cfg.Middleware = []longshore.Middleware{p.tel.Trace(), p.tel.Metrics(), down}
	queue := amqp.New(s.rabbit.URL, amqp.Config{}).Queue("orders", amqp.QueueConfig{Declare: amqp.Declare{Type: amqp.Quorum}})
	p.orders = made(t, queue, p.handle(s), cfg)

	cfg = base
	cfg.DeadLetter, cfg.Middleware = container.DeadLetter{To: "invoices.dead"}, []longshore.Middleware{p.tel.Metrics()}
	cfg.Redelivery = container.Redelivery{MaxAttempts: 1000, Backoff: container.Backoff{Initial: time.Second, Max: time.Second}}
	p.invoices = made(t, s.kafkaBroker().Group("billing", []string{"invoices"}, kafka.GroupConfig{}), longshore.HandlerFunc(p.invoice), named(cfg, "invoices"))

	all := []*container.ListenerContainer{p.orders, p.invoices}
	if parcels {
		cfg = base
		limit := throttle.NewRate(1000)
		cfg.Throttle, cfg.Middleware = limit, []longshore.Middleware{p.tel.Metrics()}
		cfg.Stuck, cfg.Reopen = container.Stuck{After: 6 * time.Second}, container.Backoff{Initial: 10 * time.Millisecond}
		cfg.DrainTimeout, cfg.CancelGrace = 10*time.Second, time.Second
		p.parcel = made(t, s.memory.Queue("parcels", memory.QueueConfig{}), longshore.HandlerFunc(p.parcels), cfg)
		all = append(all, p.parcel)
	}
	p.serve(t, page, all)
	return p
}

func named(cfg container.Config, name string) container.Config {
	cfg.Name = name
	return cfg
}

func made(t *testing.T, src transport.Source, h longshore.Handler, cfg container.Config) *container.ListenerContainer {
	t.Helper()
	c, err := container.New(src, h, cfg)
	must(t, err)
	return c
}

// serve starts what the program has, the page first, and stops it with the test.
func (p *program) serve(t *testing.T, page *prom.Page, all []*container.ListenerContainer) {
	t.Helper()
	stop, err := p.tel.Observe(all...)
	must(t, err)
	server, err := admin.New(admin.Config{Addr: "127.0.0.1:0", Containers: all, Metrics: page.Handler(), TokenFile: t.TempDir() + "/token"})
	must(t, err)
	must(t, server.Start(t.Context()))
	p.addr = server.Addr()
	for _, c := range all {
		must(t, c.Start(t.Context()))
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, c := range all {
			_ = c.Stop(ctx) // what is stuck or parked is left behind
		}
		must(t, server.Stop(ctx))
		must(t, stop())
		must(t, page.Close(ctx))
	})
}

// publishers of a program, measured like everything else.
type publishers struct{ orders, invoices, parcels transport.Publisher }

func (s *site) publishers(t *testing.T, p *program) publishers {
	t.Helper()
	rabbit, err := amqp.New(s.rabbit.URL, amqp.Config{}).Publisher(amqp.PublisherConfig{})
	must(t, err)
	logs, err := s.kafkaBroker().Publisher(kafka.PublisherConfig{})
	must(t, err)
	mem, err := s.memory.Publisher(memory.PublisherConfig{})
	must(t, err)
	out := publishers{p.tel.Publisher("rabbitmq", rabbit), p.tel.Publisher("kafka", logs), p.tel.Publisher("memory", mem)}
	t.Cleanup(func() {
		for _, one := range []transport.Publisher{out.orders, out.invoices, out.parcels} {
			_ = one.Close(context.Background())
		}
	})
	return out
}

func send(ctx context.Context, pub transport.Publisher, dest string, n int, ids ...string) error {
	msgs := make([]*longshore.Message, n)
	for i := range msgs {
		msgs[i] = &longshore.Message{ID: ids[i%len(ids)], Key: fmt.Appendf(nil, "k%d", i%20), Body: []byte("{}"), Timestamp: time.Now()}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return pub.Publish(ctx, dest, msgs...)
}

// traffic goes on until the test stops it: 40 orders and 20 invoices a second.
func traffic(t *testing.T, to publishers) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := errors.Join(send(ctx, to.orders, "orders", 20, "good", "good", "again", "good", "good", "good", "good", "good", "good", "bad"),
				send(ctx, to.invoices, "invoices", 10, "good", "good", "good", "good", "good", "good", "good", "good", "good", "bad"))
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
