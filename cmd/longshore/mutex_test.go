package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/memory"
	"github.com/longshore-go/longshore/transport/urls"
)

func TestMutexDDL(t *testing.T) {
	for _, d := range []string{"postgres", "mariadb", "sqlite"} {
		got := world{}.run(t, "mutex", "ddl", "--dialect", d, "--mutex-table", "RABBITMQ_MUTEX", "--mutex-id", "MUTEX")
		if got.code != 0 || !strings.Contains(got.out, "CREATE TABLE RABBITMQ_MUTEX") || !strings.Contains(got.out, "longshore_outbox") {
			t.Errorf("%s: %+v", d, got)
		}
	}
	for _, args := range [][]string{{"mutex", "ddl"}, {"mutex", "ddl", "--dialect", "oracle"}, {"mutex"}, {"mutex", "ddl", "--dialect", "sqlite", "--mutex-table", "a b"}} {
		if got := (world{}).run(t, args...); got.code != 2 {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// A database that nobody answers for is told with what to check, on one line, and
// without its password. F-J01
func TestDatabaseThatCannotBeReached(t *testing.T) {
	w, _, _ := shop(t)
	for _, db := range []string{"postgres://u:canary@127.0.0.1:1/x", "mysql://u:canary@127.0.0.1:1/x", "sqlite:/absent/x.db"} {
		for _, verb := range []string{"doctor", "relay"} {
			got := w.run(t, verb, "orders", "--db", db)
			if got.code != 6 || !strings.Contains(got.err, "error[unreachable]: connect to the database: ") || !strings.Contains(got.err, "check --db") ||
				strings.Contains(got.err, `\t`) || strings.Contains(got.err, "canary") {
				t.Errorf("%s %s: %+v", verb, db, got)
			}
		}
	}
}

// shop is a database with the tables of the mutex, and queues "orders" and "dead".
func shop(t *testing.T) (world, *memory.Broker, *sql.DB) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ddl, err := mutex.DDL(mutex.SQLite, mutex.Tables{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), ddl); err != nil {
		t.Fatal(err)
	}
	b := memory.New(memory.Config{})
	b.Declare("orders", "dead")
	w := world{env: map[string]string{"LONGSHORE_DB": "sqlite:" + file}, source: func(target string, _ urls.Options) (transport.Source, error) {
		return b.Queue(target, memory.QueueConfig{}), nil
	}}
	return w, b, db
}

func put(t *testing.T, b *memory.Broker, queue string, ids ...string) {
	t.Helper()
	pub, err := b.Publisher(memory.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		m := &longshore.Message{Body: []byte(id), Headers: longshore.Headers{{Name: mutex.HeaderMutex, Value: id}}}
		if err := pub.Publish(t.Context(), queue, m); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDoctorExplainsAndApplies(t *testing.T) {
	w, b, db := shop(t)
	for _, id := range []string{"failed", "queued", "orphan"} {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO longshore_mutex (id) VALUES (?)", id); err != nil {
			t.Fatal(err)
		}
	}
	put(t, b, "dead", "failed", "done", "")
	put(t, b, "orders", "queued", "copy")
	args := []string{"doctor", "orders", "--dead", "dead", "--older", "0s", "--again", "1ms", "--outbox"}
	got := w.run(t, append(args, "--json")...)
	var res doctorResult
	if err := json.Unmarshal([]byte(got.out), &res); err != nil || got.code != 1 {
		t.Fatalf("%v %+v", err, got)
	}
	states := map[string]string{}
	for _, f := range res.Findings {
		states[f.ID] = f.State + " " + f.Action
	}
	want := map[string]string{"failed": "failed rerun", "queued": "queued wait", "orphan": "orphan investigate", "done": "copy-done delete", "copy": "copy-waiting investigate"}
	for id, state := range want {
		if states[id] != state {
			t.Errorf("%s: %q, want %q", id, states[id], state)
		}
	}
	if len(states) != len(want) || b.Inspect("dead").Ready != 3 {
		t.Errorf("%v, %+v", states, b.Inspect("dead"))
	}
	if got := w.run(t, append(args, "--apply")...); !strings.Contains(got.out, "rerun 1, deleted 1") {
		t.Errorf("%+v", got)
	}
	if strings.Join(bodies(t, b, "dead"), " ") != ":" || strings.Join(bodies(t, b, "orders"), " ") != ":queued :copy :failed" {
		t.Errorf("%q, %q", bodies(t, b, "dead"), bodies(t, b, "orders"))
	}
	if got := w.run(t, "doctor", "orders", "--dead", "dead", "--id", "nobody", "--again", "0s"); got.code != 0 || !strings.Contains(got.out, "Nothing is outstanding") {
		t.Errorf("%+v", got)
	}
}

func TestDoctorAndRelayNameWhatIsMissing(t *testing.T) {
	w, _, _ := shop(t)
	for want, args := range map[string][]string{
		"no database":     {"doctor", "orders", "--db", ""},
		"unknown scheme":  {"relay", "orders", "--db", "odbc:x"},
		"needs --dead":    {"doctor", "mem://orders", "--apply"},
		"TARGET":          {"relay"},
		"no such table":   {"relay", "orders", "--outbox-table", "absent"},
		"at least 1":      {"doctor", "orders", "--limit", "0"},
		"cannot be read":  {"relay", "orders", "--db", "mysql://user:secret@host:bad/x"},
		"mutex ddl print": {"relay", "orders", "--outbox-table", "absent"},
	} {
		v := w
		if want == "no database" {
			v.env = nil
		}
		got := v.run(t, args...)
		if got.code == 0 || !strings.Contains(got.err, want) || strings.Contains(got.err, "secret") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestRelayOnceSendsAllAndEnds(t *testing.T) {
	w, b, db := shop(t)
	o, err := mutex.NewOutbox(mutex.SQL(db, mutex.SQLite), nil, mutex.OutboxConfig{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	err = o.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
		return o.Add(ctx, tx, "orders", &longshore.Message{Body: []byte("a")}, &longshore.Message{Key: []byte("k"), Body: []byte("b")})
	})
	if err != nil {
		t.Fatal(err)
	}
	got := w.run(t, "relay", "orders", "--once")
	if got.code != 0 || got.out != "published 2, refused 0\n" || b.Inspect("orders").Ready != 2 {
		t.Errorf("%+v, %+v", got, b.Inspect("orders"))
	}
}
