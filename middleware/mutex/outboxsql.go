package mutex

import "fmt"

type outboxSQL struct {
	dialect Dialect
	names   Tables

	lockShard string // does not wait
	due       string // rows of a shard that may be sent, and those without a due time yet
	busy      string // shards with such rows
	failed    string
	parked    string
	backlog   string
}

type statement struct {
	query string
	args  []any
}

const recordColumns = "seq, id, dest, msg_key, shard, meta, body, attempts, due_at"

func outboxSQLFor(d Dialect, t Tables, passParked bool) outboxSQL {
	n := t.in(d)
	s := outboxSQL{dialect: d, names: n}
	// No message overtakes a refused row of the same key. There are few of those, and an index
	// of them alone where the dialect has such.
	parked := ""
	if passParked {
		parked = fmt.Sprintf(" AND p.due_at < %d", parkedDue)
	}
	s.due = fmt.Sprintf(`SELECT %s FROM %s o WHERE shard = %s AND due_at >= %s AND due_at <= %s
AND (msg_key IS NULL OR NOT EXISTS (SELECT 1 FROM %[2]s p WHERE p.attempts > 0 AND p.msg_key = o.msg_key AND p.seq < o.seq%[6]s))
ORDER BY seq`, recordColumns, n.Outbox, d.arg(1), d.arg(2), d.now(), parked)
	s.due += " LIMIT " + d.arg(3)
	s.busy = fmt.Sprintf("SELECT shard FROM %s s WHERE EXISTS (SELECT 1 FROM %s o WHERE o.shard = s.shard AND o.due_at <= %s)",
		n.Shards, n.Outbox, d.now())
	failed := "UPDATE %s SET attempts = attempts + 1, due_at = %s, last_error = %s WHERE seq = %s"
	s.failed = fmt.Sprintf(failed, n.Outbox, d.now()+" + "+d.arg(1), d.arg(2), d.arg(3))
	s.parked = fmt.Sprintf(failed, n.Outbox, fmt.Sprint(parkedDue), d.arg(1), d.arg(2))
	s.backlog = fmt.Sprintf("SELECT count(*), coalesce(sum(CASE WHEN due_at >= %d THEN 1 ELSE 0 END), 0), coalesce(%s - min(created_at), 0) FROM %s",
		parkedDue, d.now(), n.Outbox)
	switch d {
	case Postgres:
		s.lockShard = "SELECT shard FROM " + n.Shards + " WHERE shard = $1 FOR UPDATE SKIP LOCKED"
	case MySQL:
		s.lockShard = "SELECT shard FROM " + n.Shards + " WHERE shard = " + d.arg(1) + " FOR UPDATE NOWAIT"
	case SQLite: // a lease instead: a lock would keep all writers out while the broker confirms
		s.lockShard = fmt.Sprintf("UPDATE %s SET owner = ?, until = %[2]s + ? WHERE shard = ? AND (until < %[2]s OR owner = ?)", n.Shards, d.now())
	}
	return s
}

// insert is one statement for both rows where the dialect can, so that a message costs
// one round trip.
func (s *outboxSQL) insert(noMutex bool, r *record, due int64) []statement {
	columns := "(id, dest, msg_key, shard, meta, body, due_at, created_at)"
	args := []any{r.id, r.dest, keyText(r.msg.Key), r.shard, encode(r.msg), r.msg.Body, due}
	outbox := fmt.Sprintf("INSERT INTO %s %s VALUES (%s, %s)", s.names.Outbox, columns, s.dialect.args(1, len(args)), s.dialect.now())
	if noMutex {
		return []statement{{outbox, args}}
	}
	// The time is written although our own tables have a default: an existing table may not.
	mutexColumns, now := s.names.ID, ""
	if s.names.CreatedAt != "-" {
		mutexColumns, now = mutexColumns+", "+s.names.CreatedAt, ", "+s.dialect.timestamp()
	}
	mutex := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s%s)", s.names.Mutex, mutexColumns, s.dialect.arg(1), now)
	if s.dialect == Postgres { // the id twice: the two columns may have different types
		mutex = fmt.Sprintf("INSERT INTO %s (%s) VALUES ($%d%s)", s.names.Mutex, mutexColumns, len(args)+1, now)
		return []statement{{"WITH m AS (" + mutex + ") " + outbox, append(args, r.id)}}
	}
	return []statement{{mutex, []any{r.id}}, {outbox, args}}
}

// stamp gives rows their due time: the grace that they carry begins when they are first
// seen, which is never before their commit.
func (s *outboxSQL) stamp(rs []*record) statement {
	values := make([]any, len(rs))
	for i, r := range rs {
		values[i] = r.seq
	}
	st := s.in(fmt.Sprintf("UPDATE %s SET due_at = %s - due_at", s.names.Outbox, s.dialect.now()), "seq", values)
	st.query += " AND due_at < 0"
	return st
}

// in is a statement about several rows.
func (s *outboxSQL) in(head, column string, values []any) statement {
	return statement{fmt.Sprintf("%s WHERE %s IN (%s)", head, column, s.dialect.args(1, len(values))), values}
}

func (s *outboxSQL) deleteSeqs(rs []*record) statement {
	values := make([]any, len(rs))
	for i, r := range rs {
		values[i] = r.seq
	}
	return s.in("DELETE FROM "+s.names.Outbox, "seq", values)
}

func (s *outboxSQL) deleteIDs(rs []*record) statement {
	values := make([]any, len(rs))
	for i, r := range rs {
		values[i] = r.id
	}
	return s.in("DELETE FROM "+s.names.Outbox, "id", values)
}

func (s *outboxSQL) byIDs(ids []string) statement {
	values := make([]any, len(ids))
	for i, id := range ids {
		values[i] = id
	}
	return s.in("SELECT "+recordColumns+" FROM "+s.names.Outbox, "id", values)
}

// scanRecords reads rows of recordColumns.
func scanRecords(into *[]*record, broken *[]*record) func(func(...any) error) error {
	return func(scan func(...any) error) error {
		r := &record{}
		var key *string
		var meta string
		var body []byte
		if err := scan(&r.seq, &r.id, &r.dest, &key, &r.shard, &meta, &body, &r.attempts, &r.due); err != nil {
			return err
		}
		if key != nil {
			r.key = *key
		}
		var err error
		if r.msg, err = decode(meta, body); err != nil {
			*broken = append(*broken, r)
			return nil
		}
		*into = append(*into, r)
		return nil
	}
}
