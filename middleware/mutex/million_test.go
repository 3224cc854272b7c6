package mutex_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore/middleware/mutex"
)

// rows is how many rows the tests with large tables use: LONGSHORE_ROWS=1000000 for
// the numbers in docs/reference/middleware/mutex.md.
func rows(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("LONGSHORE_ROWS"))
	if err != nil {
		return 20_000
	}
	return n
}

// No lock of a purge lasts: consumers whose rows are purged at the same moment wait
// for one portion at the most.
func TestPurgeOfALargeInboxHoldsNoLockForLong(t *testing.T) {
	e := open(t, mutex.Postgres)
	n := rows(t)
	e.exec(fmt.Sprintf("INSERT INTO %s (consumer, id, at) SELECT 'c', g::text, g FROM generate_series(1, %d) g", e.tables.Inbox, n))
	e.exec("ANALYZE " + e.tables.Inbox)
	s := &timedStore{Store: e.store()}
	m := e.mutexOn(s, mutex.Config{Mode: mutex.Inbox, Consumer: "c", Retention: 240 * time.Hour})
	began := time.Now()
	got, err := m.Purge(t.Context())
	if err != nil || got != int64(n) {
		t.Fatalf("%d, %v", got, err)
	}
	t.Logf("%d rows in %v, %d transactions, the longest %v", n, time.Since(began).Round(time.Millisecond), s.count, s.longest.Round(100*time.Microsecond))
	if s.count != n/500+1 {
		t.Errorf("%d transactions", s.count)
	}
	if n >= 1_000_000 && s.longest > 100*time.Millisecond {
		t.Errorf("a lock may have lasted %v", s.longest)
	}
}

// timedStore measures from the first statement of a transaction to its end: no lock of
// it lasts longer.
type timedStore struct {
	mutex.Store

	mu      sync.Mutex
	count   int
	longest time.Duration
}

func (s *timedStore) Begin(ctx context.Context) (mutex.Tx, error) {
	tx, err := s.Store.Begin(ctx)
	return &timedTx{Tx: tx, s: s, began: time.Now()}, err
}

type timedTx struct {
	mutex.Tx

	s     *timedStore
	began time.Time
}

func (t *timedTx) Commit(ctx context.Context) error {
	err := t.Tx.Commit(ctx)
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.count++
	t.s.longest = max(t.s.longest, time.Since(t.began))
	return err
}

// A relay finds the next rows by an index, whatever the size of the outbox, also when
// some are parked.
func TestRelayOfALargeOutboxUsesItsIndex(t *testing.T) {
	e := open(t, mutex.Postgres)
	n := rows(t)
	o := e.outbox(&sink{}, mutex.OutboxConfig{RelayOnly: true, NoMutex: true, Batch: 1000})
	e.add(o, message("first", "key"))
	e.exec(fmt.Sprintf(`INSERT INTO %[1]s (id, dest, msg_key, shard, meta, body, created_at, due_at, attempts)
SELECT g::text, dest, CASE WHEN g %% 2 = 0 THEN '=k' || g %% 1000 END, g %% 8, meta, body, created_at,
CASE WHEN g %% 100000 = 0 THEN 4503599627370496 ELSE 0 END, CASE WHEN g %% 100000 = 0 THEN 10 ELSE 0 END
FROM %[1]s, generate_series(1, %d) g`, e.tables.Outbox, n))
	e.exec("ANALYZE " + e.tables.Outbox)
	plan := e.plan(fmt.Sprintf(`SELECT seq, id, dest, msg_key, shard, meta, body, attempts FROM %[1]s o WHERE shard = 1 AND due_at <= 1
AND (msg_key IS NULL OR NOT EXISTS (SELECT 1 FROM %[1]s p WHERE p.attempts > 0 AND p.msg_key = o.msg_key AND p.seq < o.seq))
ORDER BY seq LIMIT 100`, e.tables.Outbox))
	if strings.Contains(plan, "Seq Scan on "+e.tables.Outbox+" o") {
		t.Error("it reads the whole table")
	}
	t.Log(plan)
	e.start(o)
	began, last := time.Now(), int64(0)
	for part := int64(1); part <= 4; part++ { // a growing time for the same part would be the size of the table
		eventually(t, "a quarter", func() bool { return o.Relay().Stats().Published >= part*int64(n)/5 })
		done := o.Relay().Stats().Published
		t.Logf("%d rows in %v", done-last, time.Since(began).Round(time.Millisecond))
		began, last = time.Now(), done
	}
}

func (e *env) plan(query string) string {
	e.t.Helper()
	out, err := e.db.QueryContext(context.Background(), "EXPLAIN (ANALYZE, COSTS OFF) "+query)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	var lines []string
	for out.Next() {
		var line sql.NullString
		if err := out.Scan(&line); err != nil {
			e.t.Fatal(err)
		}
		lines = append(lines, line.String)
	}
	if err := out.Err(); err != nil {
		e.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
