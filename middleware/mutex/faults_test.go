package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport/memory"
)

// F-H01: the relay skips no row, whatever the commit order.
func TestRelaySkipsNoRowWhateverTheCommitOrder(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		s := &sink{}
		cfg := mutex.OutboxConfig{RelayOnly: true, Batch: 7}
		e.start(e.outbox(s, cfg))
		e.start(e.outbox(s, cfg)) // two at once
		o := e.outbox(s, cfg)
		var committed sync.Map
		var group sync.WaitGroup
		for w := range 50 {
			group.Go(func() {
				for i := range 4 {
					id := fmt.Sprintf("%d-%d", w, i)
					keep := rand.IntN(5) > 0
					err := o.InTx(context.Background(), func(ctx context.Context, tx *sql.Tx) error {
						if err := o.Add(ctx, tx, "orders", message(id, "")); err != nil {
							return err
						}
						<-time.After(time.Duration(rand.IntN(600)) * time.Millisecond)
						if !keep {
							return errors.New("rolled back")
						}
						return nil
					})
					if keep && err != nil {
						t.Error(err)
					}
					if keep {
						committed.Store(id, true)
					}
				}
			})
		}
		group.Wait()
		eventually(t, "the outbox is empty", func() bool { return e.outboxRows() == 0 })
		sent := map[string]int{}
		for _, id := range s.ids() {
			sent[id]++
			if _, ok := committed.Load(id); !ok || sent[id] > 1 {
				t.Errorf("%s: sent %d times, committed %v", id, sent[id], ok)
			}
		}
		committed.Range(func(id, _ any) bool {
			if sent[fmt.Sprint(id)] != 1 {
				t.Errorf("%v was committed and not sent", id)
			}
			return true
		})
	})
}

// F-H01: a low number that is committed after a high one was relayed.
func TestLateCommitWithALowNumber(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		s := &sink{}
		o := e.outbox(s, mutex.OutboxConfig{RelayOnly: true})
		late, err := e.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Add(t.Context(), late, "orders", message("low", "k")); err != nil {
			t.Fatal(err)
		}
		e.add(o, message("high", "k"))
		e.start(o)
		eventually(t, "the high one", func() bool { return len(s.ids()) == 1 })
		if err := late.Commit(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the low one", func() bool { return len(s.ids()) == 2 })
	})
}

// Two relays and a direct publisher at once keep the order of each key, also over
// refusals that are temporary.
func TestOrderOfAKeyIsKept(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const keys, per, each = 12, 5, 3
		s := &sink{fail: func(*longshore.Message) error {
			if rand.IntN(20) == 0 {
				return errors.New("not now")
			}
			return nil
		}}
		cfg := mutex.OutboxConfig{Batch: 20, RetryDelay: time.Millisecond, MaxAttempts: 100}
		o := e.outbox(s, cfg)
		e.start(e.outbox(s, cfg))
		e.start(e.outbox(s, cfg))
		for i := range per {
			var msgs []*longshore.Message
			for n := range keys * each {
				k := n % keys
				msgs = append(msgs, message(fmt.Sprintf("%d/%02d", k, i*each+n/keys), fmt.Sprint("key", k)))
			}
			if err := o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return o.Add(ctx, tx, "orders", msgs...) }); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the outbox is empty", func() bool { return e.outboxRows() == 0 })
		last := map[string]string{}
		for _, m := range s.got {
			if m.ID <= last[string(m.Key)] {
				t.Errorf("%s after %s", m.ID, last[string(m.Key)])
			}
			last[string(m.Key)] = m.ID
		}
		if len(s.got) < keys*per*each {
			t.Errorf("%d of %d", len(s.got), keys*per*each)
		}
	})
}

// F-H02: a lock held elsewhere is seen, the handler not run and nothing counted.
func TestLockHeldElsewhereIsBusy(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		tx, err := e.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), e.bind("DELETE FROM "+e.tables.Mutex+" WHERE id = ?"), "a"); err != nil {
			t.Fatal(err)
		}
		m := e.mutex(mutex.Config{BusyDelay: 100 * time.Millisecond})
		never := longshore.HandlerFunc(func(context.Context, *longshore.Delivery) error { t.Error("ran"); return nil })
		var last time.Duration
		for range 3 {
			err := run(t, m, never, delivery("a"))
			is(t, err, longshore.VerdictRelease)
			_, delay := longshore.VerdictOf(err)
			if delay <= last {
				t.Errorf("delay %v after %v", delay, last)
			}
			last = delay
		}
		held := run(t, e.mutex(mutex.Config{Busy: mutex.DeadLetter}), never, delivery("a"))
		is(t, held, longshore.VerdictReject)
		if longshore.CodeOf(held) != longshore.CodeBusy { // dlq list --reason busy
			t.Errorf("code %q", longshore.CodeOf(held))
		}
		impatient := e.mutex(mutex.Config{BusyMax: time.Nanosecond})
		is(t, run(t, impatient, never, delivery("a")), longshore.VerdictRelease)
		is(t, run(t, impatient, never, delivery("a")), longshore.VerdictReject)
		if m.Stats().Held != 3 {
			t.Errorf("%+v", m.Stats())
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
	})
}

