package mutex

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Relay publishes what was committed and not published: after a crash, after the
// broker was away, and everything that is left to it. Any number of relays may work
// on the same tables. It is a component of a lifecycle.Manager.
type Relay struct {
	o     *Outbox
	awake chan struct{}

	loops background

	published, refused, failures atomic.Int64

	failing logs.Alarm // rounds fail: the broker or the database is away
}

func newRelay(o *Outbox) *Relay { return &Relay{o: o, awake: make(chan struct{}, 1)} }

// Name is "outbox relay".
func (r *Relay) Name() string { return "outbox relay" }

// Phase is that of relays: after publishers, before containers.
func (r *Relay) Phase() int { return 200 }

// StopBudget is how long Stop can take: a publishing that is under way is waited for.
func (r *Relay) StopBudget() time.Duration { return r.o.cfg.PublishTimeout + endTimeout }

// Start begins to work and returns at once; a database or broker that is away is
// tried again. Starting twice does nothing. Error: [longshore.CodeState] without a
// publisher.
func (r *Relay) Start(ctx context.Context) error {
	if r.o.pub == nil {
		return &longshore.Error{Code: longshore.CodeState, Op: "start the outbox relay", Err: errors.New("it has no publisher"), Hint: "give NewOutbox one"}
	}
	r.loops.start(ctx, r.o.cfg.Relays, r.loop)
	return nil
}

// Stop lets the running batches end and returns, with ctx's error if that takes longer
// than ctx allows.
func (r *Relay) Stop(ctx context.Context) error { return r.loops.stop(ctx) }

func (r *Relay) running() bool { return r.loops.running() }

// wake ends an idle pause.
func (r *Relay) wake() {
	select {
	case r.awake <- struct{}{}:
	default:
	}
}

// loop works on shard after shard, and pauses longer and longer while there is nothing
// to do or the broker is away.
func (r *Relay) loop(ctx context.Context, nth int) {
	pause := r.o.cfg.Poll
	for ctx.Err() == nil {
		worked, err := r.round(ctx, nth)
		switch {
		case err != nil:
			r.failures.Add(1)
			if ctx.Err() != nil {
				return // a stop, not a failure
			}
			if stands, due := r.failing.Raise(time.Now()); due {
				r.o.cfg.Logger.Warn("outbox relay failed", append(logs.Failure(err), zap.Duration("retry_in", pause), logs.Repeated(stands))...)
			}
		case worked:
			pause = r.o.cfg.Poll
			continue
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
			pause = min(2*pause, pollGrowth*r.o.cfg.Poll)
		case <-r.awake:
			if err == nil {
				pause = r.o.cfg.Poll
			}
		}
		t.Stop()
	}
}

// recovered ends the alarm of a relay that published, or found nothing left to publish.
func (r *Relay) recovered() {
	if ended, due := r.failing.Over(time.Now()); due {
		r.o.cfg.Logger.Warn("outbox relay works again", ended...)
	}
}

// round makes one pass over every shard that has something, starting at another one
// than its neighbours do.
func (r *Relay) round(ctx context.Context, nth int) (worked bool, err error) {
	shards, err := r.busy(ctx)
	if err != nil {
		return false, err
	}
	for i := range shards {
		if ctx.Err() != nil {
			return worked, nil
		}
		// A pass that has begun is ended: its confirms are worth waiting for.
		p, err := r.o.pass(context.WithoutCancel(ctx), shards[(i+nth*len(shards)/r.o.cfg.Relays)%len(shards)], true)
		if p.sent != nil {
			r.published.Add(int64(len(p.sent.done)))
			r.refused.Add(int64(len(p.sent.refused)))
			if err == nil {
				err = p.sent.err
			}
		}
		if err != nil {
			return worked, err
		}
		worked = worked || p.taken > 0
	}
	// A shard that another owner works on proves nothing: that owner may be failing.
	if worked || len(shards) == 0 {
		r.recovered()
	}
	return worked, nil
}

func (r *Relay) busy(ctx context.Context) (shards []int, err error) {
	return shards, r.o.inShort(ctx, func(ctx context.Context, tx Tx) error {
		return tx.Query(ctx, func(scan func(...any) error) error {
			var shard int
			if err := scan(&shard); err != nil {
				return err
			}
			shards = append(shards, shard)
			return nil
		}, r.o.sql.busy)
	})
}

// RelayStats counts what a [Relay] has done since it was made.
type RelayStats struct {
	Published, Refused int64 // messages
	Failures           int64 // passes that the database or the broker ended
}

// Stats returns the counts.
func (r *Relay) Stats() RelayStats {
	return RelayStats{Published: r.published.Load(), Refused: r.refused.Load(), Failures: r.failures.Load()}
}

// Backlog is what an outbox holds.
type Backlog struct {
	Pending int64         // all rows
	Parked  int64         // of these, refused for the last time
	Age     time.Duration // of the oldest row; 0 = none
}

// Backlog counts the rows of the outbox. Errors are the database's.
func (o *Outbox) Backlog(ctx context.Context) (b Backlog, err error) {
	err = o.inShort(ctx, func(ctx context.Context, tx Tx) error {
		return tx.Query(ctx, func(scan func(...any) error) error {
			var age int64
			if err := scan(&b.Pending, &b.Parked, &age); err != nil {
				return err
			}
			b.Age = max(time.Duration(age)*time.Millisecond, 0)
			return nil
		}, o.sql.backlog)
	})
	return b, err
}
