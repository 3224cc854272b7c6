package faults

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// sentNotes is a publisher that notes what it was given.
type sentNotes struct {
	mu  sync.Mutex
	ids []string
}

func (s *sentNotes) Publish(_ context.Context, _ string, msgs ...*longshore.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range msgs {
		s.ids = append(s.ids, string(m.Body))
	}
	return nil
}

func (s *sentNotes) Close(context.Context) error { return nil }

// F-H01: what was rolled back is never published, also when it is the commit that
// fails, after all of the handler's statements went well.
func TestCommitThatFailsPublishesNothing(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ddl, err := mutex.DDL(mutex.SQLite, mutex.Tables{})
	if err != nil {
		t.Fatal(err)
	}
	// A foreign key that is looked at by the commit.
	if _, err := db.ExecContext(t.Context(), ddl+`
CREATE TABLE customers (id TEXT PRIMARY KEY);
CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT REFERENCES customers DEFERRABLE INITIALLY DEFERRED);
INSERT INTO customers (id) VALUES ('known')`); err != nil {
		t.Fatal(err)
	}
	sent := &sentNotes{}
	outbox, err := mutex.NewOutbox(mutex.SQL(db, mutex.SQLite), sent, mutex.OutboxConfig{})
	if err != nil {
		t.Fatal(err)
	}
	order := func(id, customer string) error {
		return outbox.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO orders (id, customer) VALUES (?, ?)`, id, customer)
			return errors.Join(err, outbox.Add(ctx, tx, "orders", &longshore.Message{Key: []byte(id), Body: []byte(id)}))
		})
	}
	if err := order("1", "nobody"); err == nil {
		t.Fatal("the commit of an order of nobody did not fail")
	}
	if err := order("2", "known"); err != nil {
		t.Fatal(err)
	}
	if err := outbox.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent.mu.Lock()
	defer sent.mu.Unlock()
	if !slices.Equal(sent.ids, []string{"2"}) {
		t.Errorf("published %v, committed [2]", sent.ids)
	}
}
