package mutex

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Check is called when the container subscribes. It refuses manual settling, tables
// that are missing, an id without a unique index and a database that takes no
// writes, and warns of a pool that is too small. A database that cannot be reached
// is only warned of: deliveries are released until it can.
func (m *Mutex) Check(ctx context.Context, f longshore.Facts) error {
	if f.Manual {
		return &longshore.Error{Code: longshore.CodeConfig, Op: "mutex in a container with manual settling", Source: f.Container,
			Err: errors.New("the handler would settle before the commit"), Hint: "use container.SettleAuto"}
	}
	if m.checked.Load() {
		return nil
	}
	m.warnPool(f)
	ctx, cancel := context.WithTimeout(ctx, m.cfg.LockTimeout)
	defer cancel()
	err := m.checkDatabase(ctx)
	switch m.class(err) {
	case ClassOther:
		var e *longshore.Error
		if errors.As(err, &e) {
			return err
		}
		if err != nil {
			m.cfg.Logger.Warn("mutex tables not checked", logs.Failure(err)...)
			return nil
		}
		m.checked.Store(true)
		return nil
	case ClassSchema:
		return &longshore.Error{Code: longshore.CodeNotFound, Op: "mutex: look at the tables", Source: f.Container, Err: err,
			Hint: "create them: longshore mutex ddl --dialect " + m.sql.dialect.String()}
	case ClassReadOnly:
		return readOnly(f.Container, err)
	default:
		m.cfg.Logger.Warn("mutex tables not checked", logs.Failure(err)...)
		return nil
	}
}

func readOnly(source string, err error) error {
	return &longshore.Error{Code: longshore.CodeRefused, Op: "mutex: the database takes no writes", Source: source, Err: err,
		Hint: "connect to the primary"}
}

// warnPool: handlers that only use their transaction get along with fewer
// connections, one after the other; those that also ask the pool need them all.
func (m *Mutex) warnPool(f longshore.Facts) {
	if limit := m.store.MaxConns(); limit > 0 && limit < f.WorkersMax+1 {
		m.cfg.Logger.Warn("database pool smaller than workers + 1", zap.String("help", "enlarge it: handlers wait for connections, and one that asks the pool for a second can wait in vain"),
			zap.String("container", f.Container), zap.Int("pool", limit), zap.Int("workers", f.WorkersMax))
	}
}

func (m *Mutex) checkDatabase(ctx context.Context) error {
	tx, err := m.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	n := m.cfg.Tables.in(m.sql.dialect)
	nothing := func(func(...any) error) error { return nil }
	if m.cfg.Mode == Lock {
		if err := tx.Query(ctx, nothing, fmt.Sprintf("SELECT %s FROM %s WHERE 1 = 0", n.ID, n.Mutex)); err != nil {
			return err
		}
		if err := m.checkIndex(ctx, tx); err != nil {
			return err
		}
	}
	if m.cfg.inbox() {
		if err := tx.Query(ctx, nothing, fmt.Sprintf("SELECT consumer, id, at FROM %s WHERE 1 = 0", n.Inbox)); err != nil {
			return err
		}
	}
	return m.checkServer(ctx, tx)
}

// uniqueIndex counts the unique indexes that begin with the column. Without one the
// lock on one row holds up others (InnoDB locks what it scans).
func uniqueIndex(d Dialect) string {
	switch d {
	case Postgres:
		return `SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = to_regclass($1) AND i.indisunique AND lower(a.attname) = lower($2)`
	case MySQL:
		return `SELECT count(*) FROM information_schema.statistics WHERE table_schema = database() AND table_name = ?
AND lower(column_name) = lower(?) AND seq_in_index = 1 AND non_unique = 0`
	case SQLite:
		return `SELECT (SELECT count(*) FROM pragma_table_info(?1) WHERE lower(name) = lower(?2) AND pk = 1)
+ (SELECT count(*) FROM pragma_index_list(?1) l, pragma_index_info(l.name) c WHERE l."unique" AND c.seqno = 0 AND lower(c.name) = lower(?2))`
	}
	return ""
}

func (m *Mutex) checkIndex(ctx context.Context, tx Tx) error {
	t := m.cfg.Tables.defaults()
	table := t.Mutex
	if m.sql.dialect == Postgres { // to_regclass wants the name as statements have it
		table = m.cfg.Tables.in(m.sql.dialect).Mutex
	}
	indexes := 0
	err := tx.Query(ctx, func(scan func(...any) error) error { return scan(&indexes) }, uniqueIndex(m.sql.dialect), table, t.ID)
	if err != nil || indexes > 0 {
		return err
	}
	e := &longshore.Error{Code: longshore.CodeMismatch, Op: "mutex: table " + t.Mutex, Source: t.Mutex,
		Err:  fmt.Errorf("no unique index begins with column %s", t.ID),
		Hint: "create one, or set Config.NoUniqueIndex: without an index a lock on one row holds up others"}
	if !m.cfg.NoUniqueIndex {
		return e
	}
	if m.sql.dialect != MySQL {
		return nil
	}
	err = tx.Query(ctx, func(scan func(...any) error) error { return scan(&indexes) }, strings.Replace(uniqueIndex(MySQL), " AND non_unique = 0", "", 1), table, t.ID)
	if err != nil || indexes > 0 {
		return err
	}
	e.Err, e.Hint = fmt.Errorf("no index begins with column %s", t.ID), "create one: InnoDB locks every row that it reads"
	return e
}

// checkServer looks for a standby and for settings that matter.
func (m *Mutex) checkServer(ctx context.Context, tx Tx) error {
	var standby bool
	switch m.sql.dialect {
	case Postgres:
		var idle string
		err := tx.Query(ctx, func(scan func(...any) error) error { return scan(&standby, &idle) },
			"SELECT pg_is_in_recovery(), current_setting('idle_in_transaction_session_timeout')")
		if err == nil && idle == "0" {
			m.cfg.Logger.Warn("idle_in_transaction_session_timeout is 0", zap.String("help", "set it to the handler's timeout + 30 s: a row stays locked for as long as a lost connection is not noticed"))
		}
		if err != nil || !standby {
			return err
		}
	case MySQL:
		var engine *string
		err := tx.Query(ctx, func(scan func(...any) error) error { return scan(&standby, &engine) },
			"SELECT @@read_only, (SELECT engine FROM information_schema.tables WHERE table_schema = database() AND table_name = ?)", m.cfg.Tables.Mutex)
		if err != nil {
			return err
		}
		if engine != nil && *engine != "InnoDB" {
			return &longshore.Error{Code: longshore.CodeMismatch, Op: "mutex: table " + m.cfg.Tables.Mutex, Source: m.cfg.Tables.Mutex,
				Err: fmt.Errorf("engine %s has no row locks", *engine), Hint: "use ENGINE=InnoDB"}
		}
	case SQLite: // a file that cannot be written says so at the first claim
	}
	if standby {
		return readOnly("", errors.New("it is a standby"))
	}
	return nil
}
