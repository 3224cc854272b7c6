package kafka

import (
	"fmt"
	"time"

	"github.com/longshore-go/longshore/transport"
)

// blockedAfter keeps what is only slow out of the log.
const blockedAfter = 5 * time.Second

// headWatch notes for how long the oldest record of a partition is not done, and how much
// of that was reported. Its partition's lock guards it.
type headWatch struct {
	seq   uint64    // the record that is the oldest
	since time.Time // when it became so; zero before the first look

	told      int       // step of the last warning; 0: there is none to end
	toldOf    uint64    // the record that it was about
	toldSince time.Time // since when that was not done
}

// steps are the shares of the window, in per cent, at which a warning is given.
func steps() []int { return []int{10, 50, 90} }

// oldest returns since when the record seq is the oldest.
func (w *headWatch) oldest(seq uint64, now time.Time) time.Time {
	if w.seq != seq || w.since.IsZero() {
		w.seq, w.since = seq, now
	}
	return w.since
}

// passed returns for how long the record of the last warning was not done, once it no longer
// is the oldest; 0: there is nothing to report.
func (w *headWatch) passed(head uint64, now time.Time) time.Duration {
	if w.told == 0 || head == w.toldOf {
		return 0
	}
	w.told = 0
	return now.Sub(w.toldSince)
}

// warns reports whether the oldest record holds back more of the window than was reported.
func (w *headWatch) warns(head uint64, h transport.BlockedPartition, now time.Time) (used int, warn bool) {
	if h.Window == 0 || now.Sub(h.Since) < blockedAfter {
		return 0, false
	}
	used = (h.Behind + 1) * 100 / h.Window
	step := 0
	for i, limit := range steps() {
		if used >= limit {
			step = i + 1
		}
	}
	if step <= w.told {
		return used, false
	}
	w.told, w.toldOf, w.toldSince = step, head, h.Since
	return used, true
}

// blocked returns the partition if a record that is not done has held it back for long.
func (p *partition) blocked(now time.Time) (h transport.BlockedPartition, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h = p.oldest(now)
	return h, h.Behind > 0 && now.Sub(h.Since) >= blockedAfter
}

// oldest describes the oldest record that is not done; zero if there is none. The lock is
// held.
func (p *partition) oldest(now time.Time) transport.BlockedPartition {
	if p.state == released || p.t.Len() == 0 {
		return transport.BlockedPartition{}
	}
	head := p.t.Head()
	h := transport.BlockedPartition{Topic: p.key.topic, Partition: p.key.num, Since: p.head.oldest(head, now), Behind: p.t.Len() - 1, Window: p.with.limit(&p.t)}
	if p.buf.blocked { // also where no more can be remembered
		h.Window = min(h.Window, p.t.Len())
	}
	h.Position = uint64(p.t.Offset(head)) //nolint:gosec // not negative
	r := record(p.t.Held(head))
	if r == nil {
		r = p.again.find(head)
	}
	if r != nil {
		h.Key = r.Key
	}
	return h
}

// warn reports when a record that is not done holds back much of its partition, in steps,
// and when it no longer does.
func (p *partition) warn(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == released {
		return
	}
	title, head := p.with.src.title(), p.t.Head()
	if age := p.head.passed(head, now); age > 0 {
		p.with.reports.over("head "+p.key.String(), fmt.Sprintf("%s: %s moves again; its oldest record was done after %s", title, p.key, age.Round(time.Second)))
	}
	h := p.oldest(now)
	if used, warn := p.head.warns(head, h, now); warn {
		p.with.reports.ended("head " + p.key.String()) // each step is reported at once
		p.with.reports.troubled("head "+p.key.String(), fmt.Sprintf("%s: offset %d of %s (key %.64q) has not been done for %s and holds back %d %% of the partition's window of %d; look at its handler, or dead-letter it",
			title, h.Position, p.key, h.Key, now.Sub(h.Since).Round(time.Second), used, h.Window), nil)
	}
}
