package mutex

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/internal/logs"
)

// Flush publishes what a committed transaction of your own has added, by the ids in
// the messages' mutex header; ids that are not (or no more) in the outbox are left
// out. It is best effort: what fails is left to the relay. Errors: the database's, or
// [longshore.CodeState] without a publisher.
func (o *Outbox) Flush(ctx context.Context, ids ...string) error {
	if o.pub == nil {
		return &longshore.Error{Code: longshore.CodeState, Op: "flush the outbox", Err: errors.New("it has no publisher"), Hint: "give NewOutbox one, or leave it to the relay"}
	}
	for len(ids) > 0 {
		n := min(len(ids), o.cfg.Batch)
		rs, err := o.load(ctx, ids[:n])
		if err != nil {
			return err
		}
		o.publishNow(ctx, rs)
		ids = ids[n:]
	}
	return nil
}

func (o *Outbox) load(ctx context.Context, ids []string) (rs []*record, err error) {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	tx, err := o.store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var broken []*record // the relay parks them
	s := o.sql.byIDs(ids)
	return rs, tx.Query(ctx, scanRecords(&rs, &broken), s.query, s.args...)
}

// publishNow publishes rows that are committed. Those with a key go through their
// shard, as a relay does it, so that their order is kept.
func (o *Outbox) publishNow(ctx context.Context, rs []*record) {
	if o.direct() == nil {
		o.relay.wake()
		return
	}
	var free []*record
	shards := map[int]bool{}
	for _, r := range rs {
		if r.key != "" {
			shards[r.shard] = true
		} else {
			free = append(free, r)
		}
	}
	failed := false
	if err := o.publishFree(ctx, free); err != nil {
		failed = true
		o.leftToRelay(err, zap.Int("messages", len(free)))
	}
	for shard := range shards {
		if err := o.publishShard(ctx, shard); err != nil {
			failed = true
			o.leftToRelay(err, zap.Int("shard", shard))
		}
	}
	if failed || len(rs) == 0 {
		return
	}
	if ended, due := o.left.Over(time.Now()); due {
		o.cfg.Logger.Warn("published after the commit again", ended...)
	}
}

// leftToRelay is logged once a minute: while a broker is away every transaction ends so.
func (o *Outbox) leftToRelay(err error, what zap.Field) {
	if stands, due := o.left.Raise(time.Now()); due {
		o.cfg.Logger.Warn("not published after the commit; the relay will", append(logs.Failure(err), what, logs.Repeated(stands))...)
	}
}

func (o *Outbox) publishFree(ctx context.Context, rs []*record) error {
	if len(rs) == 0 {
		return nil
	}
	sent := o.send(ctx, rs)
	if len(sent.done) > 0 {
		if err := o.markSent(ctx, sent.done); err != nil {
			return err // the relay sends them again, and the copies are absorbed
		}
	}
	for _, err := range sent.refused {
		return err
	}
	return sent.err
}

func (o *Outbox) markSent(ctx context.Context, rs []*record) error {
	return o.inShort(ctx, func(ctx context.Context, tx Tx) error {
		s := o.sql.deleteIDs(rs)
		_, err := tx.Exec(ctx, s.query, s.args...)
		return err
	})
}

// publishShard works on a shard until nothing is due in it. If another owner does so,
// that one may have looked before our commit: look again when it is free.
func (o *Outbox) publishShard(ctx context.Context, shard int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 25 {
		p, err := o.pass(ctx, shard, false)
		if err == nil && p.sent != nil {
			err = p.sent.err // the broker is away: trying again is the relay's work
		}
		if err != nil {
			return err
		}
		switch {
		case p.locked:
		case p.taken == o.cfg.Batch:
			continue
		default:
			return nil
		}
		if o.relay.running() {
			o.relay.wake()
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
