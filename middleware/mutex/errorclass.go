package mutex

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
)

// Class is what an error of the database means here. It is found by SQLSTATE or
// number, never by text: texts depend on the server's language.
type Class uint8

// The classes.
const (
	// ClassOther: none of the others.
	ClassOther Class = iota
	// ClassBusy: another owner holds the row, or a table lock is in the way.
	ClassBusy
	// ClassRolledBack: the transaction was rolled back for certain (deadlock,
	// serialization failure); it may be tried again.
	ClassRolledBack
	// ClassDuplicate: the key exists.
	ClassDuplicate
	// ClassReadOnly: this server takes no writes (a replica, a standby).
	ClassReadOnly
	// ClassLost: the session is gone and what it did last is unknown.
	ClassLost
	// ClassAborted: the transaction failed before, and the handler hid that.
	ClassAborted
	// ClassSchema: a table or column is missing or not allowed.
	ClassSchema
	// ClassExhausted: the server is out of disk, memory or connections.
	ClassExhausted
	// ClassRefused: the server refuses the login.
	ClassRefused
)

// String returns the name of the class in lower case.
func (c Class) String() string {
	switch c {
	case ClassBusy:
		return "busy"
	case ClassRolledBack:
		return "rolled back"
	case ClassDuplicate:
		return "duplicate"
	case ClassReadOnly:
		return "read only"
	case ClassLost:
		return "lost"
	case ClassAborted:
		return "aborted"
	case ClassSchema:
		return "schema"
	case ClassExhausted:
		return "exhausted"
	case ClassRefused:
		return "refused"
	case ClassOther:
	}
	return "other"
}

// Classify reports what an error of the dialect's drivers means: pgx and lib/pq,
// go-sql-driver, modernc and mattn.
func Classify(d Dialect, err error) Class {
	if err == nil {
		return ClassOther
	}
	if c := classOf(d, err); c != ClassOther {
		return c
	}
	var network net.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ClassLost
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ClassOther // ours or the handler's, and a net.Error too
	case errors.As(err, &network):
		return ClassLost
	}
	return ClassOther
}

// classOf knows codes and what only a database driver returns. An end of file or an
// error of the network may as well come from a handler's decoder or HTTP client.
func classOf(d Dialect, err error) Class {
	if c := codeClass(d, err); c != ClassOther {
		return c
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return ClassLost
	}
	return ClassOther
}

func codeClass(d Dialect, err error) Class {
	switch d {
	case Postgres:
		if state, ok := sqlState(err); ok {
			return postgresClass(state)
		}
	case MySQL:
		if n, ok := fieldNumber(err, "Number"); ok {
			return mysqlClass(n)
		}
	case SQLite:
		if n, ok := codeNumber(err); ok {
			return sqliteClass(n)
		}
	}
	return ClassOther
}

func postgresClass(state string) Class {
	switch state {
	case "55P03":
		return ClassBusy
	case "40001", "40P01":
		return ClassRolledBack
	case "23505":
		return ClassDuplicate
	case "25006":
		return ClassReadOnly
	case "57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04":
		return ClassLost
	case "58000", "58030": // the server's own disk
		return ClassExhausted
	case "25P02":
		return ClassAborted
	case "42P01", "42703", "42501", "3F000", "3D000":
		return ClassSchema
	}
	if len(state) != 5 {
		return ClassOther
	}
	switch state[:2] {
	case "08":
		return ClassLost
	case "28":
		return ClassRefused
	case "53":
		return ClassExhausted
	}
	return ClassOther
}

func mysqlClass(n int64) Class {
	switch n {
	case 1205, 3572:
		return ClassBusy
	case 1213, 1020, 3101:
		return ClassRolledBack
	case 1062:
		return ClassDuplicate
	case 1290, 1792, 1836, 1047: // the last of a Galera node that is not in sync
		return ClassReadOnly
	case 2002, 2003, 2006, 2013, 2055, 1927, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1184, 4031:
		return ClassLost
	case 1044, 1045, 1129, 1130, 1698, 1862, 3118:
		return ClassRefused
	case 1305:
		return ClassAborted
	case 1146, 1054, 1142, 1049:
		return ClassSchema
	case 1021, 1037, 1038, 1040, 1041, 1114, 1203, 1226:
		return ClassExhausted
	}
	return ClassOther
}

func sqliteClass(n int64) Class {
	switch n {
	case 517: // the snapshot is old: waiting would not help
		return ClassRolledBack
	case 1555, 2067:
		return ClassDuplicate
	}
	switch n & 0xff {
	case 5, 6:
		return ClassBusy
	case 8:
		return ClassReadOnly
	case 1:
		return ClassSchema
	case 7, 10, 13, 14: // memory, disk, or the file is gone
		return ClassExhausted
	}
	return ClassOther
}
