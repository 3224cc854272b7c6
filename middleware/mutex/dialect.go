package mutex

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore-go/longshore"
)

// Dialect is a kind of database.
type Dialect uint8

// The dialects. MySQL is MariaDB too.
const (
	Postgres Dialect = iota + 1
	MySQL
	SQLite
)

// String returns the name that [ParseDialect] reads.
func (d Dialect) String() string {
	switch d {
	case Postgres:
		return "postgres"
	case MySQL:
		return "mysql"
	case SQLite:
		return "sqlite"
	}
	return ""
}

// ParseDialect reads postgres, mysql (also mariadb) or sqlite. Error:
// [longshore.CodeConfig].
func ParseDialect(name string) (Dialect, error) {
	switch strings.ToLower(name) {
	case "postgres", "postgresql":
		return Postgres, nil
	case "mysql", "mariadb":
		return MySQL, nil
	case "sqlite":
		return SQLite, nil
	}
	return 0, &longshore.Error{Code: longshore.CodeConfig, Op: fmt.Sprintf("dialect %.32q", name), Err: errors.New("is not known"),
		Hint: "use postgres, mysql (for MariaDB too) or sqlite"}
}

// arg is the n-th placeholder, counted from 1.
func (d Dialect) arg(n int) string {
	switch d {
	case Postgres:
		return "$" + strconv.Itoa(n)
	case MySQL, SQLite:
	}
	return "?"
}

// args is the placeholders from..from+n-1, separated by commas.
func (d Dialect) args(from, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.arg(from + i))
	}
	return b.String()
}

// now is an expression for the database's clock in Unix milliseconds. Times in tables
// are written and compared by this clock only: the machines that share a table need
// not agree on the time.
func (d Dialect) now() string {
	switch d {
	case Postgres:
		return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
	case MySQL:
		return "CAST(unix_timestamp(current_timestamp(3)) * 1000 AS SIGNED)"
	case SQLite:
	}
	return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
}

// timestamp is an expression for the time in a column of type timestamp, as the columns
// created_at of mutex tables are.
func (d Dialect) timestamp() string {
	switch d {
	case Postgres:
		return "clock_timestamp()"
	case MySQL:
		return "current_timestamp(6)"
	case SQLite:
	}
	return "strftime('%Y-%m-%dT%H:%M:%fZ','now')"
}

func (d Dialect) quote(name string) string {
	if d == MySQL {
		return "`" + name + "`"
	}
	return `"` + name + `"`
}
