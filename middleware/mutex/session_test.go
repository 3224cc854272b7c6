package mutex_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/container/containertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/memory"
)

// doing is a handler's statement: it returns the error of one use of the transaction.
type doing func(ctx context.Context, e *env, tx *sql.Tx) error

func statementsOfAHandler() map[string]doing {
	return map[string]doing{
		"exec": func(ctx context.Context, e *env, _ *sql.Tx) error { return e.write(ctx, "x") },
		"query": func(ctx context.Context, e *env, tx *sql.Tx) error {
			rows, err := tx.QueryContext(ctx, "SELECT id FROM "+e.effects)
			if err != nil {
				return err
			}
			return errors.Join(rows.Err(), rows.Close())
		},
		"query row": func(ctx context.Context, e *env, tx *sql.Tx) error {
			var n int
			return tx.QueryRowContext(ctx, "SELECT count(*) FROM "+e.effects).Scan(&n)
		},
		"prepare": func(ctx context.Context, e *env, tx *sql.Tx) error {
			stmt, err := tx.PrepareContext(ctx, "SELECT id FROM "+e.effects)
			if err != nil {
				return err
			}
			return stmt.Close()
		},
		"savepoint": func(ctx context.Context, _ *env, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "SAVEPOINT mine")
			return err
		},
		"second after a hidden first": func(ctx context.Context, e *env, _ *sql.Tx) error {
			_ = e.write(ctx, "x")
			return e.write(ctx, "x")
		},
		"an error of its own": func(ctx context.Context, e *env, _ *sql.Tx) error {
			if e.write(ctx, "x") != nil {
				return errors.New("could not be saved") // without %w
			}
			return nil
		},
		"a retry": func(ctx context.Context, e *env, _ *sql.Tx) error {
			return longshore.Retry(e.write(ctx, "x"), 0)
		},
	}
}

// F-N10: whatever statement meets the loss of the session, and however the handler
// reports it, it is no failed attempt. With pgx and go-sql-driver the error has no code.
func TestLossOfTheSessionIsNeverTheHandlersFailure(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{})
		for name, do := range statementsOfAHandler() {
			e.row(name)
			err := run(t, m, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
				tx, err := mutex.TxFrom(ctx)
				if err != nil {
					return longshore.Reject(err)
				}
				e.kill(ctx)
				if err = do(ctx, e, tx); err == nil {
					t.Errorf("%s: a statement in a dead session succeeded", name)
				}
				return err
			}), delivery(name))
			if v, _ := longshore.VerdictOf(err); v != longshore.VerdictRelease {
				t.Errorf("%s: verdict %q, want release: %v", name, v, err)
			}
			if !errors.Is(err, longshore.CodeConnLost) {
				t.Errorf("%s: %v has not the code %s", name, err, longshore.CodeConnLost)
			}
		}
		// The handler's own decision stands.
		e.row("rejected")
		is(t, run(t, m, longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
			e.kill(ctx)
			return longshore.Reject(e.write(ctx, "x"))
		}), delivery("rejected")), longshore.VerdictReject)
		if e.effectCount() != 0 {
			t.Errorf("%d effects", e.effectCount())
		}
	})
}

// F-N10: all sessions end while ten handlers run, with a single attempt allowed. No
// message is dead-lettered and each effect happens once.
func TestNothingIsDeadLetteredWhenTheDatabaseGoesAway(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		const n = 10
		broker := memory.New(memory.Config{})
		for i := range n {
			e.row(fmt.Sprint(i))
		}
		running := make(chan context.Context, n)
		killed := make(chan struct{})
		c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			select {
			case <-killed:
			default:
				e.kill(ctx)
				running <- ctx
				<-killed
			}
			return e.write(ctx, d.Received().Headers.String(mutex.HeaderMutex))
		}), container.Config{Logger: zap.NewNop(), Middleware: []longshore.Middleware{e.mutex(mutex.Config{BusyDelay: 5 * time.Millisecond})},
			Workers:    container.Workers{Min: n, Max: n},
			Redelivery: container.Redelivery{MaxAttempts: 1}, DeadLetter: container.DeadLetter{To: "dead"}})
		if err != nil {
			t.Fatal(err)
		}
		containertest.Start(t, c)
		for i := range n {
			containertest.PublishMessages(t, c, &longshore.Message{Headers: longshore.Headers{{Name: mutex.HeaderMutex, Value: fmt.Sprint(i)}}})
		}
		for range n {
			<-running
		}
		close(killed)
		eventually(t, "every effect", func() bool { return e.effectCount() >= n })
		containertest.WaitIdle(t, c)
		if s := c.Stats(); e.effectCount() != n || s.Rejected != 0 || s.Retried != 0 {
			t.Errorf("%d effects of %d, %+v", e.effectCount(), n, s)
		}
	})
}

// F-N10: a statement that the handler's own time limit ends closes the session as well,
// but that is the handler's failure: uncounted it would come back for ever.
func TestSlowStatementIsTheHandlersFailure(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		slow := map[mutex.Dialect]string{mutex.Postgres: "SELECT pg_sleep(30)", mutex.MySQL: "SELECT sleep(30)"}[e.dialect]
		err := run(t, e.mutex(mutex.Config{}), longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
			tx, err := mutex.TxFrom(ctx)
			if err != nil {
				return err
			}
			limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if _, err = tx.ExecContext(limited, slow); err == nil {
				t.Error("it was not cut")
			}
			<-ctx.Done() // the guard has seen the session's end
			return fmt.Errorf("slow: %w", err)
		}), delivery("a"))
		is(t, err, longshore.VerdictNone)
	})
}

// F-N10: behind a black hole the same error is the database's failure.
func TestStatementIntoABlackHoleIsNotTheHandlersFailure(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		p := faultproxy.New(t, e.address())
		db, err := sql.Open(e.driver, strings.ReplaceAll(e.dsn, e.address(), p.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			p.CutAll()
			_ = db.Close()
		})
		m := e.mutexOn(mutex.SQL(db, e.dialect), mutex.Config{LockTimeout: 300 * time.Millisecond})
		is(t, run(t, m, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			p.BlackHole(true)
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return e.write(ctx, d.ID)
		}), delivery("a")), longshore.VerdictRelease)
		p.BlackHole(false)
		p.CutAll()
		eventually(t, "the row is free", func() bool {
			v, _ := longshore.VerdictOf(run(t, m, e.effect(nil), delivery("a")))
			return v == longshore.VerdictAck
		})
		if e.effectCount() != 1 {
			t.Errorf("%d effects", e.effectCount())
		}
	})
}

func (e *env) address() string {
	e.t.Helper()
	if e.dialect == mutex.MySQL {
		_, rest, _ := strings.Cut(e.dsn, "tcp(")
		addr, _, _ := strings.Cut(rest, ")")
		return addr
	}
	u, err := url.Parse(e.dsn)
	if err != nil {
		e.t.Fatal(err)
	}
	return u.Host
}

// An error of the network or an end of file that comes from the handler's own work is
// not the database's: the session is there to prove it.
func TestForeignErrorsOfANetworkAreTheHandlersOwn(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{})
		e.row("a")
		for _, foreign := range []error{
			&net.OpError{Op: "dial", Err: errors.New("the payment service")},
			json.NewDecoder(strings.NewReader(`{"cut`)).Decode(new(any)),
			io.EOF, net.ErrClosed,
		} {
			is(t, run(t, m, longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error {
				return fmt.Errorf("pay: %w", foreign)
			}), delivery("a")), longshore.VerdictNone)
		}
	})
}
