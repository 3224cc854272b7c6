package amqptest

import "time"

// queue is a classic or quorum queue. Guarded by Server.mu.
type queue struct {
	queueArgs
	s                   *Server
	vh                  *vhost
	name                string
	durable, autoDelete bool
	owner               *conn // exclusive to this connection
	args                Table
	bindings            []*binding
	gone                bool

	levels   []entryList // by priority; one without x-max-priority
	returned entryList   // a quorum queue hands out returned messages first
	count    int         // ready
	bytes    int64       // of ready bodies
	unacked  int
	nextSeq  uint64

	consumers []*consumer // by priority, then by whose turn it is
	active    *consumer   // of a single-active-consumer queue
	suspended bool        // see [Server.Suspend]
	dirty     bool
	ttlAlarm  alarm
	idleAlarm alarm
}

func newQueue(vh *vhost, name string) *queue {
	q := &queue{s: vh.s, vh: vh, name: name}
	q.ttlAlarm.fire = func() { q.s.touch(q) }
	q.idleAlarm.fire = func() {
		if len(q.consumers) == 0 {
			q.delete()
		}
	}
	return q
}

func (q *queue) where() string { return "queue '" + q.name + "' in vhost '" + q.vh.name + "'" }
func (q *queue) ready() int    { return q.count }

// touch puts a queue on the list of those to look at before the lock is released.
func (s *Server) touch(q *queue) {
	if !q.dirty && !q.gone {
		q.dirty = true
		s.dirty = append(s.dirty, q)
	}
}

// work does everything a transaction has caused.
func (s *Server) work() {
	for len(s.dirty) > 0 {
		q := s.dirty[0]
		s.dirty = s.dirty[1:]
		q.dirty = false
		q.dispatch()
	}
	s.dirty = nil
}

func (q *queue) equivalent(durable, exclusive, autoDelete bool, args Table) error {
	if exclusive != (q.owner != nil) {
		return q.lockedErr()
	}
	checks := []struct {
		name      string
		got, have bool
	}{{"durable", durable, q.durable}, {"auto_delete", autoDelete, q.autoDelete}}
	for _, c := range checks {
		if c.got != c.have {
			return softErr(codePreconditionFailed, "inequivalent arg '%s' for %s: received '%t' but current is '%t'", c.name, q.where(), c.got, c.have)
		}
	}
	return inequivalent(q.where(), q.s.normalType(q.args), q.s.normalType(args), comparedArgs())
}

// normalType makes no difference of a queue type that is the default or named
// as the default: RabbitMQ 3.10 takes it out, RabbitMQ 4 puts it in.
func (s *Server) normalType(args Table) Table {
	kind, named := args.lookup("x-queue-type")
	switch {
	case s.cfg.Flavor >= V4_0 && !named:
		return args.with("x-queue-type", "classic")
	case s.cfg.Flavor < V4_0 && kind == "classic":
		return args.without("x-queue-type")
	}
	return args
}

// used postpones x-expires.
func (q *queue) used() {
	if q.hasExpires {
		q.s.set(&q.idleAlarm, q.s.now.Add(q.expires))
	}
}

// publish enqueues m; false = refused because the queue is full.
func (q *queue) publish(m *message) bool {
	if (q.overflow == "reject-publish" || q.overflow == "reject-publish-dlx") && q.over(1, int64(len(m.body))) {
		if q.overflow == "reject-publish-dlx" {
			q.deadLetter(m, "maxlen")
		}
		return false
	}
	q.nextSeq++
	e := &entry{msg: m, seq: q.nextSeq, level: q.level(m)}
	if m.wasHeld && q.s.cfg.Flavor >= V4_3 {
		// RabbitMQ 4.3 calls it redelivered in its new queue too, unless a
		// consumer is waiting for it there.
		e.redelivered = q.count > 0 || q.nextConsumer() == nil
	}
	if ttl, ok := q.ttlOf(m); ok {
		e.expires = q.s.now.Add(ttl)
	}
	q.list(e.level).pushBack(e)
	q.added(e)
	return true
}

func (q *queue) level(m *message) int { return int(min(int64(m.priority), q.maxPriority)) }

func (q *queue) list(level int) *entryList {
	for len(q.levels) <= level {
		q.levels = append(q.levels, entryList{})
	}
	return &q.levels[level]
}

func (q *queue) added(e *entry) {
	q.count++
	q.bytes += int64(len(e.msg.body))
	q.s.touch(q)
}

// lists calls fn for every list of ready messages, the next one to go first,
// until fn returns false.
func (q *queue) lists(fn func(*entryList) bool) {
	if !fn(&q.returned) {
		return
	}
	for i := len(q.levels) - 1; i >= 0; i-- {
		if !fn(&q.levels[i]) {
			return
		}
	}
}

// pop takes the message whose turn it is.
func (q *queue) pop() (e *entry) {
	q.lists(func(l *entryList) bool {
		e = l.popFront()
		return e == nil
	})
	if e != nil {
		q.taken(e)
	}
	return e
}

func (q *queue) taken(e *entry) {
	q.count--
	q.bytes -= int64(len(e.msg.body))
}

// over reports whether n more messages with size bytes exceed the length limit.
func (q *queue) over(n int, size int64) bool {
	return q.maxLength >= 0 && int64(q.count+n) > q.maxLength || q.maxBytes >= 0 && q.bytes+size > q.maxBytes
}

// trim drops from the head what exceeds the length limit. Among priorities the
// lowest goes first.
func (q *queue) trim() {
	for q.count > 0 && q.over(0, 0) && q.overflow != "reject-publish" && q.overflow != "reject-publish-dlx" {
		var e *entry
		for i := 0; i < len(q.levels) && e == nil; i++ {
			e = q.levels[i].popFront()
		}
		if e == nil {
			e = q.returned.popFront()
		}
		q.taken(e)
		q.deadLetter(e.msg, "maxlen")
	}
}

func (q *queue) purge() int {
	n := q.count
	q.levels, q.returned, q.count, q.bytes = nil, entryList{}, 0, 0
	q.s.unset(&q.ttlAlarm)
	return n
}

// delete removes the queue; its consumers are notified, its messages are gone.
func (q *queue) delete() {
	if q.gone {
		return
	}
	q.gone = true
	delete(q.vh.queues, q.name)
	if q.owner != nil {
		delete(q.owner.exclusive, q)
	}
	for _, b := range q.bindings {
		b.source.drop(b)
	}
	for _, c := range append([]*consumer(nil), q.consumers...) {
		c.cancelled()
	}
	q.purge()
	q.s.unset(&q.idleAlarm)
}

// ttlOf is the smaller of the queue's and the message's time to live.
func (q *queue) ttlOf(m *message) (ttl time.Duration, ok bool) {
	switch {
	case q.hasTTL && m.hasTTL:
		return min(q.ttl, m.ttl), true
	case m.hasTTL:
		return m.ttl, true
	}
	return q.ttl, q.hasTTL
}
