package mutex_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// The child is this test binary again. It does one thing up to a point, says so on its
// standard output and waits to be killed.
const (
	childPoint  = "MUTEX_TEST_POINT"
	childDSN    = "MUTEX_TEST_DSN"
	childPrefix = "MUTEX_TEST_PREFIX"
)

// The crash points of a process, by their number in docs/explanation/exactly-once.md.
const (
	beforePublishersCommit = "1"
	afterPublishersCommit  = "3"
	publishedNotConfirmed  = "4"
	confirmedNotMarked     = "5"
	deliveredNotLocked     = "8"
	handlerRunning         = "9"
	commitNotSent          = "13"
	committedNotAcked      = "15"
)

func child() bool {
	point := os.Getenv(childPoint)
	if point == "" {
		return false
	}
	db, err := sql.Open("pgx", os.Getenv(childDSN))
	if err != nil {
		panic(err)
	}
	p := os.Getenv(childPrefix)
	c := &process{point: point, db: db, effects: p + "effects",
		tables: mutex.Tables{Mutex: p + "mutex", Outbox: p + "outbox", Shards: p + "relay", Inbox: p + "inbox"}}
	if err := c.run(context.Background()); err != nil {
		panic(err)
	}
	c.reach("end") // the kill has to come from outside, always
	return true
}

type process struct {
	point   string
	db      *sql.DB
	tables  mutex.Tables
	effects string
}

// reach stops for ever if this is where the process is to die.
func (c *process) reach(point string) {
	if point != c.point && point != "end" {
		return
	}
	_, _ = fmt.Fprintln(os.Stdout, "reached "+point)
	select {}
}

func (c *process) run(ctx context.Context) error {
	switch c.point {
	case beforePublishersCommit, afterPublishersCommit, publishedNotConfirmed, confirmedNotMarked:
		return c.produce(ctx)
	default:
		return c.consume(ctx)
	}
}

// Publish is this process's broker: what it gets is told to the parent, who is the queue.
func (c *process) Publish(_ context.Context, _ string, msgs ...*longshore.Message) error {
	c.reach(afterPublishersCommit)
	for _, m := range msgs {
		_, _ = fmt.Fprintln(os.Stdout, "published "+m.Headers.String(mutex.HeaderMutex))
	}
	c.reach(publishedNotConfirmed)
	return nil
}

func (c *process) Close(context.Context) error { return nil }

// Begin counts the transactions: the second one marks what was published.
func (c *process) store() mutex.Store {
	return &pointStore{Store: mutex.SQL(c.db, mutex.Postgres), c: c}
}

type pointStore struct {
	mutex.Store

	c     *process
	begun int
}

func (s *pointStore) Begin(ctx context.Context) (mutex.Tx, error) {
	s.begun++
	if s.begun == 2 {
		s.c.reach(confirmedNotMarked)
	}
	s.c.reach(deliveredNotLocked)
	tx, err := s.Store.Begin(ctx)
	return &pointTx{Tx: tx, c: s.c}, err
}

type pointTx struct {
	mutex.Tx

	c *process
}

func (t *pointTx) Commit(ctx context.Context) error {
	t.c.reach(beforePublishersCommit)
	t.c.reach(commitNotSent)
	err := t.Tx.Commit(ctx)
	t.c.reach(committedNotAcked)
	return err
}

func (c *process) produce(ctx context.Context) error {
	o, err := mutex.NewOutbox(c.store(), c, mutex.OutboxConfig{Tables: c.tables, Logger: zap.NewNop(), NewID: func(context.Context, mutex.Execer) (string, error) { return "a", nil }})
	if err != nil {
		return err
	}
	return o.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return o.Add(ctx, tx, "orders", &longshore.Message{Body: []byte("a")})
	})
}

