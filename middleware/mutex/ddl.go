package mutex

import (
	"errors"
	"fmt"
	"strings"
)

// shardCount is how many parts an outbox has. It is in the tables, so it is not an option:
// relays that disagreed about it would leave rows to no relay.
const shardCount = 8

// DDL returns the statements that create the tables: for the mutex, for the outbox
// and its relays, and for the inbox. Leave out unused parts. Nothing in this
// package ever creates a table by itself.
//
// Error: names that are none, and a sequence on SQLite.
func DDL(d Dialect, t Tables) (string, error) {
	if err := errors.Join(checkDialect(d), t.defaults().check(), checkSequence(d, t)); err != nil {
		return "", err
	}
	return strings.Join(statementsOf(d, t), ";\n\n") + ";\n", nil
}

// DropDDL returns the statements that remove what [DDL] creates, with all that is in it.
// Errors: names that are none.
func DropDDL(d Dialect, t Tables) (string, error) {
	if err := errors.Join(checkDialect(d), t.defaults().check(), checkSequence(d, t)); err != nil {
		return "", err
	}
	n := t.in(d)
	var out []string
	for _, table := range []string{n.Mutex, n.Outbox, n.Shards, n.Inbox} {
		out = append(out, "DROP TABLE "+table)
	}
	if n.Sequence != "" {
		out = append(out, "DROP SEQUENCE "+n.Sequence)
	}
	return strings.Join(out, ";\n") + ";\n", nil
}

func checkSequence(d Dialect, t Tables) error {
	if t.Sequence != "" && d == SQLite {
		return errors.New("Tables.Sequence: SQLite has no sequences; leave it empty")
	}
	return nil
}

func statementsOf(d Dialect, t Tables) []string {
	n := t.in(d)
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch d {
	case Postgres:
		add(pgMutex, n.Mutex, n.ID, column(n, "timestamptz NOT NULL DEFAULT clock_timestamp()"))
		add(pgOutbox, n.Outbox)
		add("CREATE INDEX %s ON %s (shard, seq)", t.index(d, n.Outbox, "next"), n.Outbox)
		add("CREATE INDEX %s ON %s (msg_key, seq) WHERE attempts > 0", t.index(d, n.Outbox, "poison"), n.Outbox)
		add("CREATE UNIQUE INDEX %s ON %s (id)", t.index(d, n.Outbox, "id"), n.Outbox)
		add("CREATE TABLE %s (\n  shard smallint PRIMARY KEY,\n  owner varchar(64),\n  until bigint NOT NULL DEFAULT 0\n)", n.Shards)
		add("CREATE TABLE %s (\n  consumer varchar(64) NOT NULL,\n  id varchar(128) NOT NULL,\n  at bigint NOT NULL,\n  PRIMARY KEY (consumer, id)\n)", n.Inbox)
	case MySQL:
		add(myMutex, n.Mutex, n.ID, column(n, "datetime(6) NOT NULL DEFAULT current_timestamp(6)"))
		add(myOutbox, n.Outbox)
		add("CREATE TABLE %s (\n  shard smallint PRIMARY KEY,\n  owner varchar(64),\n  until bigint NOT NULL DEFAULT 0\n) ENGINE=InnoDB", n.Shards)
		add(myInbox, n.Inbox)
	case SQLite:
		add("CREATE TABLE %s (\n  %s TEXT PRIMARY KEY NOT NULL%s\n) WITHOUT ROWID", n.Mutex, n.ID,
			column(n, "TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now'))"))
		add(liteOutbox, n.Outbox)
		add("CREATE INDEX %s ON %s (shard, seq)", t.index(d, n.Outbox, "next"), n.Outbox)
		add("CREATE INDEX %s ON %s (msg_key, seq) WHERE attempts > 0", t.index(d, n.Outbox, "poison"), n.Outbox)
		add("CREATE TABLE %s (\n  shard INTEGER PRIMARY KEY,\n  owner TEXT,\n  until INTEGER NOT NULL DEFAULT 0\n)", n.Shards)
		add("CREATE TABLE %s (\n  consumer TEXT NOT NULL,\n  id TEXT NOT NULL,\n  at INTEGER NOT NULL,\n  PRIMARY KEY (consumer, id)\n)", n.Inbox)
	}
	if d != MySQL {
		add("CREATE INDEX %s ON %s (consumer, at)", t.index(d, n.Inbox, "at"), n.Inbox)
	}
	switch {
	case n.Sequence == "":
	case d == MySQL: // MariaDB only
		add("CREATE SEQUENCE %s NOCYCLE", n.Sequence)
	default:
		add("CREATE SEQUENCE %s NO CYCLE", n.Sequence)
	}
	for i := range shardCount {
		add("INSERT INTO %s (shard) VALUES (%d)", n.Shards, i)
	}
	return out
}

// column is the definition of created_at behind that of the id.
func column(n Tables, definition string) string {
	if n.CreatedAt == "-" {
		return ""
	}
	return ",\n  " + n.CreatedAt + " " + definition
}

// The mutex table has rows for a moment only: vacuum must not wait for a fifth of it.
const pgMutex = `CREATE TABLE %s (
  %s varchar(64) PRIMARY KEY%s
) WITH (autovacuum_vacuum_scale_factor = 0.02)`

const pgOutbox = `CREATE TABLE %s (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id varchar(64) NOT NULL,
  dest varchar(255) NOT NULL,
  msg_key varchar(64),
  shard smallint NOT NULL,
  meta text NOT NULL,
  body bytea,
  created_at bigint NOT NULL,
  due_at bigint NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  last_error varchar(500)
) WITH (autovacuum_vacuum_scale_factor = 0.02)`

const myMutex = `CREATE TABLE %s (
  %s varchar(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY%s
) ENGINE=InnoDB`

const myOutbox = `CREATE TABLE %s (
  seq bigint AUTO_INCREMENT PRIMARY KEY,
  id varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  dest varchar(255) CHARACTER SET utf8mb4 NOT NULL,
  msg_key varchar(64) CHARACTER SET ascii COLLATE ascii_bin,
  shard smallint NOT NULL,
  meta mediumtext CHARACTER SET ascii NOT NULL,
  body longblob,
  created_at bigint NOT NULL,
  due_at bigint NOT NULL,
  attempts int NOT NULL DEFAULT 0,
  last_error varchar(500) CHARACTER SET utf8mb4,
  UNIQUE KEY (id),
  KEY (shard, seq),
  KEY (msg_key, seq)
) ENGINE=InnoDB`

const myInbox = `CREATE TABLE %s (
  consumer varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  id varchar(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (consumer, id),
  KEY (consumer, at)
) ENGINE=InnoDB`

const liteOutbox = `CREATE TABLE %s (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  dest TEXT NOT NULL,
  msg_key TEXT,
  shard INTEGER NOT NULL,
  meta TEXT NOT NULL,
  body BLOB,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT
)`
