package throttle

import (
	"context"
	"slices"
	"time"
)

// The book of every instance together is the fleet's memory: the topic may keep nothing,
// and links fail. So what was cleared is remembered like the state in force, newcomers are
// told both, and whoever repeats something older is corrected.

// announceable is what a newcomer must know: the state in force, what was cleared and what
// has ended, so that nothing older is obeyed. The last said comes last.
func (b *book) announceable(now time.Time) []*entry {
	var all []*entry
	for _, e := range b.last {
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *entry) int {
		if x.live(now) != y.live(now) { // if not all can be sent, the limits that hold
			if x.live(now) {
				return -1
			}
			return 1
		}
		return int(x.d.Seq - y.d.Seq)
	})
	return all
}

// announce publishes a directive again as it was signed, and before it how much of it is
// left.
func (f *Fleet) announce(ctx context.Context, e *entry) {
	if left := e.until.Sub(f.now()).Milliseconds(); !e.until.IsZero() && left > 0 && !f.cfg.ListenOnly {
		f.member(ctx, &Member{InForce: e.d.ID, Left: left}, func(key string, raw []byte) { f.out.add(key, raw) })
	}
	f.out.add(e.d.Target.key(f.cfg.Scope), e.raw)
}

// stale notes that an instance repeats what is older than what is obeyed here: an instance
// that was away, or a replay. It is called while a message is read.
func (f *Fleet) stale(key string) {
	f.linkMu.Lock()
	defer f.linkMu.Unlock()
	if _, asked := f.correcting[key]; !asked && len(f.correcting) < maxTargets {
		f.correcting[key] = false
	}
}

// correct says the state in force to whoever may have obeyed something older, unless
// another instance is quicker.
func (f *Fleet) correct(ctx context.Context) {
	if f.cfg.ListenOnly {
		return
	}
	f.linkMu.Lock()
	var keys []string
	for key, begun := range f.correcting {
		if !begun {
			f.correcting[key] = true
			keys = append(keys, key)
		}
	}
	f.linkMu.Unlock()
	for _, key := range keys {
		f.mu.Lock()
		e := f.book.last[key]
		f.mu.Unlock()
		if e != nil {
			f.linkMu.Lock()
			delete(f.heard, e.d.ID)
			f.linkMu.Unlock()
		}
		f.later(ctx, around(settle/2), func() { f.correctNow(ctx, key) })
	}
}

func (f *Fleet) correctNow(ctx context.Context, key string) {
	f.mu.Lock()
	e := f.book.last[key]
	f.mu.Unlock()
	f.linkMu.Lock()
	delete(f.correcting, key)
	quicker := e != nil && f.heard[e.d.ID]
	f.linkMu.Unlock()
	if e != nil && !quicker {
		f.announce(ctx, e)
	}
}