func (c *process) consume(ctx context.Context) error {
	m, err := mutex.New(c.store(), mutex.Config{Tables: c.tables, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	return m.Wrap(longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		tx, err := mutex.TxFrom(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO "+c.effects+" (id, n) VALUES ($1, 1)", d.ID)
		c.reach(handlerRunning)
		return err
	})).Handle(ctx, delivery("a"))
}

// die runs a child up to the point, kills it with SIGKILL and returns what it published.
func (e *env) die(point string) (published int) {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childPoint+"="+point, childDSN+"="+e.dsn, childPrefix+"="+strings.TrimSuffix(e.effects, "effects"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	reached := ""
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "published ") {
			published++
		}
		if at, ok := strings.CutPrefix(lines.Text(), "reached "); ok {
			reached = at
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		e.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if reached != point {
		e.t.Fatalf("the child died at %q, not at %q", reached, point)
	}
	return published
}

// A process is killed at every point of the table; what it has left is then worked on
// by a relay and by consumers that get every copy. One effect, or none where nothing
// was committed, and nothing left behind.
func TestKilledAtEveryPoint(t *testing.T) {
	for _, c := range []struct {
		point, name             string
		rows, outbox, published int // right after the kill
		effects                 int // at the end
	}{
		{beforePublishersCommit, "before the publisher's commit", 0, 0, 0, 0},
		{afterPublishersCommit, "after the commit, before publishing", 1, 1, 0, 1},
		{publishedNotConfirmed, "published, not confirmed", 1, 1, 1, 1},
		{confirmedNotMarked, "confirmed, not marked", 1, 1, 1, 1},
		{deliveredNotLocked, "delivered, before the lock", 1, 0, 1, 1},
		{handlerRunning, "locked, the handler runs", 1, 0, 1, 1},
		{commitNotSent, "handler done, commit not sent", 1, 0, 1, 1},
		{committedNotAcked, "committed, not acked", 0, 0, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := open(t, mutex.Postgres)
			copies := 1
			if c.point == beforePublishersCommit || c.outbox > 0 {
				copies = e.die(c.point)
			} else {
				e.row("a")
				e.die(c.point)
			}
			eventually(t, "the killed session's lock is gone", func() bool {
				return e.count("SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname IN (?, ?)", e.tables.Mutex, e.tables.Outbox) == 0
			})
			if e.rows() != c.rows || e.outboxRows() != c.outbox || copies != c.published {
				t.Errorf("left: %d mutex rows, %d outbox rows, %d published", e.rows(), e.outboxRows(), copies)
			}
			s := &sink{}
			o := e.outbox(s, mutex.OutboxConfig{})
			e.exec("UPDATE " + e.tables.Outbox + " SET due_at = 0") // the grace is over
			e.start(o)
			eventually(t, "the relay has sent it", func() bool { return e.outboxRows() == 0 })
			m := e.mutex(mutex.Config{})
			for range copies + len(s.ids()) + 1 { // each copy, and one more redelivery
				if c.rows+c.published > 0 {
					is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictAck)
				}
			}
			if e.effectCount() != c.effects || e.rows() != 0 {
				t.Errorf("%d effects, %d rows left", e.effectCount(), e.rows())
			}
		})
	}
}

// Points 2 and 14: the answer to a commit is lost. It must not be acked, counted or
// dead-lettered: the row tells.
func TestAnswerToTheCommitIsLost(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		for _, arrived := range []bool{true, false} {
			e.exec("DELETE FROM " + e.effects)
			id := fmt.Sprint("arrived ", arrived)
			e.row(id)
			broken := e.mutexOn(&lossyStore{Store: e.store(), arrives: arrived}, mutex.Config{})
			is(t, run(t, broken, e.effect(nil), delivery(id)), longshore.VerdictRelease)
			if broken.Stats().Unknown != 1 {
				t.Errorf("%+v", broken.Stats())
			}
			is(t, run(t, e.mutex(mutex.Config{}), e.effect(nil), delivery(id)), longshore.VerdictAck)
			if e.effectCount() != 1 || e.rows() != 0 {
				t.Errorf("arrived %v: %d effects, %d rows", arrived, e.effectCount(), e.rows())
			}

			s := &sink{}
			o, err := mutex.NewOutbox(&lossyStore{Store: e.store(), arrives: arrived}, s, mutex.OutboxConfig{Tables: e.tables, NoMutex: true})
			if err != nil {
				t.Fatal(err)
			}
			err = o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error { return o.Add(ctx, tx, "orders", message("m", "")) })
			if err == nil || len(s.ids()) != 0 {
				t.Errorf("%v, published %v", err, s.ids())
			}
			if got := e.outboxRows() == 1; got != arrived {
				t.Errorf("arrived %v, but in the outbox: %v", arrived, got)
			}
			e.exec("DELETE FROM " + e.tables.Outbox)
		}
	})
}

// lossyStore loses the answer of every commit, or the commit itself.
type lossyStore struct {
	mutex.Store

	arrives bool
}

func (s *lossyStore) Begin(ctx context.Context) (mutex.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	return &lossyTx{Tx: tx, arrives: s.arrives}, err
}

type lossyTx struct {
	mutex.Tx

	arrives bool
}

func (t *lossyTx) Commit(ctx context.Context) error {
	if !t.arrives {
		return errors.Join(t.Rollback(ctx), io.ErrUnexpectedEOF)
	}
	return errors.Join(t.Tx.Commit(ctx), io.ErrUnexpectedEOF)
}

