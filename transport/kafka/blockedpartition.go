package kafka

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore/transport"
)

// stuckAfter keeps what is only slow out of the log.
const stuckAfter = 5 * time.Second

// BlockedPartitions tells which partitions are held back by a record that is not done.
func (c *consumer) BlockedPartitions() []transport.BlockedPartition {
	now := time.Now()
	var heads []transport.BlockedPartition
	for _, p := range c.assigned() {
		p.mu.Lock()
		if h := p.head(now); h.Behind > 0 && now.Sub(h.Since) >= stuckAfter {
			heads = append(heads, h)
		}
		p.mu.Unlock()
	}
	slices.SortFunc(heads, func(a, b transport.BlockedPartition) int { return a.Since.Compare(b.Since) })
	return heads
}

// head is the oldest that is not done, zero if there is none; it notes since when. The
// lock is held.
func (p *partition) head(now time.Time) transport.BlockedPartition {
	if p.closed || p.t.Len() == 0 {
		return transport.BlockedPartition{}
	}
	if p.headSeq != p.t.Head() || p.headSince.IsZero() {
		p.headSeq, p.headSince = p.t.Head(), now
	}
	h := transport.BlockedPartition{Topic: p.key.topic, Partition: p.key.num, Since: p.headSince, Behind: p.t.Len() - 1, Window: p.limit()}
	if p.stalled { // also where no more can be remembered
		h.Window = min(h.Window, p.t.Len())
	}
	h.Position = uint64(p.t.Offset(p.t.Head())) //nolint:gosec // not negative
	if r := p.record(p.t.Head()); r != nil {
		h.Key = r.Key
	}
	return h
}

// record is what was handed out under seq, or waits to be again. The lock is held.
func (p *partition) record(seq uint64) *kgo.Record {
	if d := p.t.Held(seq); d != nil {
		r, _ := d.Native().(*kgo.Record)
		return r
	}
	if w, ok := p.waits[seq]; ok {
		return w.rec
	}
	for _, e := range p.again {
		if e.seq == seq {
			return e.rec
		}
	}
	return nil
}

// warn tells when a record that is not done holds up much of its partition, in
// steps, and when it no longer does.
func (p *partition) warn(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told > 0 && !p.closed && p.t.Head() != p.toldOf {
		p.c.tell.event(transport.Event{Kind: transport.EventNotice,
			Text: fmt.Sprintf("%s: %s is no longer held back; its oldest was not done for %s", p.c.src.title(), p.key, now.Sub(p.toldSince).Round(time.Second))})
		p.told = 0
	}
	h := p.head(now)
	age := now.Sub(h.Since)
	if h.Window == 0 || age < stuckAfter {
		return
	}
	used := (h.Behind + 1) * 100 / h.Window
	step := 0
	for i, limit := range []int{10, 50, 90} {
		if used >= limit {
			step = i + 1
		}
	}
	if step <= p.told {
		return
	}
	p.told, p.toldOf, p.toldSince = step, p.t.Head(), h.Since
	p.c.tell.event(transport.Event{Kind: transport.EventNotice,
		Text: fmt.Sprintf("%s: offset %d of %s (key %.64q) is not done for %s and holds back %d %% of the partition's window of %d; look at its handler, or dead-letter it",
			p.c.src.title(), h.Position, p.key, h.Key, age.Round(time.Second), used, h.Window)})
}
