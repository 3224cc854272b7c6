package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/middleware/mutex"
	"github.com/longshore-go/longshore/transport"
)

// shop is a producer process: it inserts the orders that are missing, each with its
// message, and relays what an earlier producer has left behind.
type shop struct {
	p      *plan
	db     *sql.DB
	pub    transport.Publisher
	dest   string
	outbox *mutex.Outbox
}

const clerks = 6

func produce(ctx context.Context, p *plan) error {
	db, err := p.open(clerks + 6)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	pub, dest, err := p.publisher(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = pub.Close(context.WithoutCancel(ctx)) }()
	outbox, err := mutex.NewOutbox(p.store(db), pub, mutex.OutboxConfig{Tables: p.tables(), NoMutex: p.Naked, Grace: time.Second,
		PublishTimeout: time.Second, Logger: zap.NewNop()}) // on SQLite a killed relay keeps its shard for twice that and 5 s
	if err != nil {
		return err
	}
	relay := outbox.Relay()
	if err := relay.Start(ctx); err != nil {
		return err
	}
	s := &shop{p: p, db: db, pub: pub, dest: dest, outbox: outbox}
	s.sell(ctx)
	<-ctx.Done() // the relay has still to send what is left
	return relay.Stop(context.WithoutCancel(ctx))
}

// sell works on the missing numbers.
func (s *shop) sell(ctx context.Context) {
	missing := make(chan int)
	var group sync.WaitGroup
	for range clerks {
		group.Go(func() {
			for n := range missing {
				s.persist(ctx, n)
			}
		})
	}
	done := s.done(ctx)
	for n := 1; n <= s.p.Messages && ctx.Err() == nil; n++ {
		if !done[n] {
			missing <- n
		}
	}
	close(missing)
	group.Wait()
}

func (s *shop) done(ctx context.Context) map[int]bool {
	done := map[int]bool{}
	rows, err := s.db.QueryContext(ctx, "SELECT n FROM "+s.p.orders())
	if err != nil {
		fmt.Fprintln(os.Stderr, "producer:", err)
		return done // each number is looked for again
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var n int
		if rows.Scan(&n) == nil {
			done[n] = true
		}
	}
	if rows.Err() != nil {
		return nil
	}
	return done
}

// persist sells one order, whatever the database says: an answer may be lost.
func (s *shop) persist(ctx context.Context, n int) {
	for ctx.Err() == nil {
		var there int
		err := s.db.QueryRowContext(ctx, s.p.bind("SELECT count(*) FROM "+s.p.orders()+" WHERE n = $1"), n).Scan(&there)
		if err == nil && there > 0 {
			return
		}
		if err == nil {
			err = s.one(ctx, n)
		}
		if err == nil {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

var errChangedMind = errors.New("the customer has changed his mind")

func (s *shop) one(ctx context.Context, n int) error {
	if chance(50) {
		if err := s.order(ctx, n, s.message(fmt.Sprint("rolled-back-", n), n), errChangedMind); !errors.Is(err, errChangedMind) {
			return fmt.Errorf("a rollback ended with: %w", err)
		}
	}
	m := s.message(fmt.Sprint("m-", n), n)
	if err := s.order(ctx, n, m, nil); err != nil {
		return err
	}
	if chance(20) { // somebody publishes it once more
		return s.pub.Publish(ctx, s.dest, m)
	}
	return nil
}

func (s *shop) message(id string, n int) *longshore.Message {
	m := &longshore.Message{ID: id, Type: "order", Body: []byte(id)}
	if n%4 == 0 {
		m.Key = fmt.Append(nil, "customer-", n%80)
	}
	return m
}

func (s *shop) order(ctx context.Context, n int, m *longshore.Message, end error) error {
	return s.outbox.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, s.p.bind("INSERT INTO "+s.p.orders()+" (n) VALUES ($1)"), n); err != nil {
			return err
		}
		if err := s.outbox.Add(ctx, tx, s.dest, m); err != nil {
			return err
		}
		return end
	})
}

func chance(oneIn int) bool { return rand.IntN(oneIn) == 0 }
