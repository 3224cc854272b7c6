package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
	"go.uber.org/zap"
	_ "modernc.org/sqlite" // the driver

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// shop is the database: the inbox, and the table in which a second effect would be seen.
type shop struct {
	db      *sql.DB
	dialect mutex.Dialect
	tables  mutex.Tables
	effects string
}

func openShop(p place) (*shop, error) {
	db, err := sql.Open(p.Driver, p.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2*workers + 1)
	db.SetMaxIdleConns(2*workers + 1)
	s := &shop{db: db, dialect: mutex.SQLite, effects: p.Name + "_effects", tables: mutex.Tables{Mutex: p.Name + "_mutex",
		Outbox: p.Name + "_outbox", Shards: p.Name + "_relay", Inbox: p.Name + "_inbox"}}
	if p.Driver == "pgx" {
		s.dialect = mutex.Postgres
	}
	return s, nil
}

func (s *shop) close() error { return s.db.Close() }

func (s *shop) create(ctx context.Context) error {
	ddl, err := mutex.DDL(s.dialect, s.tables)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, ddl+"CREATE TABLE "+s.effects+" (id varchar(64) NOT NULL, broker varchar(16) NOT NULL)")
	return err
}

func (s *shop) drop(ctx context.Context) error {
	var errs []error
	for _, table := range []string{s.tables.Mutex, s.tables.Outbox, s.tables.Shards, s.tables.Inbox, s.effects} {
		_, err := s.db.ExecContext(ctx, "DROP TABLE "+table)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// inbox is the same on both brokers: by its Consumer the one knows what the other did.
func (s *shop) inbox() (*mutex.Mutex, error) {
	return mutex.New(mutex.SQL(s.db, s.dialect), mutex.Config{Mode: mutex.Inbox, Consumer: "shop", Retention: 14 * 24 * time.Hour,
		Tables: s.tables, BusyDelay: 50 * time.Millisecond, Logger: zap.NewNop()})
}

// handler is the one handler. Only what it leaves in the table knows the broker.
func (s *shop) handler(broker string) longshore.Handler {
	query := "INSERT INTO " + s.effects + " (id, broker) VALUES ($1, $2)"
	if s.dialect == mutex.SQLite {
		query = "INSERT INTO " + s.effects + " (id, broker) VALUES (?, ?)"
	}
	return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
		tx, err := mutex.TxFrom(ctx)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, query, string(d.Body), broker)
		return err
	})
}

func (s *shop) count(ctx context.Context) (effects, ids int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT count(*), count(DISTINCT id) FROM "+s.effects).Scan(&effects, &ids)
	return effects, ids, err
}

// wait waits until n ids have an effect.
func (s *shop) wait(ctx context.Context, n int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, ids, err := s.count(ctx)
		if err != nil || ids >= n {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d ids have an effect: %w", ids, n, ctx.Err())
		}
	}
}

func (s *shop) judge(ctx context.Context, out io.Writer, n size, killed int) error {
	effects, ids, err := s.count(ctx)
	if err != nil {
		return err
	}
	var byRabbit int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM "+s.effects+" WHERE broker = 'rabbitmq'").Scan(&byRabbit); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "%d ids, each on RabbitMQ and on Kafka, %d consumers killed: %d effects of %d ids, %d by RabbitMQ's copy, %d by Kafka's\n",
		n.ids, killed, effects, ids, byRabbit, effects-byRabbit); err != nil {
		return err
	}
	if effects != n.ids || ids != n.ids {
		return errors.New("not exactly one effect each")
	}
	return nil
}
