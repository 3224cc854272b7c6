package kafka

import (
	"fmt"
	"sort"

	"github.com/longshore-go/longshore/transport"
)

// What is done above the committed offset is remembered by the text beside it alone. So
// no more is handed out than that text can describe, in whatever order it is done: else
// an orderly stop would repeat what did not fit.
//
// The bound is one of two numbers: how many records are open (handed out and not done),
// and the span of offsets from the watermark to the last one handed out. Neither grows by
// a record being done, so what fits once fits until more is handed out.

// savedHeadBytes is the most that the text takes beside its body: checksum, kind, mark,
// base, epoch, and the count of attempts.
const savedHeadBytes = 4 + 1 + 8 + 10 + 5 + 1

// savedRoom is how many bytes a text of so many characters has for what is done.
func savedRoom(budget int) int { return (budget-len(savedPrefix))*3/4 - savedHeadBytes }

// canSave tells whether room bytes can describe any state that so many open records
// within a span of offsets can come to.
func canSave(open int, span int64, room int) bool {
	if span <= int64(room)*8 { // one bit for each
		return true
	}
	bits, _ := undoneBits(open, span)
	return bits <= int64(room-undoneHead)*8
}

// canHandOut is how many records with consecutive offsets may be handed out behind those
// that are, at most so many.
func canHandOut(open int, span int64, room, most int) int {
	if most <= 0 || canSave(open+most, span+int64(most), room) {
		return most
	}
	return sort.Search(most, func(n int) bool { return !canSave(open+n+1, span+int64(n)+1, room) })
}

// canRemember is how many more records of the partition may be handed out, at most so
// many. The lock is held.
func (p *partition) canRemember(most int) int {
	if p.c.src.cast || p.t.base < 0 || p.budget == 0 || most <= 0 { // a broker that keeps no text: the window alone counts
		return most
	}
	first := p.nextOffset()
	if first < p.t.saved.end() { // the owner before has remembered as much
		return most
	}
	return canHandOut(p.t.unfinished(), first-p.t.base, savedRoom(p.budget), most)
}

// nextOffset is that of the record which is handed out next, or could be.
func (p *partition) nextOffset() int64 {
	switch {
	case len(p.wait.made) > 0:
		return int64(p.wait.made[0].Origin.Position) //nolint:gosec // it was an int64
	case len(p.wait.fetched) > 0:
		return p.wait.fetched[0].recs[0].Offset
	}
	return p.t.read
}

// fitting is how many of the first n deliveries that are made can be remembered: their
// offsets may have gaps. The lock is held.
func (p *partition) fitting(n int) int {
	made := p.wait.made
	n = min(n, len(made))
	if p.c.src.cast || p.budget == 0 {
		return n
	}
	open, room, ahead := p.t.unfinished(), savedRoom(p.budget), p.t.saved.end()
	for ; n > 1; n /= 2 {
		last := int64(made[n-1].Origin.Position) //nolint:gosec // it was an int64
		if last < ahead || canSave(open+n, last+1-p.t.base, room) {
			break
		}
	}
	return n
}

// tellUnremembered reports, at most once a minute for each partition, that no more is
// handed out because it could not be remembered. The lock is held.
func (p *partition) tellUnremembered() {
	if p.canRemember(1) > 0 || p.t.size() == 0 {
		return // the window is full instead
	}
	head := p.t.offsets[p.t.slot(p.t.head)]
	p.c.trouble("remember "+p.key.String(), transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("%s: %s hands out no more: %d records are done above offset %d, which is not, %d are not done, and the %d characters beside a committed offset can describe no more; see to the oldest, or dead-letter it",
			p.c.src.title(), p.key, p.t.island, head, p.t.unfinished(), p.budget)})
}

// tellRepeats reports what is done in partitions that go and that their last commit could
// not describe: their next owner repeats it.
func (c *consumer) tellRepeats(ps []*partition) {
	repeats := 0
	for _, p := range ps {
		p.mu.Lock()
		repeats += p.forgotten
		p.mu.Unlock()
	}
	if repeats > 0 {
		c.tell.event(transport.Event{Kind: transport.EventNotice, Repeats: repeats,
			Text: fmt.Sprintf("%s: %d records that are done will be handled again: what the broker keeps beside a committed offset could not describe them; see that its offset.metadata.max.bytes is 4096 or more",
				c.src.title(), repeats)})
	}
}
