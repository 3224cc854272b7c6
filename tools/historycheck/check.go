package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore-go/longshore/internal/testkit/history"
)

// rules are what a history is held to.
type rules struct {
	ordered bool          // per key: a message starts when those before it are done, and no two handlers run at once
	left    bool          // messages may be left in the source: nobody waited until all was done
	effects bool          // each message that was done has exactly one effect
	stall   time.Duration // while a majority answers and work is there, something starts so often; 0 = not checked
	grace   time.Duration // a drain may end so much later than its deadline
}

// violation is a rule that a history breaks.
type violation struct {
	Rule string // lost, left, order, overlap, effects, stall, drain, unknown, changed, unfinished, empty
	At   int64
	Text string
}

// message is what is known of one.
type message struct {
	key                  string
	seq                  int64
	confirmed, confirmAt int64 // 1, and when
	done, dead, left     int64 // how often
	doneAt               int64 // the first time
	started              int64 // how often
	effects              int64 // -1: not read
}

// run is one call of a handler.
type run struct {
	process, id, key string
	from, to         int64 // to is 0 while it runs
	over             int64 // when its context ended, or its process was frozen or killed; 0 if it was not
}

// history as the rules see it.
type view struct {
	events   []history.Event
	messages map[string]*message
	runs     []*run
	found    []violation
}

// check returns what breaks the rules, in the order of time.
func check(events []history.Event, r rules) []violation {
	v := &view{events: events, messages: map[string]*message{}}
	v.read()
	v.lost(r.left)
	v.empty(r.effects)
	if r.ordered {
		v.order()
		v.overlap()
	}
	if r.effects {
		v.countEffects()
	}
	if r.stall > 0 {
		v.stalls(r.stall)
	}
	v.drains(r.grace)
	slices.SortStableFunc(v.found, func(a, b violation) int { return cmp.Compare(a.At, b.At) })
	return v.found
}

func (v *view) broken(rule string, at int64, format string, args ...any) {
	v.found = append(v.found, violation{Rule: rule, At: at, Text: fmt.Sprintf(format, args...)})
}

// read goes through the history once, and finds what contradicts itself.
func (v *view) read() {
	open := map[string]map[int64]*run{} // by process
	stopped := map[string]int64{}       // when a process was last killed or frozen
	end := func(e history.Event) {
		if one := open[e.Process][e.Run]; one != nil {
			one.to = e.At
			delete(open[e.Process], e.Run)
		} else {
			v.broken("unfinished", e.At, "%s ends run %d, which it had not started", e.Process, e.Run)
		}
	}
	for _, e := range v.events {
		switch e.Kind {
		case history.Published:
			v.messages[e.ID] = &message{key: e.Key, seq: e.Seq, effects: -1}
		case history.Confirmed:
			v.of(e, func(m *message) { m.confirmed, m.confirmAt = 1, e.At })
		case history.Started:
			v.starts(e)
			one := &run{process: e.Process, id: e.ID, key: e.Key, from: e.At}
			if at, is := stopped[e.Process]; is && e.At <= at+told { // between the word and the deed
				one.over = e.At
			}
			v.runs = append(v.runs, one)
			if open[e.Process] == nil {
				open[e.Process] = map[int64]*run{}
			}
			open[e.Process][e.Run] = one
		case history.Canceled:
			if one := open[e.Process][e.Run]; one != nil {
				one.over = cmp.Or(one.over, e.At)
			}
		case history.Done:
			end(e)
			v.of(e, func(m *message) {
				if m.done++; m.doneAt == 0 {
					m.doneAt = e.At
				}
			})
		case history.Failed:
			end(e)
		case history.Effects:
			v.of(e, func(m *message) { m.effects = e.N })
		case history.Dead:
			v.of(e, func(m *message) { m.dead++ })
		case history.Left:
			v.of(e, func(m *message) { m.left++ })
		case history.Killed, history.Frozen: // written before it is done: what the process still says counts
			stopped[e.Of] = e.At
			for _, one := range open[e.Of] {
				one.over = cmp.Or(one.over, e.At)
			}
		case history.Thawed:
			delete(stopped, e.Of)
		case history.Unconfirmed, history.Joined, history.Draining, history.Drained, history.Fault, history.Healed:
		}
	}
}

