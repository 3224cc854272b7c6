package sqstest

import (
	"container/heap"
	"time"
)

// queue is one queue with its messages. The server's lock guards it.
type queue struct {
	name, arn         string
	created, modified time.Time
	attrs             map[string]string
	set               settings
	tags              map[string]string
	removed           bool
	purged            time.Time

	messages map[uint64]*message
	ready    line    // standard queue: the visible ones
	groups   groups  // FIFO queue: all, by group
	due      dueHeap // in flight and delayed
	count    [gone]int
	oldest   time.Time // not younger than the oldest message
	sequence uint64
	dedup    dedup
	attempts map[string]attempt // by ReceiveRequestAttemptId
	twins    []*message         // second copies that the next receive hands out

	waiting int           // open long polls
	changed chan struct{} // closed and replaced when they should look again
}

func newQueue(name, arn string, attrs map[string]string, now time.Time) *queue {
	q := &queue{name: name, arn: arn, attrs: attrs, set: read(attrs), created: now, modified: now,
		tags: map[string]string{}, changed: make(chan struct{})}
	q.clear()
	return q
}

// clear forgets all messages. What was sent before stays known for deduplication.
func (q *queue) clear() {
	for _, m := range q.messages {
		m.state = gone
	}
	q.messages = map[uint64]*message{}
	q.ready, q.groups, q.due, q.twins = line{}, groups{byID: map[string]*group{}}, nil, nil
	q.count = [gone]int{}
	q.attempts = map[string]attempt{}
	q.oldest = time.Time{}
}

// wake makes open long polls look again.
func (q *queue) wake() {
	if q.waiting > 0 {
		close(q.changed)
		q.changed = make(chan struct{})
	}
}

// enter puts a message into the queue: visible, or delayed until due.
func (q *queue) enter(m *message, due time.Time, now time.Time) {
	if len(q.messages) == 0 || m.sent.Before(q.oldest) {
		q.oldest = m.sent
	}
	q.messages[m.serial] = m
	if q.set.fifo {
		q.groups.add(m)
	}
	m.state = gone // no state yet
	if due.After(now) {
		q.become(m, delayed, due)
	} else {
		q.become(m, visible, time.Time{})
	}
	q.wake()
}

// become changes the state of a message, with the counts and structures that
// follow it.
func (q *queue) become(m *message, to state, due time.Time) {
	if m.state != gone {
		q.count[m.state]--
	}
	if m.index > 0 {
		heap.Remove(&q.due, m.index-1)
	}
	m.state, m.due = to, due
	if to != gone {
		q.count[to]++
	}
	if to == inFlight || to == delayed {
		heap.Push(&q.due, m)
	}
	switch {
	case q.set.fifo:
		q.groups.update(m.group)
	case to == visible:
		q.ready.push(m)
	}
}

// remove takes a message out for good.
func (q *queue) remove(m *message) {
	q.become(m, gone, time.Time{})
	delete(q.messages, m.serial)
	if q.set.fifo {
		q.groups.remove(m)
		q.wake() // the next of its group may be free now
	}
}

// refresh does what fell due by now: delays and timeouts that ended, messages
// beyond their retention.
func (q *queue) refresh(now time.Time) {
	woke := false
	for len(q.due) > 0 && !q.due[0].due.After(now) {
		q.become(q.due[0], visible, time.Time{})
		woke = true
	}
	if woke {
		q.wake()
	}
	q.expire(now)
}

func (q *queue) expire(now time.Time) {
	keep := time.Duration(q.set.retention) * time.Second
	if len(q.messages) == 0 || now.Sub(q.oldest) < keep {
		return
	}
	oldest := now
	for _, m := range q.messages {
		switch {
		case now.Sub(m.sent) >= keep:
			q.remove(m)
		case m.sent.Before(oldest):
			oldest = m.sent
		}
	}
	q.oldest = oldest
}

// line is a queue of messages; those that left it otherwise are skipped.
type line struct {
	items []*message
	head  int
}

func (l *line) push(m *message) { l.items = append(l.items, m) }

func (l *line) pop() *message {
	for l.head < len(l.items) {
		m := l.items[l.head]
		l.items[l.head] = nil
		l.head++
		if l.head > 1024 && l.head > len(l.items)/2 {
			l.items = append([]*message(nil), l.items[l.head:]...)
			l.head = 0
		}
		if m.state == visible {
			return m
		}
	}
	l.items, l.head = l.items[:0], 0
	return nil
}
