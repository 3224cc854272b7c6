package kafka

import (
	"fmt"

	"github.com/longshore-go/longshore/transport/kafka/internal/offsets"
)

// A partition has a window: so many of its records may be in hand, or done beyond the
// oldest that is not. Two other bounds count with it: what the metadata of a commit can
// describe, and how many acknowledgements wait for a commit.

// maxWindow is the most records of one partition in hand: above it the metadata may not
// be able to describe the records done.
const maxWindow = 1 << 16

// room is how many more records may be handed out.
func (s *surroundings) room(t *offsets.Tracker, buf *fetchBuffer, l *ledger) int {
	room := int(s.window.Load()) - t.Len()
	if room <= 0 {
		room = s.limit(t) - t.Len()
	}
	return s.canRemember(t, buf, l, min(room, l.room()))
}

// limit is the window. While the oldest record waits for its next attempt, which can take
// many seconds at full speed, the others need not wait with it: what is done after it
// takes two words in memory and is saved with the commits.
func (s *surroundings) limit(t *offsets.Tracker) int {
	if s.src.cfg.Window == 0 && t.Len() > 0 {
		if d := t.Held(t.Head()); d == nil || !d.Owned() { // given back, or retried by its container
			return maxWindow
		}
	}
	return int(s.window.Load())
}

// canRemember is how many more records may be handed out so that the metadata of a commit
// can describe the records done, at most so many. A broadcast commits nothing.
func (s *surroundings) canRemember(t *offsets.Tracker, buf *fetchBuffer, l *ledger, most int) int {
	if s.src.cast {
		return most
	}
	return t.CanTake(buf.nextOffset(t.Read()), l.budget, most)
}

// fitting is canRemember for the first n deliveries that are made: their offsets may have
// gaps.
func (s *surroundings) fitting(t *offsets.Tracker, buf *fetchBuffer, l *ledger, n int) int {
	n = min(n, len(buf.made))
	if s.src.cast {
		return n
	}
	for ; n > 1; n /= 2 {
		last := int64(buf.made[n-1].Origin.Position) //nolint:gosec // it was an int64
		if t.CanTakeUpTo(last, n, l.budget) {
			break
		}
	}
	return n
}

// The methods of a partition below need its lock.

// canHandOut reports whether something waits that may be handed out.
func (p *partition) canHandOut() bool {
	return len(p.again.due) > 0 || !p.buf.empty() && !p.buf.blocked
}

// enqueue puts the partition into the line if it has something to hand out.
func (p *partition) enqueue() {
	if p.queued || p.state != assigned || !p.canHandOut() {
		return
	}
	p.queued = true
	p.with.turns.add(p)
}

// checkWindow notes whether the window is full.
func (p *partition) checkWindow() {
	full := p.with.room(&p.t, &p.buf, &p.ledger) <= 0
	if full == p.buf.blocked {
		return
	}
	if full {
		p.reportUnremembered()
	}
	p.buf.block(full)
}

// unblock looks whether the window has opened again.
func (p *partition) unblock() {
	if !p.buf.blocked || p.with.room(&p.t, &p.buf, &p.ledger) <= 0 {
		return
	}
	p.with.reports.over("remember "+p.key.String(), fmt.Sprintf("%s: %s hands out records again", p.with.src.title(), p.key))
	p.buf.block(false)
	p.enqueue()
	p.buf.feed()
}

// checkAgain is unblock for others: a container that begins to retry a record does not say
// so, and a window may be resized.
func (p *partition) checkAgain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unblock()
}

// reportUnremembered reports, at most once a minute for each partition, that no more is
// handed out because it could not be remembered.
func (p *partition) reportUnremembered() {
	if p.with.canRemember(&p.t, &p.buf, &p.ledger, 1) > 0 || p.t.Len() == 0 {
		return // the window is full instead
	}
	p.with.reports.troubled("remember "+p.key.String(),
		fmt.Sprintf("%s: %s hands out no more: offset %d is not done, %d records after it are done and %d are not, and the %d characters of a commit's metadata can describe no more; look at the oldest record's handler, or dead-letter it",
			p.with.src.title(), p.key, p.t.Offset(p.t.Head()), p.t.Done(), p.t.Unfinished()-1, p.ledger.budget), nil)
}
