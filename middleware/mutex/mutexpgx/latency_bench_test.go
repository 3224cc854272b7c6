package mutexpgx_test

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/brokertest"
	"github.com/longshore-go/longshore/internal/testkit/faultproxy"
	"github.com/longshore-go/longshore/middleware/mutex"
)

const (
	farWorkers = 50
	perRound   = 2000
)

// BenchmarkFarDatabase is that of package mutex, by pgx alone: beginning and taking the
// row are one round trip.
func BenchmarkFarDatabase(b *testing.B) {
	for _, inserts := range []int{1, 3} {
		b.Run(fmt.Sprint("inserts=", inserts), func(b *testing.B) {
			e := open(b)
			e.away(b)
			m := e.mutex(mutex.Config{})
			own := func(string) error {
				return pgx.BeginTxFunc(context.Background(), e.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
					for range inserts {
						if _, err := tx.Exec(context.Background(), "INSERT INTO "+e.effects+" (id) VALUES ('x')"); err != nil {
							return err
						}
					}
					return nil
				})
			}
			h := longshore.HandlerFunc(func(ctx context.Context, _ *longshore.Delivery) error {
				for range inserts {
					if err := e.write(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			with := func(id string) error { return m.Wrap(h).Handle(context.Background(), delivery(id)) }
			var without, behind time.Duration
			round(b, 2*perRound, own) // connections and statements
			for b.Loop() {
				e.exec("INSERT INTO " + e.tables.Mutex + " (id) SELECT g FROM generate_series(0, " + fmt.Sprint(perRound-1) + ") g")
				without += round(b, perRound, own)
				behind += round(b, perRound, with)
			}
			b.ReportMetric(float64(without)/float64(behind), "ratio")
			b.ReportMetric(float64(b.N*perRound)/behind.Seconds(), "tx/s")
		})
	}
}

// away puts a proxy before the database that takes 1 ms in each direction.
func (e *env) away(b *testing.B) {
	b.Helper()
	u, err := url.Parse(brokertest.PG(b))
	if err != nil {
		b.Fatal("PG_DSN is no URL")
	}
	p := faultproxy.New(b, u.Host)
	p.Latency(time.Millisecond)
	u.Host = p.Addr()
	cfg, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		b.Fatal(err)
	}
	cfg.MaxConns = farWorkers + 1
	pool, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	near := e.pool
	e.pool = pool
	b.Cleanup(func() {
		pool.Close()
		e.pool = near
	})
}

// round does n transactions by 50 workers and returns how long that took.
func round(b *testing.B, n int, f func(id string) error) time.Duration {
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
