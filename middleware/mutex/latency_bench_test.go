package mutex_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/middleware/mutex"
)

// What the mutex costs where the database is 2 ms away, 50 workers: the same handler
// in a transaction of its own and behind the mutex, round by round in turn, so that
// whatever else the machine does meets both. "ratio" is the rate with the mutex by the
// rate without it.
//
//	go test -run '^$' -bench Far -benchtime 10x ./middleware/mutex/...
func BenchmarkFarDatabase(b *testing.B) {
	for _, inserts := range []int{1, 3} {
		b.Run(fmt.Sprint("inserts=", inserts), func(b *testing.B) {
			e := far(b)
			m := e.mutex(mutex.Config{})
			h := longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
				var err error
				for range inserts {
					err = errors.Join(err, e.write(ctx, d.ID))
				}
				return err
			})
			own := func(id string) error { return e.ownTransaction(id, inserts) }
			with := func(id string) error { return m.Wrap(h).Handle(context.Background(), delivery(id)) }
			var without, behind time.Duration
			e.round(b, 2*perRound, own) // connections and statements
			for n := 0; b.Loop(); n++ {
				e.exec("INSERT INTO " + e.tables.Mutex + " (id) SELECT g FROM generate_series(0, " + fmt.Sprint(perRound-1) + ") g")
				without += e.round(b, perRound, own)
				behind += e.round(b, perRound, with)
			}
			b.ReportMetric(float64(without)/float64(behind), "ratio")
			b.ReportMetric(float64(b.N*perRound)/behind.Seconds(), "tx/s")
		})
	}
}

const (
	farWorkers = 50
	perRound   = 2000
)

// far is PostgreSQL behind a proxy that takes 1 ms in each direction.
func far(b *testing.B) *env {
	b.Helper()
	u, err := url.Parse(brokertest.PG(b))
	if err != nil {
		b.Fatal("PG_DSN is no URL")
	}
	e := open(b, mutex.Postgres)
	p := faultproxy.New(b, u.Host)
	p.Latency(time.Millisecond)
	u.Host = p.Addr()
	e.dsn = u.String()
	e.db = e.connect()
	e.db.SetMaxOpenConns(farWorkers + 1)
	e.db.SetMaxIdleConns(farWorkers + 1)
	return e
}

// round does n transactions by 50 workers and returns how long that took.
func (e *env) round(b *testing.B, n int, f func(id string) error) time.Duration {
	b.Helper()
	ids := make(chan int, n)
	for i := range n {
		ids <- i
	}
	close(ids)
	began := time.Now()
	var group sync.WaitGroup
	for range farWorkers {
		group.Go(func() {
			for i := range ids {
				if err := f(fmt.Sprint(i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	group.Wait()
	return time.Since(began)
}

func (e *env) ownTransaction(id string, inserts int) error {
	tx, err := e.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	for range inserts {
		if _, err := tx.ExecContext(context.Background(), e.bind("INSERT INTO "+e.effects+" (id, n) VALUES (?, 1)"), id); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}