// of finds the message of an event. One that was never published was made up.
func (v *view) of(e history.Event, f func(*message)) {
	if m := v.messages[e.ID]; m != nil {
		f(m)
		return
	}
	v.broken("unknown", e.At, "%s: %s of message %q, which nobody published", e.Process, e.Kind, e.ID)
}

func (v *view) starts(e history.Event) {
	v.of(e, func(m *message) {
		m.started++
		if m.key != e.Key || m.seq != e.Seq {
			v.broken("changed", e.At, "message %q was published with key %q, number %d, and arrives at %s with key %q, number %d", e.ID, m.key, m.seq, e.Process, e.Key, e.Seq)
		}
	})
}

// lost: what the broker has confirmed is done, dead, or still there, which it should not be
// after everything was healed and waited for.
func (v *view) lost(mayBeLeft bool) {
	for id, m := range v.messages {
		switch {
		case m.confirmed == 0 || m.done+m.dead > 0:
		case m.left == 0:
			v.broken("lost", m.confirmAt, "message %q of key %q, number %d, was confirmed, and is neither done nor dead nor there (started %d times)", id, m.key, m.seq, m.started)
		case !mayBeLeft:
			v.broken("left", m.confirmAt, "message %q of key %q, number %d, is still in the source at the end (started %d times)", id, m.key, m.seq, m.started)
		}
	}
}

// empty: a history in which nothing happened shows nothing.
func (v *view) empty(effects bool) {
	confirmed, done, read := int64(0), int64(0), effects
	for _, m := range v.messages {
		confirmed, done = confirmed+m.confirmed, done+m.done
		read = read && m.effects < 0
	}
	if confirmed == 0 || done == 0 || read {
		v.broken("empty", 0, "%d messages were confirmed and %d handlers were done; effects were read: %v", confirmed, done, !read)
	}
}

// order: when a message of a key starts for the first time, those before it are done. A
// message that nobody confirmed may come at any time, or never.
func (v *view) order() {
	first := map[string]bool{}
	waits := map[string]*queue{} // by key
	for id, m := range v.messages {
		if m.confirmed > 0 && m.dead == 0 {
			q := waits[m.key]
			if q == nil {
				q = &queue{ids: map[int64]string{}}
				waits[m.key] = q
			}
			q.ids[m.seq] = id
		}
	}
	for _, q := range waits {
		q.seqs = slices.Sorted(maps.Keys(q.ids))
	}
	done := map[string]bool{}
	for _, e := range v.events {
		m := v.messages[e.ID]
		if m == nil || m.confirmed == 0 {
			continue
		}
		switch e.Kind { //nolint:exhaustive // only these two
		case history.Done:
			done[e.ID] = true
		case history.Started:
			if first[e.ID] {
				continue
			}
			first[e.ID] = true
			if before := waits[m.key].before(m.seq, done); before != "" {
				v.broken("order", e.At, "key %q: message %q, number %d, starts at %s although message %q is not done", m.key, e.ID, m.seq, e.Process, before)
			}
		}
	}
}

// queue are the confirmed messages of a key.
type queue struct {
	ids  map[int64]string
	seqs []int64 // in order, without those at the front that are done
}

// before is the first message with a smaller number that is not done; "" = there is none.
func (q *queue) before(seq int64, done map[string]bool) string {
	if q == nil { // all of the key are dead
		return ""
	}
	for len(q.seqs) > 0 && done[q.ids[q.seqs[0]]] {
		q.seqs = q.seqs[1:]
	}
	if len(q.seqs) > 0 && q.seqs[0] < seq {
		return q.ids[q.seqs[0]]
	}
	return ""
}

