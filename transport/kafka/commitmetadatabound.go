package kafka

import (
	"fmt"

	"github.com/longshore-go/longshore/transport"
)

// canRemember is how many more records of the partition may be handed out, at most so
// many. The lock is held.
func (p *partition) canRemember(most int) int {
	if p.c.src.cast {
		return most
	}
	return p.t.CanTake(p.nextOffset(), p.budget, most)
}

// nextOffset is that of the record which is handed out next, or could be.
func (p *partition) nextOffset() int64 {
	switch {
	case len(p.wait.made) > 0:
		return int64(p.wait.made[0].Origin.Position) //nolint:gosec // it was an int64
	case len(p.wait.fetched) > 0:
		return p.wait.fetched[0].recs[0].Offset
	}
	return p.t.Read()
}

// fitting is how many of the first n deliveries that are made can be remembered: their
// offsets may have gaps. The lock is held.
func (p *partition) fitting(n int) int {
	made := p.wait.made
	n = min(n, len(made))
	if p.c.src.cast {
		return n
	}
	for ; n > 1; n /= 2 {
		last := int64(made[n-1].Origin.Position) //nolint:gosec // it was an int64
		if p.t.CanTakeUpTo(last, n, p.budget) {
			break
		}
	}
	return n
}

// tellUnremembered reports, at most once a minute for each partition, that no more is
// handed out because it could not be remembered. The lock is held.
func (p *partition) tellUnremembered() {
	if p.canRemember(1) > 0 || p.t.Len() == 0 {
		return // the window is full instead
	}
	head := p.t.Offset(p.t.Head())
	p.c.trouble("remember "+p.key.String(), transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("%s: %s hands out no more: %d records are done above offset %d, which is not, %d are not done, and the %d characters beside a committed offset can describe no more; see to the oldest, or dead-letter it",
			p.c.src.title(), p.key, p.t.Done(), head, p.t.Unfinished(), p.budget)})
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
