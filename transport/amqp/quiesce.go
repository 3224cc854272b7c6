package amqp

import (
	"context"
	"time"
)

// Before a cancel, everything that the broker has on its way to us must have come. What
// meets the cancel a quorum queue's channel gives back by itself, before what we hold or
// behind everything else: behind or before older messages of the same key.

const (
	stillFor = 20 * time.Millisecond // nothing came for so long: look whether anything is ready
	stillMax = time.Second           // nothing came for so long though it should: give up
	putOff   = time.Second           // until a cancel is tried again
)

// quiet waits until the broker has nothing on its way to us and reports whether it is so.
// Acks make the broker send more, and the settle writer, which waits here, writes them. So
// it is over when the window is full, or when nothing came for a while and nothing is ready
// in the queues. answers is false if the queues do not answer.
func (w *prefetch) quiet(ctx context.Context) (quiet, answers bool) {
	if w.cfg.AutoAck || w.cfg.Declare.Type == Classic || w.cfg.stream() {
		return true, true
	}
	tick := time.NewTicker(stillFor / 4)
	defer tick.Stop()
	begin := time.Now()
	last, since, moved := uint64(0), begin, begin
	for time.Since(moved) < stillMax && (ctx.Err() == nil || time.Since(begin) < stillMax) {
		now, window := w.held.arrivals(w.stale), w.size()
		switch {
		case now.over || now.standby:
			return true, true
		case window > 0 && now.outstanding >= window:
			return true, w.countOthers()
		case now.top != last:
			last, since = now.top, time.Now()
			if w.cfg.Prefetch != Unlimited { // else what comes has no end
				moved = since
			}
		case time.Since(since) >= stillFor:
			ready, known := w.anyReady()
			answers = answers || known
			if known && !ready {
				return true, w.countOthers()
			}
			since = time.Now()
		}
		select {
		case <-tick.C:
		case <-w.gone:
			return true, true
		}
	}
	return false, answers
}

// anyReady reports whether a queue has messages that could be sent to us. A queue that
// shows none of our consumers has not answered.
func (w *prefetch) anyReady() (ready, known bool) {
	known = true
	for _, q := range w.queues {
		st, err := w.ch.passive(q)
		if err != nil {
			return false, true // the channel has ended
		}
		ready = ready || st.Messages > 0
		known = known && st.Consumers > 0
	}
	return ready, known
}

// countOthers notes how many consumers the queue shows besides ours, and reports whether it
// answers at all: else a cancel would wait for it, for minutes.
func (w *prefetch) countOthers() (answers bool) {
	w.others = -1
	for range askTimes {
		seen := 0
		for _, q := range w.queues {
			st, err := w.ch.passive(q)
			if err != nil {
				return true // the channel has ended
			}
			if st.Consumers > 0 {
				seen++
			}
			if len(w.queues) == 1 && seen == 1 {
				w.others = max(st.Consumers-len(w.steps), 0)
			}
		}
		if seen == len(w.queues) {
			return true
		}
	}
	return false
}