// F-H02: a pending table lock; the call returns within its timeout.
func TestTableLockDoesNotHoldAWorker(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		ctx, cancel := context.WithCancel(t.Context())
		reader, err := e.db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := reader.ExecContext(ctx, "SELECT count(*) FROM "+e.tables.Mutex); err != nil {
			t.Fatal(err)
		}
		altered := make(chan error, 1)
		go func() {
			_, err := e.db.ExecContext(ctx, "ALTER TABLE "+e.tables.Mutex+" ADD extra integer")
			altered <- err
		}()
		m := e.mutex(mutex.Config{LockTimeout: 400 * time.Millisecond})
		eventually(t, "the alteration waits in front of us", func() bool {
			v, _ := longshore.VerdictOf(run(t, m, e.effect(errors.New("no")), delivery("a")))
			return v == longshore.VerdictRelease
		})
		cancel()
		_ = reader.Rollback()
		t.Log(<-altered)
		eventually(t, "the table is free", func() bool { // the server ends the alteration in its own time
			return run(t, e.mutex(mutex.Config{}), e.effect(nil), delivery("a")) == nil
		})
		if e.effectCount() != 1 {
			t.Errorf("%d effects", e.effectCount())
		}
	})
}

// F-H03: a duplicate leaves a usable transaction, a failure no inbox row.
func TestInboxDuplicateIsSkippedAndFailureForgotten(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
		if err := m.Check(t.Context(), longshore.Facts{}); err != nil {
			t.Fatal(err)
		}
		is(t, run(t, m, e.effect(errors.New("boom")), delivery("a")), longshore.VerdictNone)
		if n := e.count("SELECT count(*) FROM " + e.tables.Inbox); n != 0 {
			t.Fatalf("%d inbox rows after a failure", n)
		}
		for range 3 {
			is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		}
		other := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "other", Retention: 240 * time.Hour})
		is(t, run(t, other, e.effect(nil), delivery("a")), longshore.VerdictAck)
		if e.effectCount() != 2 {
			t.Errorf("%d effects of two consumers", e.effectCount())
		}
		is(t, run(t, m, e.effect(nil), delivery("")), longshore.VerdictReject)
	})
}

// F-H03: two at once; the second sees the first one or its end, and never fails.
func TestInboxWithManyAtOnce(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for n := range 10 {
					for {
						h := e.effect(nil)
						if rand.IntN(4) == 0 {
							h = e.effect(errors.New("boom"))
						}
						if err := m.Wrap(h).Handle(context.Background(), delivery(fmt.Sprint("id", (n+i)%10))); err == nil {
							break
						}
					}
				}
			})
		}
		group.Wait()
		if e.effectCount() != 10 {
			t.Errorf("%d effects of 10 ids", e.effectCount())
		}
	})
}

func TestPurgeForgetsWhatIsOldOnly(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
		tx, err := e.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2500 {
			if _, err := tx.ExecContext(t.Context(), e.bind("INSERT INTO "+e.tables.Inbox+" (consumer, id, at) VALUES ('c', ?, 1)"), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		e.exec("INSERT INTO " + e.tables.Inbox + " (consumer, id, at) VALUES ('other', '1', 1)") // who may remember for longer
		is(t, run(t, m, e.effect(nil), delivery("fresh")), longshore.VerdictAck)
		n, err := m.Purge(t.Context())
		if err != nil || n != 2500 || e.count("SELECT count(*) FROM "+e.tables.Inbox) != 2 {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestPurgerPurgesAgainAndAgainUntilItIsStopped(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		m := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour, PurgeEvery: 5 * time.Millisecond})
		p := m.Purger()
		if err := errors.Join(p.Start(t.Context()), p.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			e.exec("INSERT INTO "+e.tables.Inbox+" (consumer, id, at) VALUES ('c', ?, 1)", fmt.Sprint(i))
			eventually(t, "the inbox is empty", func() bool { return e.count("SELECT count(*) FROM "+e.tables.Inbox) == 0 })
		}
		if err := errors.Join(p.Stop(t.Context()), p.Stop(t.Context())); err != nil {
			t.Fatal(err)
		}
		e.exec("INSERT INTO " + e.tables.Inbox + " (consumer, id, at) VALUES ('c', 'late', 1)")
		if e.count("SELECT count(*) FROM "+e.tables.Inbox) != 1 {
			t.Error("purged after Stop")
		}
	})
}

