package amqptest

import "time"

// timeoutOf is how long a delivery from q may stay unacknowledged on this
// channel; 0 = for ever.
func (ch *channel) timeoutOf(q *queue) time.Duration {
	if q.ackTimeout > 0 {
		return q.ackTimeout
	}
	return max(ch.ackTimeout, 0)
}

// checkAckTimeout looks for deliveries held too long and sets the next alarm.
func (ch *channel) checkAckTimeout() {
	var next time.Time
	var late *held
	for i := range ch.unacked.items {
		h := &ch.unacked.items[i]
		switch {
		case h.entry == nil || h.deadline.IsZero():
		case !h.deadline.After(ch.s.now):
			if late == nil {
				late = h
			}
		case next.IsZero() || h.deadline.Before(next):
			next = h.deadline
		}
	}
	if late != nil {
		if !ch.timedOut(late) {
			return
		}
	}
	if !next.IsZero() {
		ch.s.set(&ch.ackAlarm, next)
	}
}

// timedOut takes late deliveries back; false = the channel went with them.
func (ch *channel) timedOut(late *held) bool {
	if ch.s.cfg.Flavor < V4_3 || !late.queue.quorum {
		t := ch.timeoutOf(late.queue)
		ch.closeWith(&replyError{code: codePreconditionFailed, text: replyText(codePreconditionFailed,
			"delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. This timeout value can be configured, see consumers doc guide to learn more", ch.n, t.Milliseconds())})
		return false
	}
	ch.takeBackLate()
	return true
}

// takeBackLate is RabbitMQ 4.3 on a quorum queue: the consumer is cancelled and
// the channel stays open. The tags stay known, so that a late ack is no error
// and removes nothing.
func (ch *channel) takeBackLate() {
	now := ch.s.now
	consumers := map[*consumer]bool{}
	for i := range ch.unacked.items {
		if h := &ch.unacked.items[i]; h.entry != nil && h.queue.quorum && h.consumer != nil && !h.deadline.IsZero() && !h.deadline.After(now) {
			consumers[h.consumer] = true
		}
	}
	list := ch.unacked.takeIf(func(h *held) bool {
		return h.queue.quorum && (consumers[h.consumer] || h.consumer == nil && !h.deadline.After(now))
	})
	if ch.stale == nil {
		ch.stale = map[uint64]*queue{}
	}
	for _, h := range list {
		ch.stale[h.tag] = h.queue
	}
	for c := range consumers {
		c.cancelled()
	}
	ch.finish(list, returnTimeout)
}

// settleStale swallows a settlement of what was taken back. On a
// single-active-consumer queue it freezes the queue until this channel closes,
// as RabbitMQ 4.3.6 was seen to do.
func (ch *channel) settleStale(tag uint64, multiple bool) (found bool) {
	for t, q := range ch.stale {
		if t == tag || multiple && (tag == 0 || t < tag) {
			found = true
			if q.singleActive && !q.gone {
				q.frozen = ch
			}
		}
	}
	return found
}

func (ch *channel) wasStale(tag uint64) bool { return ch.stale[tag] != nil }

// thaw lets the queues go that a late settlement on this channel froze.
func (ch *channel) thaw() {
	for _, q := range ch.stale {
		if q.frozen == ch {
			q.frozen = nil
			ch.s.touch(q)
		}
	}
	ch.stale = nil
}
