//go:build unix

package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/effects"
	"github.com/longshore-go/longshore/internal/testkit/history"
)

// effectsVariable tells a consuming process the prefix of its tables.
const effectsVariable = "LONGSHORE_JEPSEN_EFFECTS"

// pairVariable names a PostgreSQL and its synchronous standby, where there is one.
const pairVariable = "PG_PAIR"

func database() string { return cmp.Or(os.Getenv(pairVariable), os.Getenv("PG_DSN")) }

// failOver crashes the database and promotes its standby.
func failOver(ctx context.Context) error {
	if err := command(ctx, script, "kill", "postgres-a"); err != nil {
		return err
	}
	env, err := environment(ctx, "postgres-b")
	if err != nil {
		return err
	}
	db, err := sql.Open("pgx", env["PG_NODE_DSN"])
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the promotion was answered
	var done bool
	if err := db.QueryRowContext(ctx, "SELECT pg_promote(true, 30)").Scan(&done); err != nil {
		return err
	}
	if !done {
		return errors.New("the standby was not promoted within 30 s")
	}
	return nil
}

// newEffects makes the tables in the PostgreSQL that scripts/brokers run has started.
func newEffects(ctx context.Context) (*effects.Table, error) {
	return effects.Create(ctx, database(), fmt.Sprintf("jepsen_%d_", time.Now().UnixMilli()))
}

// openEffects opens them in a consuming process, with the middleware that makes them single.
func openEffects() (*effects.Table, longshore.Middleware, error) {
	return effects.Open(database(), os.Getenv(effectsVariable), nil)
}

// writeEffects writes how often each guarded message had its effect: 0 for one that has none.
func writeEffects(ctx context.Context, t *effects.Table, h *history.Writer, folder string) error {
	counts := map[string]int64{}
	events, err := history.Read(folder)
	if err != nil {
		return err
	}
	for _, one := range events {
		if one.Kind == history.Published && guarded(one.Key) {
			counts[one.ID] = 0
		}
	}
	all, err := t.All(ctx)
	if err != nil {
		return err
	}
	for _, one := range all {
		counts[one.ID]++
	}
	for id, n := range counts {
		h.Add(history.Event{Kind: history.Effects, ID: id, N: n})
	}
	return nil
}