// A container with default settings and a purger need no longer StopTimeout than the
// default, beside what only closes something.
func TestPurgerFitsIntoTheDefaultStop(t *testing.T) {
	e := open(t, mutex.SQLite)
	m := e.mutex(mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
	c, err := container.New(memory.New(memory.Config{}).Queue("orders", memory.QueueConfig{}), e.effect(nil), container.Config{Middleware: []longshore.Middleware{m}})
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(context.Context) error { return nil }
	pool, admin := lifecycle.Hook("pool", lifecycle.PhasePools, nothing, nothing), lifecycle.Hook("admin", lifecycle.PhaseAdmin, nothing, nothing)
	if _, err := lifecycle.New(lifecycle.Config{}, pool, admin, m.Purger(), c); err != nil {
		t.Error(err)
	}
}

// F-H04: the owner's session dies while its handler runs: its context ends, its
// commit fails, its effect is absent, and the next one does the work once.
func TestLostOwnerChangesNothing(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		m := e.mutex(mutex.Config{})
		for _, swallow := range []bool{true, false} {
			err := run(t, m, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				if err := e.write(ctx, d.ID); err != nil {
					return err
				}
				e.kill(ctx)
				err := e.write(ctx, d.ID)
				if err == nil {
					t.Error("a statement in a dead session succeeded")
				}
				select {
				case <-ctx.Done():
				case <-time.After(10 * time.Second):
					t.Error("the handler's context did not end")
				}
				if !errors.Is(context.Cause(ctx), longshore.CodeConnLost) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				if swallow {
					return nil
				}
				return err
			}), delivery("a"))
			is(t, err, longshore.VerdictRelease)
			if e.rows() != 1 || e.effectCount() != 0 {
				t.Fatalf("%d rows, %d effects", e.rows(), e.effectCount())
			}
		}
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		if e.rows() != 0 || e.effectCount() != 1 {
			t.Errorf("%d rows, %d effects", e.rows(), e.effectCount())
		}
	})
}

// kill ends the session of the handler's transaction, from outside.
func (e *env) kill(ctx context.Context) {
	e.t.Helper()
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		e.t.Fatal(err)
	}
	ask, end := "SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%d)"
	if e.dialect == mutex.MySQL {
		ask, end = "SELECT connection_id()", "KILL %d"
	}
	var session int
	if err := tx.QueryRowContext(ctx, ask).Scan(&session); err != nil {
		e.t.Fatal(err)
	}
	e.exec(fmt.Sprintf(end, session))
}

// F-H04: a row that a relay has read and somebody else has finished stays finished.
func TestRelayWithAnOldViewChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		var once sync.Once
		s := &sink{fail: func(*longshore.Message) error { return errors.New("refused") }}
		s.hook = func() {
			once.Do(func() { e.exec("DELETE FROM " + e.tables.Outbox) }) // between its read and its write
		}
		o := e.outbox(s, mutex.OutboxConfig{RelayOnly: true})
		e.add(o, message("a", ""), message("b", "k"))
		e.start(o)
		eventually(t, "a pass", func() bool { return o.Relay().Stats().Refused > 0 })
		if err := o.Relay().Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if e.outboxRows() != 0 {
			t.Errorf("%d rows came back", e.outboxRows())
		}
	})
}

