package amqptest

import "time"

// dropExpired drops expired messages from the heads of the queue's lists only,
// as RabbitMQ does: a short time to live behind a long one waits. With a time to
// live of 0 a message still goes to a consumer that is ready for it.
func (q *queue) dropExpired(deliverable bool) {
	q.lists(func(l *entryList) bool {
		for e := l.front; e != nil && q.expired(e, deliverable); e = l.front {
			l.popFront()
			q.taken(e)
			q.deadLetter(e.msg, "expired")
		}
		return true
	})
}

func (q *queue) expired(e *entry, deliverable bool) bool {
	now := q.s.now
	return !e.expires.IsZero() && (e.expires.Before(now) || !deliverable && e.expires.Equal(now))
}

// armTTL sets the alarm for the head that expires first.
func (q *queue) armTTL() {
	var first time.Time
	q.lists(func(l *entryList) bool {
		if e := l.front; e != nil && !e.expires.IsZero() && (first.IsZero() || e.expires.Before(first)) {
			first = e.expires
		}
		return true
	})
	switch {
	case first.IsZero():
		q.s.unset(&q.ttlAlarm)
	case q.ttlAlarm.index == 0 || !q.ttlAlarm.at.Equal(first):
		q.s.set(&q.ttlAlarm, first)
	}
}
