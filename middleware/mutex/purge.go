package mutex

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/internal/logs"
)

// purgeRows is so few that deleting them takes some milliseconds: that is how long a
// row of the inbox can be locked.
const purgeRows = 500

// Purge removes what the inbox need not remember any more for Config.Consumer, a few
// rows at a time so that no lock lasts. It returns how many rows went. Errors are the
// database's; what went before one is gone. A [Purger] calls it by itself.
func (m *Mutex) Purge(ctx context.Context) (rows int64, err error) {
	if !m.cfg.inbox() {
		return 0, nil
	}
	for {
		n, err := m.purgeSome(ctx)
		rows += n
		if err != nil || n < purgeRows {
			return rows, err
		}
	}
}

func (m *Mutex) purgeSome(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	tx, err := m.store.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	n, err := tx.Exec(ctx, m.sql.purge, m.cfg.Consumer, m.cfg.Retention.Milliseconds(), purgeRows)
	if err != nil {
		return 0, err
	}
	return n, tx.Commit(ctx)
}

// Purger purges the inbox again and again. It is a component of a lifecycle.Manager;
// any number of instances may have one.
type Purger struct {
	m     *Mutex
	loops background
}

// Purger returns the component that keeps the inbox small: soon after its start and
// every Config.PurgeEvery it calls Purge. Without an inbox it does nothing.
func (m *Mutex) Purger() *Purger { return &Purger{m: m} }

// Name is "inbox purger".
func (p *Purger) Name() string { return "inbox purger" }

// Phase is that of relays: before containers.
func (p *Purger) Phase() int { return 200 }

// Start begins to work and returns at once; a database that is away is tried again at
// the next time. Starting twice does nothing. It returns nil.
func (p *Purger) Start(ctx context.Context) error {
	p.loops.start(ctx, 1, func(ctx context.Context, _ int) { p.loop(ctx) })
	return nil
}

// Stop ends a purge that is running between two portions and returns, with ctx's error
// if that takes longer than ctx allows.
func (p *Purger) Stop(ctx context.Context) error { return p.loops.stop(ctx) }

func (p *Purger) loop(ctx context.Context) {
	// Instances that are started together should not purge together, and a start has
	// other things to do first.
	var failing logs.Alarm
	wait := p.m.cfg.PurgeEvery/60 + time.Duration(rand.Int64N(int64(p.m.cfg.PurgeEvery/60)+1)) //nolint:gosec // jitter
	for {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		began := time.Now()
		rows, err := p.m.Purge(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if stands, due := failing.Raise(time.Now()); due {
				p.m.cfg.Logger.Warn("inbox not purged", append(logs.Failure(err), zap.Int64("rows", rows), zap.Duration("retry_in", p.m.cfg.PurgeEvery), logs.Repeated(stands))...)
			}
		default:
			p.purged(&failing, rows, time.Since(began))
		}
		wait = p.m.cfg.PurgeEvery
	}
}

// purged writes the line about a purge that worked; the first one after failures has their level.
func (p *Purger) purged(failing *logs.Alarm, rows int64, took time.Duration) {
	facts := []zap.Field{zap.Int64("rows", rows), zap.Duration("took", took)}
	if ended, due := failing.Over(time.Now()); due {
		p.m.cfg.Logger.Warn("inbox purged again", append(facts, ended...)...)
	} else if rows > 0 {
		p.m.cfg.Logger.Info("inbox purged", facts...)
	}
}
