package amqp

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/amqp/internal/tags"
)

const (
	// After so many settlements, or this time, the writer asks the broker for an answer on
	// the same channel: what was written before it is confirmed by it. Without that, a
	// reset of the connection could take back any number of acks that were believed done.
	maxUnconfirmed = 512
	confirmEvery   = time.Second
)

// settlements is where the writer takes from what it writes.
type settlements interface {
	collect(b *tags.Batch, all bool) (more bool)
	finish(together bool, b *tags.Batch) (last lastWrites, ok bool)
	takeUrgent() bool
	unconfirmed() int
	confirm()
}

// upkeep is work on the channel that becomes due by time.
type upkeep interface {
	due() time.Time // zero: nothing is
	adjust(ctx context.Context) error
}

// settleWriter owns the channel of a consumer: its one goroutine writes settlements and
// runs the jobs that wait for an answer, in one order.
type settleWriter struct {
	ch         *consumeChannel      // the channel that it writes to
	held       settlements          // what is to be settled
	window     upkeep               // resized later than asked
	intake     context.Context      //nolint:containedctx // ends that work
	operations transport.Operations // times each write
	pause      time.Duration        // half of the longest time that an ack waits; 0: none waits

	wake <-chan struct{} // there is something to write
	gone <-chan struct{} // the channel is gone
	jobs chan *job       // calls that need the channel, between settlements
	quit chan struct{}   // closed: the writer closes the channel and leaves
	left chan struct{}   // closed: it has left
	once sync.Once       // closes quit

	batch   tags.Batch    // of the pass that is being written; reused
	backlog quorumBacklog // what the channel may keep for a slow queue
}

// job is something that the writer does between two passes.
type job struct {
	f    func() error // runs on the writer
	done chan error   // takes its error
}

// run is the writer's goroutine. It may hang in a call until the connection ends.
func (w *settleWriter) run() {
	defer close(w.left)
	w.loop()
	if w.ch.Channel != nil {
		_ = w.ch.Close()
	}
}

// do runs f on the writer's goroutine. If ctx ends first, f may still run.
func (w *settleWriter) do(ctx context.Context, f func() error) error {
	j := &job{f: f, done: make(chan error, 1)}
	select {
	case w.jobs <- j:
	case <-w.quit:
		return longshore.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop makes the writer close the channel and leave.
func (w *settleWriter) stop() { w.once.Do(func() { close(w.quit) }) }

// loop is the writer's goroutine: it alone writes settlements, so their order is the order of their
// tags, which one ack for many depends on.
func (w *settleWriter) loop() {
	linger, confirm, work := idleTimer(), idleTimer(), idleTimer()
	defer linger.Stop()
	defer confirm.Stop()
	defer work.Stop()
	lingering, confirming := false, false
	for {
		select {
		case <-w.quit:
			return
		case j := <-w.jobs:
			j.done <- j.f()
		case <-w.wake:
			switch {
			case w.pause == 0 || w.held.takeUrgent():
				w.pass(true)
			case !lingering:
				linger.Reset(w.pause)
				lingering = true
			}
		case <-linger.C:
			// An ack above a gap waits for two passes.
			lingering = w.pass(false)
			if lingering {
				linger.Reset(w.pause)
			}
		case <-confirm.C:
			confirming = false
			_ = w.barrier()
		case <-work.C:
			_ = w.window.adjust(w.intake)
		}
		switch n := w.held.unconfirmed(); {
		case n >= maxUnconfirmed:
			_ = w.barrier()
		case n > 0 && !confirming:
			confirm.Reset(confirmEvery)
			confirming = true
		}
		if due := w.window.due(); !due.IsZero() {
			work.Reset(max(time.Until(due), time.Millisecond))
		}
	}
}

// idleTimer is a timer that is not running.
func idleTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// pass writes what was accepted and reports whether something is left for the next pass.
// Its errors say nothing: the channel's end reports what was not confirmed.
func (w *settleWriter) pass(all bool) (more bool) {
	more = w.held.collect(&w.batch, all)
	if !w.batch.Empty() {
		w.write(&w.batch)
	}
	return more
}

// write sends a batch: first what is not acked or stands alone, since an ack of all up to a tag
// would cover it.
func (w *settleWriter) write(b *tags.Batch) {
	w.backlog.note(len(b.Alone)+len(b.Islands)+1, time.Now())
	for _, s := range b.Alone {
		w.writeOne(s)
	}
	if b.UpTo == 0 && len(b.Islands) == 0 {
		return
	}
	began := w.operations.Begin()
	var err error
	if b.UpTo > 0 {
		err = w.ch.Ack(b.UpTo, b.Multiple)
	}
	for _, tag := range b.Islands {
		err = w.ch.Ack(tag, false)
	}
	w.operations.End(longshore.OperationAck, began, codeOr(err))
}

// writeOne sends a settlement that no other can be joined with.
func (w *settleWriter) writeOne(s tags.Single) {
	began, kind := w.operations.Begin(), longshore.OperationNack
	var err error
	switch s.How {
	case tags.Nack:
		err = w.ch.Nack(s.Tag, false, true)
	case tags.Reject:
		kind, err = longshore.OperationReject, w.ch.Reject(s.Tag, false)
	case tags.Ack:
		kind, err = longshore.OperationAck, w.ch.Ack(s.Tag, false)
	}
	w.operations.End(kind, began, codeOr(err))
}

// codeOr is for what was written without an answer: it fails with the connection.
func codeOr(err error) (code longshore.Code) {
	if err != nil {
		code = longshore.CodeConnLost
	}
	return code
}

// barrier makes the broker answer on the channel: it has then read everything that was
// written before.
func (w *settleWriter) barrier() error {
	if w.held.unconfirmed() == 0 {
		return nil
	}
	if err := w.ch.sync(); err != nil {
		return err
	}
	w.held.confirm()
	return nil
}

// settled gives a quorum queue the time to take what the channel keeps for it.
func (w *settleWriter) settled() error {
	pause := w.backlog.pause()
	if pause == 0 {
		return nil
	}
	select {
	case <-time.After(pause):
	case <-w.gone:
	}
	return w.ch.sync()
}

// flush writes everything that was accepted and returns when the broker has read it. It
// runs as a job.
func (w *settleWriter) flush() error {
	w.pass(true)
	if err := w.barrier(); err != nil {
		return err
	}
	return w.settled()
}

// finish is the last write. What is still open goes back by one basic.nack, unless it keeps
// its place by going back with the channel: from 4.3 on closing the channel counts as a
// delivery on a quorum queue and basic.nack does not. It runs as a job; ok is false if the
// channel is gone.
func (w *settleWriter) finish(together, autoAck bool) (last lastWrites, ok bool) {
	last, ok = w.held.finish(together, &w.batch)
	if !ok {
		return last, false
	}
	if !w.batch.Empty() {
		w.write(&w.batch)
	}
	if last.highest > 0 && !autoAck && !last.keeps {
		_ = w.ch.Nack(last.highest, true, true)
	}
	return last, true
}
