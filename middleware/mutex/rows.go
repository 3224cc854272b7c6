package mutex

import (
	"context"
	"fmt"
	"time"
)

// Row is a mutex row that is still there.
type Row struct {
	ID string
	// Age is how old it is; 0 where the table has no such column.
	Age time.Duration
	// Locked says whether an open transaction has it. Unknown on databases that do
	// not tell without taking the lock.
	Locked Found
	// Outbox says whether the message is still to be published; Unknown without an outbox.
	Outbox Found
	// Holder is who has it locked, as the database says: process, application, address.
	Holder string
}

// Rows returns mutex rows older than age, the oldest first, at most limit, without
// locking any. With ids only these. Errors are the database's.
func (m *Mutex) Rows(ctx context.Context, age time.Duration, limit int, ids ...string) (rows []Row, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*m.cfg.LockTimeout)
	defer cancel()
	tx, err := m.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	s := m.rowsQuery(age, limit, ids)
	err = tx.Query(ctx, func(scan func(...any) error) error {
		var r Row
		var seconds float64
		var locked, outbox int
		var holder *string
		if err := scan(&r.ID, &seconds, &locked, &outbox, &holder); err != nil {
			return err
		}
		r.Age = time.Duration(seconds * float64(time.Second))
		r.Locked, r.Outbox = Found(locked), Found(outbox) //nolint:gosec // 0 to 2
		if holder != nil {
			r.Holder = *holder
		}
		rows = append(rows, r)
		return nil
	}, s.query, s.args...)
	return rows, err
}

// ageOf is an expression for the age of created_at in seconds.
func ageOf(d Dialect, column string) string {
	switch d {
	case Postgres:
		return "CAST(extract(epoch FROM clock_timestamp() - m." + column + ") AS double precision)"
	case MySQL:
		return "timestampdiff(MICROSECOND, m." + column + ", current_timestamp(6)) / 1000000.0"
	case SQLite:
		return "(julianday('now') - julianday(m." + column + ")) * 86400.0"
	}
	return "0.0"
}

func (m *Mutex) rowsQuery(age time.Duration, limit int, ids []string) statement {
	d, n := m.sql.dialect, m.cfg.Tables.in(m.sql.dialect)
	seconds := "0.0"
	if n.CreatedAt != "-" {
		seconds = "coalesce(" + ageOf(d, n.CreatedAt) + ", 0.0)"
	}
	locked, holder, join := "0", "NULL", ""
	if d == Postgres { // who has the row is in it: its xmax is the transaction
		locked = "CASE WHEN l.pid IS NULL THEN 1 ELSE 2 END"
		holder = "concat_ws(' ', l.pid::text, a.application_name, host(a.client_addr), a.state)"
		join = ` LEFT JOIN pg_locks l ON l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.transactionid = m.xmax
LEFT JOIN pg_stat_activity a ON a.pid = l.pid`
	}
	outbox := "0"
	if m.cfg.HasOutbox {
		id := "m." + n.ID
		if d == Postgres {
			id += "::text"
		}
		outbox = fmt.Sprintf("CASE WHEN EXISTS (SELECT 1 FROM %s o WHERE o.id = %s) THEN 2 ELSE 1 END", n.Outbox, id)
	}
	s := statement{query: fmt.Sprintf("SELECT m.%s, %s, %s, %s, %s FROM %s m%s", n.ID, seconds, locked, outbox, holder, n.Mutex, join)}
	if len(ids) > 0 {
		for _, id := range ids {
			s.args = append(s.args, id)
		}
		s.query += fmt.Sprintf(" WHERE m.%s IN (%s)", n.ID, d.args(1, len(ids)))
	} else if n.CreatedAt != "-" {
		// A row without a time is shown: its age is unknown.
		s.query += fmt.Sprintf(" WHERE (%s >= %s OR m.%s IS NULL)", seconds, d.arg(1), n.CreatedAt)
		s.args = append(s.args, age.Seconds())
		s.query += " ORDER BY 2 DESC"
	}
	s.query += fmt.Sprintf(" LIMIT %d", limit)
	return s
}