// The trap of MySQL: a deadlock rolls all back, the handler hides it and goes on.
func TestHandlerThatHidesAnErrorCommitsNothing(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		m := e.mutex(mutex.Config{})
		err := run(t, m, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			tx, err := mutex.TxFrom(ctx)
			if err != nil {
				return err
			}
			_ = e.write(ctx, "step1")
			if e.dialect == mutex.Postgres {
				_, _ = tx.ExecContext(ctx, "SELECT 1/0") // hidden
			} else {
				_, _ = tx.ExecContext(ctx, "ROLLBACK") // as a deadlock does
			}
			_ = e.write(ctx, "step2")
			return nil
		}), delivery("a"))
		is(t, err, longshore.VerdictNone)
		if !errors.Is(err, mutex.ErrRolledBack) || e.rows() != 1 || e.effectCount() != 0 {
			t.Errorf("%v, %d rows, %d effects", err, e.rows(), e.effectCount())
		}
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
		e.exec("DELETE FROM " + e.effects)
		e.exec("INSERT INTO " + e.effects + " (id, n) VALUES ('auto', 1)") // autocommit is on again
		if e.effectCount() != 1 {
			t.Error("a connection came back without autocommit")
		}
	})
}

// F-H05: other isolation levels as the server's default change nothing.
func TestDefaultIsolationDoesNotMatter(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			servers(t, func(t *testing.T, e *env) {
				set := "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL " + level
				if e.dialect == mutex.MySQL {
					set = "SET SESSION TRANSACTION ISOLATION LEVEL " + level
				}
				e.db.SetMaxOpenConns(1)
				e.exec(set)
				e.row("a")
				m := e.mutex(mutex.Config{})
				is(t, run(t, m, longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
					tx, _ := mutex.TxFrom(ctx)
					show := "SHOW transaction_isolation"
					if e.dialect == mutex.MySQL { // the session's default stays; what counts is what another's commit shows
						return e.write(ctx, d.ID)
					}
					var got string
					if err := tx.QueryRowContext(ctx, show).Scan(&got); err != nil || got != "read committed" {
						t.Errorf("%q, %v", got, err)
					}
					return e.write(ctx, d.ID)
				}), delivery("a")), longshore.VerdictAck)
				is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
				if e.effectCount() != 1 {
					t.Errorf("%d effects", e.effectCount())
				}
			})
		})
	}
}

// F-H06: concurrency 20 on a pool of 2 completes.
func TestSmallPoolCompletes(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		for i := range 200 {
			e.row(fmt.Sprint(i))
		}
		e.db.SetMaxOpenConns(2)
		m := e.mutex(mutex.Config{LockTimeout: 30 * time.Second})
		var next, failed atomic.Int32
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				for {
					i := next.Add(1) - 1
					if i >= 200 {
						return
					}
					if err := m.Wrap(e.effect(nil)).Handle(context.Background(), delivery(fmt.Sprint(i))); err != nil {
						failed.Add(1)
					}
				}
			})
		}
		group.Wait()
		if failed.Load() != 0 || e.effectCount() != 200 || e.rows() != 0 {
			t.Errorf("%d failed, %d effects, %d rows", failed.Load(), e.effectCount(), e.rows())
		}
	})
}

// F-H06: no transaction is open while a failed delivery waits, and a handler that also
// asks the pool ends by its timeout.
func TestNothingIsHeldWhileWaiting(t *testing.T) {
	servers(t, func(t *testing.T, e *env) {
		e.row("a")
		e.db.SetMaxOpenConns(1)
		m := e.mutex(mutex.Config{LockTimeout: 200 * time.Millisecond})
		is(t, run(t, m, e.effect(longshore.Retry(errors.New("later"), 30*time.Second)), delivery("a")), longshore.VerdictRetry)
		if n := e.db.Stats().InUse; n != 0 {
			t.Errorf("%d connections in use during the backoff", n)
		}
		held, err := e.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = run(t, m, e.effect(nil), delivery("a"))
		is(t, err, longshore.VerdictRelease)
		if !errors.Is(err, longshore.CodeTimeout) {
			t.Errorf("%v", err)
		}
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
	})
}

// F-H06: handlers that also ask the pool for a connection do not wait for each other.
func TestHandlersThatAlsoUseThePoolComplete(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		const n = 60
		for i := range n {
			e.row(fmt.Sprint(i))
		}
		e.db.SetMaxOpenConns(3)
		m := e.mutex(mutex.Config{LockTimeout: 30 * time.Second})
		h := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			var one int
			if err := e.db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
				return err
			}
			return e.write(ctx, d.ID)
		})
		var group sync.WaitGroup
		for w := range 10 {
			group.Go(func() {
				for i := w; i < n; i += 10 {
					if err := m.Wrap(h).Handle(context.Background(), delivery(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		if e.effectCount() != n {
			t.Errorf("%d effects", e.effectCount())
		}
	})
}
