package kafka

import (
	"context"
	"sync"

	"github.com/longshore-go/longshore"
)

// turns shares what is received out among the partitions: each hands out in turn, so that
// a busy one does not starve the others.
type turns struct {
	ready chan struct{} // something can be received, or a pause has ended

	mu     sync.Mutex   // held for a moment for each record, so nothing waits under it
	line   []*partition // those that have something to hand out since the last Receive
	paused bool         // nothing is handed out or polled

	// Receive's own: it is not called concurrently.
	turn []*partition          // those with something to hand out, the next one first
	out  []*longshore.Delivery // what the last Receive returned, reused by the next
}

func newTurns(paused bool) *turns { return &turns{ready: make(chan struct{}, 1), paused: paused} }

// minShare is the least that one partition is asked for: asking costs as much as a record.
const minShare = 16

// add puts a partition at the end of the line. It notes itself that it stands there.
func (t *turns) add(p *partition) {
	t.mu.Lock()
	t.line = append(t.line, p)
	t.mu.Unlock()
	signal(t.ready)
}

// clear empties the line for good: the partitions still believe that they stand in it.
func (t *turns) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line = nil
}

// setPaused takes effect with the next Receive, which it wakes.
func (t *turns) setPaused(on bool) {
	t.mu.Lock()
	t.paused = on
	t.mu.Unlock()
	signal(t.ready)
}

// isPaused is paused for callers without the lock.
func (t *turns) isPaused() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}

// next lets those in the line join the others.
func (t *turns) next() (paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.line) > 0 {
		t.turn = append(t.turn, t.line...)
		clear(t.line)
		t.line = t.line[:0]
	}
	return t.paused
}

// receive waits for up to n deliveries. It returns none when the consumer ends.
func (t *turns) receive(ctx context.Context, n int, life *lifetime) ([]*longshore.Delivery, error) {
	clear(t.out)
	t.out = t.out[:0]
	for {
		if err := life.ended(); err != nil {
			return nil, err
		}
		if paused := t.next(); len(t.turn) > 0 && !paused {
			if t.take(max(n, 1)); len(t.out) > 0 {
				return t.out, nil
			}
			continue // all of it was done before, or taken away
		}
		select {
		case <-t.ready:
		case <-life.stop.Done():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take shares n out. A partition that was not asked comes first the next time, one that
// has more comes last.
func (t *turns) take(n int) {
	line := t.turn
	share := max(minShare, (n+len(line)-1)/len(line))
	for range len(line) {
		left := n - len(t.out)
		if left == 0 {
			break
		}
		p := line[0]
		line[0] = nil
		line = line[1:]
		var more bool
		if t.out, more = p.take(min(share, left), t.out); more {
			line = append(line, p)
		}
	}
	t.turn = line
}

// signal wakes the reader of ch, now or when it reads next.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