// A database error at the claim is retried inside (rolled back), or releases; and the
// text of an error never matters (F-H05).
func TestErrorsAreKnownByCodeWhateverTheTextSays(t *testing.T) {
	e := open(t, mutex.SQLite)
	for _, c := range []struct {
		dialect mutex.Dialect
		err     error
		class   mutex.Class
	}{
		{mutex.Postgres, pgError("40001"), mutex.ClassRolledBack},
		{mutex.Postgres, pgError("40P01"), mutex.ClassRolledBack},
		{mutex.Postgres, pgError("55P03"), mutex.ClassBusy},
		{mutex.Postgres, pgError("23505"), mutex.ClassDuplicate},
		{mutex.Postgres, pgError("08006"), mutex.ClassLost},
		{mutex.Postgres, pgError("57P01"), mutex.ClassLost},
		{mutex.Postgres, pgError("25P02"), mutex.ClassAborted},
		{mutex.Postgres, pgError("25006"), mutex.ClassReadOnly},
		{mutex.Postgres, pgError("42P01"), mutex.ClassSchema},
		{mutex.Postgres, pgError("25P04"), mutex.ClassLost},
		{mutex.Postgres, pgError("53100"), mutex.ClassExhausted},
		{mutex.Postgres, pgError("53300"), mutex.ClassExhausted},
		{mutex.Postgres, pgError("22012"), mutex.ClassOther},
		{mutex.MySQL, &myError{Number: 1205}, mutex.ClassBusy},
		{mutex.MySQL, &myError{Number: 3572}, mutex.ClassBusy},
		{mutex.MySQL, &myError{Number: 1213}, mutex.ClassRolledBack},
		{mutex.MySQL, &myError{Number: 1062}, mutex.ClassDuplicate},
		{mutex.MySQL, &myError{Number: 1290}, mutex.ClassReadOnly},
		{mutex.MySQL, &myError{Number: 1146}, mutex.ClassSchema},
		{mutex.MySQL, &myError{Number: 3101}, mutex.ClassRolledBack},
		{mutex.MySQL, &myError{Number: 1021}, mutex.ClassExhausted},
		{mutex.MySQL, &myError{Number: 1040}, mutex.ClassExhausted},
		{mutex.SQLite, codeError(5), mutex.ClassBusy},
		{mutex.SQLite, codeError(261), mutex.ClassBusy},
		{mutex.SQLite, codeError(517), mutex.ClassRolledBack},
		{mutex.SQLite, codeError(2067), mutex.ClassDuplicate},
		{mutex.SQLite, codeError(13), mutex.ClassExhausted},
		{mutex.Postgres, io.ErrUnexpectedEOF, mutex.ClassLost},
		{mutex.MySQL, errors.New("Deadlock found when trying to get lock"), mutex.ClassOther},
	} {
		if got := mutex.Classify(c.dialect, fmt.Errorf("wrapped: %w", errors.Join(errors.New("x"), c.err))); got != c.class {
			t.Errorf("%v %#v: %v, want %v", c.dialect, c.err, got, c.class)
		}
	}
	e.row("a")
	calls := 0
	m := e.mutex(mutex.Config{Classify: func(error) mutex.Class { calls++; return mutex.ClassRolledBack },
		Tables: mutex.Tables{Mutex: "no_such_table"}})
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictRelease)
	if calls < 3 {
		t.Errorf("tried %d times", calls)
	}
}

type pgError string

func (e pgError) Error() string    { return "Unsinn" }
func (e pgError) SQLState() string { return string(e) }

type myError struct{ Number uint16 }

func (e *myError) Error() string { return "nonsens" }

type codeError int

func (e codeError) Error() string { return "bêtise" }
func (e codeError) Code() int     { return int(e) }

// The commit is given up after its timeout, not waited for.
func TestCommitHasADeadline(t *testing.T) {
	e := open(t, mutex.SQLite)
	e.row("a")
	m := e.mutexOn(&stuckStore{Store: e.store()}, mutex.Config{CommitTimeout: 50 * time.Millisecond})
	is(t, run(t, m, e.effect(nil), delivery("a")), longshore.VerdictRelease)
}

type stuckStore struct{ mutex.Store }

func (s *stuckStore) Begin(ctx context.Context) (mutex.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	return &stuckTx{Tx: tx}, err
}

type stuckTx struct{ mutex.Tx }

func (t *stuckTx) Commit(ctx context.Context) error {
	<-ctx.Done()
	return errors.Join(ctx.Err(), t.Rollback(ctx))
}
