//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/testkit/effects"
	"github.com/longshore-go/longshore/internal/testkit/history"
)

// effectsVariable tells a consuming process the prefix of its tables.
const effectsVariable = "LONGSHORE_JEPSEN_EFFECTS"

// newEffects makes the tables in the PostgreSQL that scripts/brokers run has started.
func newEffects(ctx context.Context) (*effects.Table, error) {
	return effects.Create(ctx, os.Getenv("PG_DSN"), fmt.Sprintf("jepsen_%d_", time.Now().UnixMilli()))
}

// openEffects opens them in a consuming process, with the middleware that makes them single.
func openEffects() (*effects.Table, longshore.Middleware, error) {
	return effects.Open(os.Getenv("PG_DSN"), os.Getenv(effectsVariable), nil)
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
