package kafka

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// repeat is a record that was given back.
type repeat struct {
	seq     uint64      // its place in the partition: what is due goes out in the order of the log
	rec     *kgo.Record // fetched once and kept, since the position has moved past it
	attempt int         // of its next delivery
}

// givenBack holds the records of a partition that were given back: a log cannot take them,
// so they wait here for their next attempt. Its partition's lock guards it.
type givenBack struct {
	due   []repeat           // to be handed out now, in the order of the log
	waits map[uint64]waiting // not due yet, by sequence number
}

// waiting is a record that is not due yet.
type waiting struct {
	repeat
	timer *time.Timer // stopped when the partition leaves
}

// count is how many records there are.
func (g *givenBack) count() int { return len(g.due) + len(g.waits) }

// again makes a record due.
func (g *givenBack) again(e repeat) {
	i, _ := slices.BinarySearchFunc(g.due, e.seq, func(x repeat, seq uint64) int {
		if x.seq < seq {
			return -1
		}
		return 1
	})
	g.due = slices.Insert(g.due, i, e)
}

// later calls due after a delay, without the lock.
func (g *givenBack) later(e repeat, delay time.Duration, due func()) {
	if g.waits == nil {
		g.waits = map[uint64]waiting{}
	}
	g.waits[e.seq] = waiting{e, time.AfterFunc(delay, due)}
}

// came ends the wait of a record.
func (g *givenBack) came(seq uint64) { delete(g.waits, seq) }

// pop takes the oldest record that is due.
func (g *givenBack) pop() (e repeat) {
	e, g.due = g.due[0], g.due[1:]
	return e
}

// find returns the record with a sequence number, or nil.
func (g *givenBack) find(seq uint64) *kgo.Record {
	if w, ok := g.waits[seq]; ok {
		return w.rec
	}
	for _, e := range g.due {
		if e.seq == seq {
			return e.rec
		}
	}
	return nil
}

// drop forgets all of them: the next owner has them.
func (g *givenBack) drop() {
	g.due = nil
	for _, w := range g.waits {
		w.timer.Stop()
	}
	g.waits = nil
}
