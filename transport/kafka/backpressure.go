package kafka

import "time"

// What waits in memory is bounded by bytes. Nothing is polled while all partitions
// have enough, or have much together. If one has little, those that have much are held
// and not fetched while the others go on. The steps are wide, because the client
// throws away what it has of a partition that is held.
const (
	muchBytes   = 8 << 20  // a partition is held above it
	littleBytes = 2 << 20  // and is fetched again below it
	totalBytes  = 64 << 20 // nothing is polled above it

	holdAfter = 100 * time.Millisecond // so long the others wait for one that has much
)

// enqueue puts the partition into the line if it has something to hand out. Its
// lock is held.
func (p *partition) enqueue() {
	if p.queued || p.closed || p.leaving || len(p.again) == 0 && (p.wait.empty() || p.stalled) {
		return
	}
	p.queued = true
	p.c.requeue([]*partition{p})
}

// room is how many more may be handed out or done beyond the oldest that is not done,
// and be remembered. The lock is held.
func (p *partition) room() int {
	room := int(p.c.window.Load()) - p.t.Len()
	if room <= 0 {
		room = p.limit() - p.t.Len()
	}
	return p.canRemember(min(room, maxUncommitted-len(p.acked)))
}

// maxUncommitted is how many of a partition may be done and not committed: each is
// kept for the report, and comes again if this member ends. Only where commits fail for
// a while are there so many.
const maxUncommitted = maxWindow

// limit is the window. Where the oldest waits for its next attempt, which can take
// many seconds at full speed, the others need not wait with it: what is done behind
// it takes two words in memory and is saved with the commits.
func (p *partition) limit() int {
	if p.c.src.cfg.Window == 0 && p.t.Len() > 0 {
		if d := p.t.Held(p.t.Head()); d == nil || !d.Owned() { // given back, or retried by its container
			return maxWindow
		}
	}
	return int(p.c.window.Load())
}

// stall notes that the window is full. What waits behind it does not count as
// something that could be handed out, or one stuck partition would stop all.
func (p *partition) stall() {
	full := p.room() <= 0
	if full == p.stalled {
		return
	}
	p.stalled = full
	if full {
		p.tellUnremembered()
		p.full = true
		p.c.handedOut(p.bytes)
		return
	}
	p.c.undrained.Add(p.bytes)
}

// opened looks whether the window has opened again. The lock is held.
func (p *partition) opened() {
	if !p.stalled {
		return
	}
	if p.room() <= 0 {
		return
	}
	p.stall()
	p.enqueue()
	p.feed()
}

// unblock is opened for those who do not hold the lock.
func (p *partition) unblock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened()
}

// grow and shrink count what waits.
func (p *partition) grow(n int64) {
	p.bytes += n
	if !p.stalled {
		p.c.undrained.Add(n)
	}
}

func (p *partition) shrink(n int64) {
	p.bytes -= n
	if !p.stalled {
		p.c.handedOut(n)
		if p.bytes < littleBytes && p.bytes+n >= littleBytes {
			signal(p.c.needsData)
		}
	}
	p.feed()
}

// handedOut counts what no longer waits. Only who crosses a line wakes the poller.
func (c *consumer) handedOut(n int64) {
	if all := c.undrained.Add(-n); all < totalBytes && all+n >= totalBytes {
		signal(c.needsData)
	}
}

// drop forgets what waits.
func (p *partition) drop() {
	p.shrink(p.bytes)
	p.wait, p.again = queue{}, nil
	p.drops++
	for _, w := range p.waits {
		w.timer.Stop()
	}
	p.waits = nil
}

// feed lets the client fetch the partition again.
func (p *partition) feed() {
	if !p.full || p.stalled || p.bytes >= littleBytes {
		return
	}
	p.full = false
	if p.held {
		p.held = false
		p.c.cl.ResumeFetchPartitions(map[string][]int32{p.key.topic: {p.key.num}})
	}
	signal(p.c.needsData)
}

// mayPoll tells whether anybody needs records, and keeps the client from fetching
// for those who have enough. waited is for how long it has said no because of them:
// at full speed much is gone in a moment, and is not worth a hold.
func (c *consumer) mayPoll(waited time.Duration) (ok bool, again time.Duration) {
	if c.isPaused() || c.undrained.Load() >= totalBytes {
		return false, 0
	}
	ps := c.assigned()
	hungry := len(ps) == 0
	var hold []*partition
	for _, p := range ps {
		p.mu.Lock()
		p.full = p.full || p.bytes > muchBytes
		switch {
		case !p.full:
			hungry = hungry || p.bytes < littleBytes
		case !p.held:
			hold = append(hold, p)
		}
		p.mu.Unlock()
	}
	if !hungry {
		return false, 0
	}
	if len(hold) > 0 && waited < holdAfter {
		return false, holdAfter - waited
	}
	for _, p := range hold {
		p.mu.Lock()
		if p.full && !p.held && !p.closed {
			p.held = true
			c.cl.PauseFetchPartitions(map[string][]int32{p.key.topic: {p.key.num}})
		}
		p.mu.Unlock()
	}
	return true, 0
}
