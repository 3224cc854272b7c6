package amqptest

import "time"

// timeoutOf is how long a delivery from q may stay unacknowledged on this
// channel; 0 = for ever.
func (ch *channel) timeoutOf(q *queue) time.Duration {
	if ch.s.cfg.Flavor >= V4_3 && !q.quorum {
		return 0 // only quorum queues look after it there
	}
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
	if ch.s.cfg.Flavor < V4_3 {
		t := ch.timeoutOf(late.queue)
		ch.closeWith(&replyError{code: codePreconditionFailed, text: replyText(codePreconditionFailed,
			"delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. This timeout value can be configured, see consumers doc guide to learn more", ch.n, t.Milliseconds())})
		return false
	}
	ch.takeBackLate()
	return true
}

// takeBackLate is RabbitMQ 4.3: late deliveries go back to their queue, their
// consumer gets basic.cancel and no more messages, the channel stays open and a
// late settlement is not an error and changes nothing. Once all late ones of the
// consumer are settled the queue believes it well again and sends it messages,
// under a tag that the client has forgotten: they are stuck, and on a
// single-active-consumer queue everything is, until the channel closes.
func (ch *channel) takeBackLate() {
	now := ch.s.now
	list := ch.unacked.takeIf(func(h *held) bool { return !h.deadline.IsZero() && !h.deadline.After(now) })
	if ch.late == nil {
		ch.late = map[uint64]*consumer{}
	}
	for _, h := range list {
		c := h.consumer
		ch.late[h.tag] = c
		if c == nil {
			continue
		}
		if c.late++; c.late == 1 && ch.consumers[c.tag] == c {
			delete(ch.consumers, c.tag)
			c.notifyCancel()
		}
		c.queue.elect()
	}
	ch.finish(list, returnTimeout)
}

// settleLate swallows a settlement of what was taken back.
func (ch *channel) settleLate(tag uint64, multiple bool) (found bool) {
	for t, c := range ch.late {
		if t != tag && (!multiple || t > tag && tag != 0) {
			continue
		}
		found = true
		delete(ch.late, t)
		if c == nil || c.removed {
			continue
		}
		if c.late--; c.late == 0 {
			c.queue.elect()
			ch.s.touch(c.queue)
			ch.revived = append(ch.revived, c)
		}
	}
	return found
}

// forgetLate ends the consumers that the client believes cancelled.
func (ch *channel) forgetLate() {
	for _, c := range ch.late {
		if c != nil {
			c.remove()
		}
	}
	for _, c := range ch.revived {
		c.remove()
	}
	ch.late, ch.revived = nil, nil
}
