package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/internal/fleet"
	"github.com/longshore-go/longshore/middleware/throttle"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp"
	"github.com/longshore-go/longshore/transport/amqp/amqptest"
	"github.com/longshore-go/longshore/transport/kafka"
	"github.com/longshore-go/longshore/transport/memory"
)

const incidentToken = "the token of an operator"

// watched is a container behind the real admin API.
type watched struct {
	t   *testing.T
	c   *container.ListenerContainer
	api http.Handler
}

func watch(t *testing.T, source transport.Source, cfg container.Config, h func(context.Context, *longshore.Delivery) error) *watched {
	t.Helper()
	cfg.Logger = zap.NewNop()
	c, err := container.New(source, longshore.HandlerFunc(h), cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := admin.New(admin.Config{Containers: []*container.ListenerContainer{c}, Logger: zap.NewNop(), Operators: map[string]transport.Secret{"anna": transport.Static(incidentToken)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &watched{t, c, a.Handler()}
}

func (w *watched) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.c.Stop(ctx) // some do not end in time: that is the incident
}

// screen is what top shows of the container, on the given page, in one line.
func (w *watched) screen(page Page) string {
	w.t.Helper()
	get := func(path string, v any) {
		req := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
		req.Header.Set("Authorization", "Bearer "+incidentToken)
		rec := httptest.NewRecorder()
		w.api.ServeHTTP(rec, req)
		if err := json.Unmarshal(rec.Body.Bytes(), v); err != nil || rec.Code != http.StatusOK {
			w.t.Fatalf("%s: %d, %v, %s", path, rec.Code, err, rec.Body)
		}
	}
	var l struct {
		Containers []admin.Container `json:"containers"`
	}
	get("/api/containers", &l)
	now := time.Now()
	in := fleet.Instance{Name: "shop-1:8391", Status: fleet.Live, Heard: now, Containers: l.Containers}
	s := Screen{Width: 80, Height: 24, Now: now, Fleet: fleet.Snapshot{At: now, Instances: []fleet.Instance{in}}, Page: page, Selected: w.c.Name()}
	var held struct {
		Total   int          `json:"total"`
		Records []HeldRecord `json:"records"`
	}
	get("/api/containers/"+w.c.Name()+"/inflight?limit=20", &held)
	s.Held = Held{Container: w.c.Name(), Total: held.Total, Records: held.Records}
	fits(w.t, "incident", s)
	return strings.Join(strings.Fields(s.View()), " ")
}

func (w *watched) shows(page Page, words ...string) {
	w.t.Helper()
	view := w.screen(page)
	for _, word := range words {
		if !strings.Contains(view, word) {
			w.t.Errorf("%q is not on the screen:\n%s", word, view)
		}
	}
}

// within waits in real time, at most ten seconds.
func (w *watched) within(words ...string) {
	w.t.Helper()
	var missing string
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		view := w.screen(Overview)
		missing = ""
		for _, word := range words {
			if !strings.Contains(view, word) {
				missing = fmt.Sprintf("%q is not on the screen: %s", word, view)
			}
		}
		if missing == "" {
			return
		}
		tick := time.NewTimer(20 * time.Millisecond)
		<-tick.C
	}
	w.t.Error(missing)
}

// wait passes virtual time.
func wait(d time.Duration) { <-time.After(d) }

// Ten seconds into an incident the terminal shows what it is, without a command: in virtual
// time.
func TestTenSecondsPerIncident(t *testing.T) {
	poison := errors.New("no such account")
	none := 0
	for name, row := range map[string]struct {
		cfg   container.Config
		n     int // messages
		keys  int
		h     func(context.Context, *longshore.Delivery) error
		do    func(*watched, *throttle.Limiter)
		first time.Duration // before the ten seconds
		over  []string      // on the overview
		one   []string      // on the page of the container
	}{
		"hung handler": {cfg: container.Config{Workers: container.Workers{Max: 1}}, n: 5, keys: 5,
			h:    func(ctx context.Context, _ *longshore.Delivery) error { <-ctx.Done(); return ctx.Err() },
			over: []string{"1 needs you", "▲ orders", "0/s while 5 wait", "longshore ctl stuck orders"}, one: []string{"running 1/5 10.0 s"}},
		"hot key": {cfg: container.Config{Order: container.ByKey, Workers: container.Workers{Min: 4, Max: 4}}, n: 400, keys: 1,
			h:    func(context.Context, *longshore.Delivery) error { wait(100 * time.Millisecond); return nil },
			over: []string{"hot key", `"ka"`}, one: []string{"largest key", "behind others of their key"}},
		"poison storm": {cfg: container.Config{Redelivery: container.Redelivery{MaxAttempts: 10, Backoff: container.Backoff{Initial: time.Second, Max: time.Minute}}}, n: 40, keys: 20,
			h:    func(context.Context, *longshore.Delivery) error { return poison },
			over: []string{"1 needs you", "no such account"}, one: []string{"errors handler", "parked"}},
		"forgotten throttle": {n: 3, keys: 3, do: func(_ *watched, l *throttle.Limiter) {
			l.Override(throttle.Override{Permits: &none, By: "anna", Reason: "ledger down"})
		}, over: []string{"0 permits", "anna", "ledger down", "throttle orders --clear"}, one: []string{"0 of 0 permits in use, set by anna", "(ledger down)"}},
		"forgotten pause": {n: 3, keys: 3, do: func(w *watched, _ *throttle.Limiter) {
			w.c.PauseBy(longshore.Intervention{By: "ben", Reason: "deploy"})
		}, over: []string{"‖ orders", "paused", "ben (deploy)", "longshore ctl resume orders"}, one: []string{"‖ paused"}},
		"slow downstream": {cfg: container.Config{Workers: container.Workers{Min: 4, Max: 4}}, n: 3000, keys: 20, first: 50 * time.Second,
			h: func() func(context.Context, *longshore.Delivery) error {
				var began atomic.Pointer[time.Time]
				return func(context.Context, *longshore.Delivery) error {
					now := time.Now()
					began.CompareAndSwap(nil, &now)
					if now.Sub(*began.Load()) > 30*time.Second {
						wait(900 * time.Millisecond)
					}
					wait(100 * time.Millisecond)
					return nil
				}
			}(), over: []string{"1 needs you", "times"}, one: []string{"was 1"}},
		"nothing was ever received": {over: []string{"nothing was ever received from memory orders"}, one: []string{"last message never"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, limit := memory.New(memory.Config{}), throttle.NewUnlimited()
				b.Declare("orders")
				outlet, _ := b.Queue("orders", memory.QueueConfig{}).(transport.Outlet)
				pub, self, err := outlet.Publisher(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i := range row.n {
					if err := pub.Publish(t.Context(), self, &longshore.Message{Key: []byte{'k', byte('a' + i%row.keys)}, Body: []byte("x")}); err != nil {
						t.Fatal(err)
					}
				}
				if row.h == nil {
					row.h = func(context.Context, *longshore.Delivery) error { return nil }
				}
				row.cfg.Throttle = limit
				if row.do != nil {
					row.cfg.StartPaused = true
				}
				w := watch(t, b.Queue("orders", memory.QueueConfig{}), row.cfg, row.h)
				if row.do != nil {
					row.do(w, limit)
				}
				if row.do != nil && name == "forgotten throttle" {
					w.c.Resume()
				}
				w.screen(Overview) // the first sample of the rate
				wait(row.first + 10*time.Second)
				w.shows(Overview, row.over...)
				w.shows(One, row.one...)
				w.stop()
			})
		})
	}
}

// The incidents of a broker, on the embedded RabbitMQ.
func TestTenSecondsPerIncidentOfABroker(t *testing.T) {
	ok := func(context.Context, *longshore.Delivery) error { return nil }
	queue := func(srv *amqptest.Server, cfg amqp.QueueConfig) transport.Source {
		cfg.Declare.Type = amqp.Classic
		return amqp.New(srv.URL, amqp.Config{}).Queue("orders", cfg)
	}
	t.Run("memory alarm", func(t *testing.T) {
		srv := amqptest.New(t, amqptest.Config{})
		w := watch(t, queue(srv, amqp.QueueConfig{}), container.Config{}, ok)
		defer w.stop()
		srv.Block("low on memory")
		defer srv.Unblock()
		outlet, _ := w.c.Source().(transport.Outlet)
		pub, self, err := outlet.Publisher(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_ = pub.Publish(ctx, self, &longshore.Message{Body: []byte("x")}) // it is blocked
		w.within("blocks publishers", "rabbitmq-diagnostics")
	})
	t.Run("revoked credentials", func(t *testing.T) {
		srv := amqptest.New(t, amqptest.Config{})
		w := watch(t, queue(srv, amqp.QueueConfig{}), container.Config{}, ok)
		defer w.stop()
		srv.SetPassword("guest", "another")
		srv.Cut(nil)
		w.within("1 needs you", "▲ orders", "recovering", "(auth)", "since")
	})
	t.Run("queue remade", func(t *testing.T) {
		srv := amqptest.New(t, amqptest.Config{})
		w := watch(t, queue(srv, amqp.QueueConfig{}), container.Config{Reopen: container.Backoff{Initial: time.Second, Max: time.Second}}, ok)
		defer w.stop()
		conn, err := amqp091.Dial(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDelete("orders", false, false, false); err != nil {
			t.Fatal(err)
		}
		if _, err := ch.QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-max-length": int32(10)}); err != nil {
			t.Fatal(err)
		}
		w.within("recovering", "("+string(longshore.CodeMismatch)+")")
	})
}

// A record that is kept, because it has no dead-letter destination, holds its partition back.
func TestTenSecondsOfABlockedPartition(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"), kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	group := kafka.New(fake.ListenAddrs(), kafka.Config{}).Group("billing", []string{"orders"}, kafka.GroupConfig{Window: 20})
	w := watch(t, group, container.Config{Name: "orders", DeadLetter: container.DeadLetter{Policy: container.DeadLetterKeep},
		Redelivery: container.Redelivery{MaxAttempts: 1, Backoff: container.Backoff{Initial: time.Minute, Max: time.Hour}}},
		func(_ context.Context, d *longshore.Delivery) error {
			if string(d.Body) == "0" {
				return errors.New("no such account")
			}
			return nil
		})
	defer w.stop()
	pub, err := kafka.New(fake.ListenAddrs(), kafka.Config{}).Publisher(kafka.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pub.Close(context.Background()) }()
	for i := range 100 {
		if err := pub.Publish(t.Context(), "orders", &longshore.Message{Key: fmt.Appendf(nil, "k%d", i%10), Body: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	w.within("partition 0 of orders", "offset 0", `key "k0"`, "retry-now or dead-letter")
}

// A network that swallows everything, and an instance that does: the numbers are old, and say
// so.
func TestTenSecondsOfASilentInstance(t *testing.T) {
	s := screen(two())
	s.Fleet.Instances = s.Fleet.Instances[2:]
	view := strings.Join(strings.Fields(s.View()), " ")
	for _, want := range []string{"0 of 1 instance live", "○ orders", "no answer", "stale since 14:01:20", "connection refused", "its numbers are old"} {
		if !strings.Contains(view, want) {
			t.Errorf("%q is not in %s", want, view)
		}
	}
}
