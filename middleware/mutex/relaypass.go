package mutex

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore/internal/backoff"
)

// passed is what one pass over a shard found.
type passed struct {
	locked bool // another owner works on it
	taken  int
	sent   *sending
}

// pass takes the next rows of a shard, publishes them, waits for the confirms and
// removes what was confirmed, all under the lock of the shard. Nothing remembers how
// far it came: a transaction that commits late with a low number is found as well.
func (o *Outbox) pass(ctx context.Context, shard int, relayed bool) (p passed, err error) {
	if o.sql.dialect == SQLite {
		return o.passByLease(ctx, shard, relayed)
	}
	life, end := context.WithTimeout(ctx, o.passLimit())
	defer end()
	tx, err := o.store.Begin(life)
	if err != nil {
		return p, err
	}
	defer func() { _ = tx.Rollback(life) }()
	found := false
	err = o.limited(life, func(ctx context.Context) error {
		return tx.Query(ctx, func(func(...any) error) error { found = true; return nil }, o.sql.lockShard, shard)
	})
	if err != nil || !found {
		p.locked = err == nil || Classify(o.sql.dialect, err) == ClassBusy
		if p.locked {
			err = nil
		}
		return p, err
	}
	n, err := o.next(life, tx, shard, relayed)
	if err != nil || n.taken() == 0 {
		return p, err
	}
	p.taken, p.sent = n.taken(), o.sendMarked(life, n.due, relayed)
	if err := o.settle(life, tx, p.sent, n); err != nil {
		return p, err
	}
	return p, tx.Commit(life)
}

// portion is the next rows in a shard.
type portion struct {
	due    []*record
	fresh  []*record // seen for the first time: their grace begins
	broken []*record // cannot be read
}

func (n *portion) taken() int { return len(n.due) + len(n.fresh) + len(n.broken) }

// passLimit bounds a pass: a wave for each row of a single key, at the worst.
func (o *Outbox) passLimit() time.Duration { return 2*o.cfg.PublishTimeout + endTimeout }

func (o *Outbox) limited(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	return fn(ctx)
}

// next reads rows that are due and, for a relay, those that have no due time yet.
func (o *Outbox) next(ctx context.Context, tx Tx, shard int, relayed bool) (n portion, err error) {
	from := int64(0)
	if relayed {
		from = -int64(maxGrace / time.Millisecond)
	}
	var rs []*record
	err = o.limited(ctx, func(ctx context.Context) error {
		return tx.Query(ctx, scanRecords(&rs, &n.broken), o.sql.due, shard, from, o.cfg.Batch)
	})
	for _, r := range rs {
		if r.due < 0 {
			n.fresh = append(n.fresh, r)
		} else {
			n.due = append(n.due, r)
		}
	}
	return n, err
}

// sendMarked notifies consumers that this may be a second copy, if it may.
func (o *Outbox) sendMarked(ctx context.Context, rs []*record, relayed bool) *sending {
	for _, r := range rs {
		if relayed || r.attempts > 0 {
			r.msg.Headers.Set(HeaderRelayed, true)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*o.cfg.PublishTimeout)
	defer cancel()
	return o.send(ctx, rs)
}

// settle removes confirmed rows and delays refused ones. A row that was removed meanwhile
// stays removed: both statements then change nothing.
func (o *Outbox) settle(ctx context.Context, tx Tx, s *sending, n portion) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if len(s.done) > 0 {
		del := o.sql.deleteSeqs(s.done)
		if _, err := tx.Exec(ctx, del.query, del.args...); err != nil {
			return err
		}
	}
	for r, cause := range s.refused {
		if err := o.refused(ctx, tx, r, cause); err != nil {
			return err
		}
	}
	for _, r := range n.broken {
		o.cfg.Logger.Error("outbox row cannot be read: parked", zap.String("mutex_id", r.id))
		if _, err := tx.Exec(ctx, o.sql.parked, "cannot be read: the meta column was changed", r.seq); err != nil {
			return err
		}
	}
	if len(n.fresh) > 0 { // last: their publisher may want to remove them
		stamp := o.sql.stamp(n.fresh)
		if _, err := tx.Exec(ctx, stamp.query, stamp.args...); err != nil {
			return err
		}
	}
	return nil
}

// refused spaces the next attempt of a row, or parks the row.
func (o *Outbox) refused(ctx context.Context, tx Tx, r *record, cause error) error {
	n := r.attempts + 1
	if n >= o.cfg.MaxAttempts {
		o.cfg.Logger.Error("outbox row parked: the broker refuses it", zap.String("mutex_id", r.id), zap.String("to", r.dest), zap.Int("attempts", n))
		_, err := tx.Exec(ctx, o.sql.parked, clip(cause.Error()), r.seq)
		return err
	}
	policy := backoff.Policy{Initial: o.cfg.RetryDelay, Max: max(maxRetryDelay, o.cfg.RetryDelay), Multiplier: 2}
	_, err := tx.Exec(ctx, o.sql.failed, policy.Delay(n, 0).Milliseconds(), clip(cause.Error()), r.seq)
	return err
}

// clip cuts a text to what the column holds, at a character's edge.
func clip(s string) string {
	const limit = 500
	r := []rune(s)
	if len(r) > limit {
		return string(r[:limit])
	}
	return s
}

// passByLease is pass without a transaction during the publishing: SQLite would keep
// every writer out. A relay that dies keeps its shard until the lease is over.
func (o *Outbox) passByLease(ctx context.Context, shard int, relayed bool) (p passed, err error) {
	var next portion
	owner := newID()
	err = o.inShort(ctx, func(ctx context.Context, tx Tx) error {
		n, err := tx.Exec(ctx, o.sql.lockShard, owner, o.passLimit().Milliseconds(), shard, owner)
		if err != nil || n == 0 {
			p.locked = err == nil
			return err
		}
		next, err = o.next(ctx, tx, shard, relayed)
		return err
	})
	if err != nil || p.locked {
		if Classify(o.sql.dialect, err) == ClassBusy {
			return passed{locked: true}, nil
		}
		return p, err
	}
	p.taken, p.sent = next.taken(), o.sendMarked(ctx, next.due, relayed)
	return p, o.inShort(context.WithoutCancel(ctx), func(ctx context.Context, tx Tx) error {
		free := fmt.Sprintf("UPDATE %s SET until = 0 WHERE shard = ? AND owner = ?", o.sql.names.Shards)
		if _, err := tx.Exec(ctx, free, shard, owner); err != nil {
			return err
		}
		return o.settle(ctx, tx, p.sent, next)
	})
}

func (o *Outbox) inShort(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	tx, err := o.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if err := fn(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