// told is how late a process may write that a context has ended, since it is busy with other
// things, and how long a kill or a freeze may take after it was written down.
const told = int64(50 * time.Millisecond)

// overlap: a handler of a key starts only when the one before it has ended, or its context
// had, or its process could not know.
func (v *view) overlap() {
	byKey := map[string][]*run{}
	for _, r := range v.runs {
		for _, before := range byKey[r.key] {
			ended := before.to != 0 && before.to <= r.from || before.over != 0 && before.over <= r.from+told
			if !ended {
				v.broken("overlap", r.from, "key %q: message %q starts at %s while message %q runs at %s, whose context lives", r.key, r.id, r.process, before.id, before.process)
			}
		}
		byKey[r.key] = append(slices.DeleteFunc(byKey[r.key], func(b *run) bool {
			return b.to != 0 && b.to <= r.from || b.over != 0 && b.over <= r.from+told
		}), r)
	}
}

func (v *view) countEffects() {
	for id, m := range v.messages {
		switch {
		case m.effects > 1:
			v.broken("effects", m.doneAt, "message %q of key %q had %d effects", id, m.key, m.effects)
		case m.effects == 0 && m.done > 0:
			v.broken("effects", m.doneAt, "message %q of key %q is done, and had no effect", id, m.key)
		}
	}
}

// stalls: while a majority of the brokers answers and there is work, handlers start.
func (v *view) stalls(limit time.Duration) {
	w := waiting{healthy: true, done: map[string]bool{}}
	for _, e := range v.events {
		if w.since != 0 && e.At-w.since > int64(limit) {
			v.broken("stall", e.At, "%d messages wait, a majority answers, and nothing has started for %s", w.work, time.Duration(e.At-w.since).Round(time.Millisecond))
			w.begin(e.At)
		}
		if m := v.messages[e.ID]; e.ID == "" || m != nil && m.confirmed > 0 && m.dead == 0 { // what is dead need not start again
			w.take(e)
		}
	}
}

// waiting is what follows of the events so far for the next start.
type waiting struct {
	work    int64 // confirmed and not done; a consumer may be ahead of a confirm
	since   int64 // from when on something should have started; 0 while nothing need
	healthy bool  // a majority answers
	done    map[string]bool
}

// begin begins the time again, if something has to start.
func (w *waiting) begin(at int64) {
	if w.since = 0; w.work > 0 && w.healthy {
		w.since = at
	}
}

func (w *waiting) take(e history.Event) {
	switch e.Kind { //nolint:exhaustive // the others begin and end no work
	case history.Confirmed:
		if w.work++; w.since == 0 {
			w.begin(e.At)
		}
	case history.Started:
		w.begin(e.At)
	case history.Done:
		if w.done[e.ID] {
			return
		}
		w.done[e.ID] = true
		if w.work--; w.work <= 0 {
			w.since = 0
		}
	case history.Fault, history.Healed:
		was := w.healthy
		if w.healthy = e.Kind == history.Healed || e.N > 0; w.healthy != was {
			w.begin(e.At)
		}
	}
}

// drains: a stop ends within its time, unless the process was killed or frozen meanwhile.
func (v *view) drains(grace time.Duration) {
	open := map[string]history.Event{}
	for _, e := range v.events {
		switch e.Kind { //nolint:exhaustive // the others do not concern stops
		case history.Draining:
			open[e.Process] = e
		case history.Drained:
			d, known := open[e.Process]
			if took := time.Duration(e.At - d.At); known && took > time.Duration(d.N)*time.Millisecond+grace {
				v.broken("drain", e.At, "%s drained in %s of %d ms", e.Process, took.Round(time.Millisecond), d.N)
			}
			delete(open, e.Process)
		case history.Killed, history.Frozen:
			delete(open, e.Of)
		}
	}
	for process, d := range open {
		v.broken("drain", d.At, "%s began to drain and did not end", process)
	}
}
