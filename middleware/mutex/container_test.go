package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/memory"
)

// Two containers, a broker that hands out everything twice now and then, handlers that
// fail, a relay: one effect for each message.
func TestOneEffectInContainers(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const n = 150
		broker := memory.New(memory.Config{})
		pub, err := broker.Publisher(memory.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		o := e.outbox(pub, mutex.OutboxConfig{})
		m := e.mutex(mutex.Config{BusyDelay: 10 * time.Millisecond})
		var last *container.ListenerContainer
		for i := range 2 {
			c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				if err := e.write(ctx, d.ID); err != nil {
					return err
				}
				if rand.IntN(5) == 0 {
					return errors.New("boom")
				}
				return nil
			}), container.Config{Name: fmt.Sprint("c", i), Logger: zap.NewNop(), Middleware: []longshore.Middleware{m}, Workers: container.Workers{Min: 4, Max: 4},
				Redelivery: container.Redelivery{MaxAttempts: 100, Backoff: container.Backoff{Initial: time.Millisecond, Max: 5 * time.Millisecond}}})
			if err != nil {
				t.Fatal(err)
			}
			containertest.Start(t, c)
			last = c
		}
		e.start(o)
		for i := range n {
			msg := message("", "")
			if err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return o.Add(ctx, tx, "orders", msg) }); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				if err := pub.Publish(t.Context(), "orders", msg); err != nil { // a copy
					t.Fatal(err)
				}
			}
			if i%10 == 0 {
				broker.TakeBack("orders")
			}
		}
		eventually(t, "the rows are taken", func() bool { return e.rows() == 0 })
		containertest.WaitIdle(t, last)
		if e.effectCount() != n || e.count("SELECT count(DISTINCT id) FROM "+e.effects) != n || e.outboxRows() != 0 {
			t.Errorf("%d effects of %d messages, %d in the outbox", e.effectCount(), n, e.outboxRows())
		}
	})
}

// A held row is no failed attempt: the message is worked on when the row is free.
func TestHeldRowCostsNoAttempt(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		broker := memory.New(memory.Config{})
		e.row("a")
		attempts := make(chan int, 10)
		m := e.mutex(mutex.Config{BusyDelay: 5 * time.Millisecond})
		c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(_ context.Context, d *longshore.Delivery) error {
			attempts <- d.Attempt
			return nil
		}), container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{m}, Redelivery: container.Redelivery{MaxAttempts: 2}})
		if err != nil {
			t.Fatal(err)
		}
		containertest.Start(t, c)
		tx, err := e.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), e.bind("DELETE FROM "+e.tables.Mutex+" WHERE id = ?"), "a"); err != nil {
			t.Fatal(err)
		}
		containertest.PublishMessages(t, c, &longshore.Message{Headers: longshore.Headers{{Name: mutex.HeaderMutex, Value: "a"}}})
		eventually(t, "held some times", func() bool { return m.Stats().Held >= 4 })
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if got := <-attempts; got != 1 {
			t.Errorf("attempt %d", got)
		}
		containertest.WaitIdle(t, c)
	})
}

// F-H03: what a handler asks for by a verb, and then returns, is not done before the
// transaction ends: given back, the message has no effect yet, and acked by hand it is
// not gone when there is no commit. The next attempt has the effect.
func TestVerbsOfAHandlerEndWithTheTransaction(t *testing.T) {
	verbs := map[string]func(context.Context, *longshore.Delivery) error{
		"nack": func(ctx context.Context, d *longshore.Delivery) error { return d.Nack(ctx, time.Millisecond) },
		"ack, then an error": func(ctx context.Context, d *longshore.Delivery) error {
			return errors.Join(d.Ack(ctx), errors.New("boom"))
		},
	}
	servers(t, func(t *testing.T, e *env) {
		for name, verb := range verbs {
			broker := memory.New(memory.Config{})
			e.row(name)
			m := e.mutex(mutex.Config{})
			c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				if err := e.write(ctx, fmt.Sprint(name, d.Attempt)); err != nil {
					return err
				}
				if d.Attempt == 1 {
					return verb(ctx, d)
				}
				return d.Ack(ctx)
			}), container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{m},
				Redelivery: container.Redelivery{Backoff: container.Backoff{Initial: time.Millisecond}}})
			if err != nil {
				t.Fatal(err)
			}
			containertest.Start(t, c)
			containertest.PublishMessages(t, c, &longshore.Message{Headers: longshore.Headers{{Name: mutex.HeaderMutex, Value: name}}})
			containertest.WaitIdle(t, c)
			if first, second := e.count("SELECT count(*) FROM "+e.effects+" WHERE id = '"+name+"1'"), e.count("SELECT count(*) FROM "+e.effects+" WHERE id = '"+name+"2'"); first != 0 || second != 1 {
				t.Errorf("%s: %d effects of the first attempt, %d of the second; want 0 and 1", name, first, second)
			}
		}
	})
}
