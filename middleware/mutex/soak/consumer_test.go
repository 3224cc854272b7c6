package soak

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/container"
	"github.com/longshore-go/longshore/middleware/mutex"
)

const workers = 8

// consume is a consumer's whole life, usually ended by SIGKILL.
func consume(ctx context.Context, p *plan) error {
	db, err := p.open(workers + 1)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ledger, err := os.OpenFile(p.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = ledger.Close() }()
	src, err := p.source(p.Proxy, p.Queue)
	if err != nil {
		return err
	}
	cfg := container.Config{
		Logger: zap.NewNop(), Workers: container.Workers{Min: workers, Max: workers}, WaitForBroker: true,
		Redelivery:   container.Redelivery{MaxAttempts: 3, Backoff: container.Backoff{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond}},
		DeadLetter:   container.DeadLetter{To: p.dead()},
		Reopen:       container.Backoff{Initial: 50 * time.Millisecond, Max: time.Second},
		DrainTimeout: 5 * time.Second,
	}
	till := &till{p: p, db: db, ledger: ledger}
	cfg.Middleware = []longshore.Middleware{longshore.MiddlewareFunc(till.note("delivered"))}
	if !p.Naked {
		once, err := p.mutex(db)
		if err != nil {
			return err
		}
		cfg.Middleware = append(cfg.Middleware, once)
	}
	c, err := container.New(src, longshore.HandlerFunc(till.pay), cfg)
	if err != nil {
		return err
	}
	if err = c.Run(ctx); ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // told to stop while it still started
	}
	return err
}

// till is where effects happen.
type till struct {
	p      *plan
	db     *sql.DB
	ledger *os.File
}

func (t *till) note(what string) func(longshore.Handler) longshore.Handler {
	return func(next longshore.Handler) longshore.Handler {
		return longshore.HandlerFunc(func(ctx context.Context, d *longshore.Delivery) error {
			if _, err := fmt.Fprintln(t.ledger, what, string(d.Body)); err != nil {
				return err
			}
			return next.Handle(ctx, d)
		})
	}
}

// pay leaves one row: two of a message would be seen.
func (t *till) pay(ctx context.Context, d *longshore.Delivery) error {
	id := string(d.Body)
	if _, err := fmt.Fprintln(t.ledger, "run", id); err != nil {
		return err
	}
	if err := t.insert(ctx, id); err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(rand.IntN(8)) * time.Millisecond): //nolint:gosec // no secret
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch {
	case t.p.Healthy:
		return nil
	case t.p.poisoned(id):
		return errors.New("this order cannot be paid")
	case chance(50):
		return errors.New("the bank says no")
	case chance(50):
		return longshore.Release(errors.New("the bank is closed"), 10*time.Millisecond)
	}
	return nil
}

func (t *till) insert(ctx context.Context, id string) error {
	query := t.p.bind("INSERT INTO " + t.p.effects() + " (id) VALUES ($1)")
	if t.p.Naked {
		_, err := t.db.ExecContext(ctx, query, id)
		return err
	}
	tx, err := mutex.TxFrom(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, query, id)
	return err
}
