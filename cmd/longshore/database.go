package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"github.com/spf13/cobra"
	_ "modernc.org/sqlite" // the driver

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/cli"
	"github.com/longshore-go/longshore/middleware/mutex"
)

var errNoDatabase error = &cli.UsageError{Text: "no database", Hint: "give --db URL or set LONGSHORE_DB"}

// database is the flags of verbs that need the tables of the mutex.
type database struct {
	url    string
	tables mutex.Tables
}

// flags offers --db, but the password belongs into LONGSHORE_DB: a command line is visible to every
// process of the host.
func (db *database) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&db.url, "db", "", "database `URL` (default from LONGSHORE_DB): postgres://…, mysql://user@host:port/name, sqlite:FILE")
	db.names(cmd)
}

func (db *database) names(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&db.tables.Mutex, "mutex-table", "", "mutex table (default longshore_mutex)")
	f.StringVar(&db.tables.ID, "mutex-id", "", "its id column (default id)")
	f.StringVar(&db.tables.CreatedAt, "mutex-created", "", "its column with the time of creation, - for none (default created_at)")
	f.StringVar(&db.tables.Outbox, "outbox-table", "", "outbox table (default longshore_outbox)")
	f.StringVar(&db.tables.Shards, "relay-table", "", "relay table (default longshore_relay)")
}

// open reads the URL. The password belongs into LONGSHORE_DB, or into the files that the
// drivers know: a command line is seen by everybody on the host.
func (db *database) open(env func(string) (string, bool)) (*sql.DB, mutex.Dialect, error) {
	raw := db.raw(env)
	scheme, rest, _ := strings.Cut(raw, ":")
	switch scheme {
	case "postgres", "postgresql":
		if err := postgresTLS(raw); err != nil {
			return nil, 0, err
		}
		pool, err := sql.Open("pgx", raw)
		return pool, mutex.Postgres, err
	case "mysql", "mariadb":
		dsn, err := mysqlDSN(raw)
		if err != nil {
			return nil, 0, err
		}
		pool, err := sql.Open("mysql", dsn)
		return pool, mutex.MySQL, err
	case "sqlite":
		pool, err := sql.Open("sqlite", "file:"+rest+"?mode=rw&_pragma=busy_timeout(10000)&_txlock=immediate")
		return pool, mutex.SQLite, err
	case "":
		return nil, 0, errNoDatabase
	}
	return nil, 0, &cli.UsageError{Text: "the database URL has the unknown scheme " + quote(scheme), Hint: "use postgres://, mysql:// or sqlite:FILE"}
}

// raw is the URL of --db or LONGSHORE_DB.
func (db *database) raw(env func(string) (string, bool)) string {
	if db.url == "" && env != nil {
		v, _ := env("LONGSHORE_DB")
		return v
	}
	return db.url
}

// ping says what is wrong with the database before anything else is asked.
func ping(ctx context.Context, a *app, db *sql.DB, from *database) error {
	if text := clearDatabase(from.raw(a.streams.Env)); text != "" {
		a.print.Notef("warning: %s", text)
	}
	ctx, cancel := a.bounded(ctx)
	defer cancel()
	err := db.PingContext(ctx)
	if err == nil {
		return nil
	}
	text := strings.Join(strings.Fields(err.Error()), " ") // pgx writes a line for each attempt
	return &cli.CodeError{Code: cli.ExitUnreachable, Err: &longshore.Error{Code: longshore.CodeUnreachable, Op: "connect to the database",
		Err: errors.New(text), Hint: "check --db or LONGSHORE_DB: host, port, user, password and name"}}
}

// mysqlDSN turns a URL into the driver's own format, so that all databases are named alike.
func mysqlDSN(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", &cli.UsageError{Text: "the database URL cannot be read", Hint: "write mysql://user@host:3306/name"} // err would show the password
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	if err := mysqlParameters(u.RawQuery); err != nil {
		return "", err
	}
	dsn := cfg.FormatDSN()
	if u.RawQuery != "" {
		dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(dsn[strings.LastIndexByte(dsn, '/'):], "?")] + u.RawQuery
	}
	if _, err := mysql.ParseDSN(dsn); err != nil { // err would show the password
		return "", &cli.UsageError{Text: "the parameters of the database URL cannot be used", Hint: "they are those of github.com/go-sql-driver/mysql, for example ?tls=true"}
	}
	return dsn, nil
}
