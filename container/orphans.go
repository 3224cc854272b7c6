package container

import (
	"time"

	"github.com/longshore-go/longshore"
)

// What is behind a lost delivery in its lane goes back to the broker: the lost one comes
// again, and must be first.

// orphan takes the followers of a lost item out of its lane, to be given back:
// the lost one comes again, and they must not be handled before it. What its batch put
// back before it stays. The caller holds mu.
func (r *run) orphan(it *item) {
	l := it.lane
	if l == nil {
		return
	}
	l.tear()
	if l.waiting == 0 || it.swept {
		return // done when the loss was heard of; what came since comes behind it again
	}
	r.orphanAll(l)
}

// orphanAll takes out what waits in a lane, but what the batch that ends has put back.
// The caller holds mu.
func (r *run) orphanAll(l *lane) {
	before := l.mark
	l.filter(func(f *item) bool {
		if before == nil {
			r.orphaned(l, f)
			return false
		}
		if f == before {
			before = nil
		}
		return true
	})
}

// orphaned puts a follower that was taken out of its lane among those to be given
// back. A lane whose first one is ready or parked does not wait for it: it would go on
// with its next one when the orphan is gone, past that first one. The caller holds mu.
func (r *run) orphaned(l *lane, f *item) {
	r.uncount(f, l.parked)
	r.bytes += f.size
	r.running++
	if l.running > 0 {
		l.running++
	} else {
		f.lane = nil
	}
	r.orphans = append(r.orphans, f)
	r.changed()
	r.wake()
}

// releaseOrphans gives back what orphan took.
func (r *run) releaseOrphans() {
	r.mu.Lock()
	out := r.orphans
	r.orphans = nil
	r.mu.Unlock()
	for _, it := range out {
		r.release(it, it.d.Attempt)
	}
}

// tear notes that one of the batch which is with a handler is lost. Those behind it in
// the batch that come back go to the broker too: tried again here, they would come before
// it.
func (l *lane) tear() { l.gap = l.gap || l.running > 1 }

// tear is that for an item whose handler was not called.
func (r *run) tear(it *item) {
	r.mu.Lock()
	if it.lane != nil {
		it.lane.tear()
	}
	r.mu.Unlock()
}

func (r *run) isTorn(it *item) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return it.lane != nil && it.lane.gap
}

// unseen is for what the handler was not given: it was lost, or comes behind a lost one.
func (r *run) unseen(it *item, end time.Time) {
	if it.d.Owned() {
		r.comeBack(nil, it, judgement{verdict: longshore.VerdictRelease, end: end}, it.d.Attempt)
		return
	}
	r.conclude(nil, it, longshore.ErrLost, end, 0)
}

// comesBack says that the delivery is to be delivered again.
func (j *judgement) comesBack() bool {
	return j.verdict == longshore.VerdictRetry || j.verdict == longshore.VerdictRelease
}
