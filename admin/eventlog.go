package admin

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/longshore-go/longshore/container"
)

const (
	keepEvents   = 1000 // of those that are rare: states, scaling, operators
	keepFailures = 500  // of those that come with each failed delivery
	streamBuf    = 256
	statusRoom   = 16 // places of a stream that events leave free
)

// frame is a part of the stream as it is written, made once for all viewers: full for
// those with a token, bare without ids, keys and texts.
type frame struct{ full, bare []byte }

// of returns the part for a viewer.
func (f frame) of(all bool) []byte {
	if all {
		return f.full
	}
	return f.bare
}

// confidential is a value that has a form without ids, keys and texts.
type confidential[T any] interface{ Bare() T }

// frameOf is one event of the stream in both forms.
func frameOf[T confidential[T]](kind string, id int64, v T) frame {
	return frame{full: sse(kind, id, v), bare: sse(kind, id, v.Bare())}
}

// shownTo returns v as the caller may see it.
func shownTo[T confidential[T]](ctx context.Context, v T) T {
	if sees(ctx) {
		return v
	}
	return v.Bare()
}

// viewerQueue is one open stream.
type viewerQueue struct{ ch chan frame }

// hub keeps the last events and hands new ones to the streams.
type hub struct {
	mu       sync.Mutex
	rare     []Event
	failures []Event
	next     int64
	subs     map[*viewerQueue]struct{}
}

func newHub() *hub {
	// Ids go on growing over a restart, so that a stream that resumes misses nothing.
	return &hub{next: time.Now().UnixMilli(), subs: map[*viewerQueue]struct{}{}}
}

// ofDeliveries tells whether a kind comes with single deliveries: so often that it would
// push out all others.
func ofDeliveries(kind string) bool {
	switch container.EventKind(kind) {
	case container.EventFailed, container.EventDiscarded, container.EventDeadLettered, container.EventDeadLetterFailed, container.EventDelayCut, container.EventSettleFailed:
		return true
	default:
		return false
	}
}

func (h *hub) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	e.ID = h.next
	if ofDeliveries(e.Kind) {
		h.failures = keepLast(h.failures, e, keepFailures)
	} else {
		h.rare = keepLast(h.rare, e, keepEvents)
	}
	if len(h.subs) == 0 {
		return
	}
	f := frameOf("event", e.ID, e)
	for q := range h.subs {
		if len(q.ch) < cap(q.ch)-statusRoom { // else too slow: the gap in the ids shows it
			q.ch <- f
		}
	}
}

func keepLast(list []Event, e Event, most int) []Event {
	if len(list) == most {
		list = append(list[:0], list[most/10:]...)
	}
	return append(list, e)
}

// status hands out what changed. A stream without room for it has missed something that
// never comes again: it ends, and its client begins with a snapshot.
func (h *hub) status(f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for q := range h.subs {
		select {
		case q.ch <- f:
		default:
			delete(h.subs, q)
			close(q.ch)
		}
	}
}

// watched tells whether a stream is open.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs) > 0
}

// subscribe returns what came after id and a channel with the rest.
func (h *hub) subscribe(after int64) (past []Event, ch <-chan frame, stop func()) {
	q := &viewerQueue{ch: make(chan frame, streamBuf)}
	h.mu.Lock()
	defer h.mu.Unlock()
	past = h.after(after)
	h.subs[q] = struct{}{}
	return past, q.ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, q)
	}
}

// after returns the events that came after id, the oldest first. The caller holds mu.
func (h *hub) after(id int64) (past []Event) {
	for _, list := range [][]Event{h.rare, h.failures} {
		for _, e := range list {
			if e.ID > id {
				past = append(past, e)
			}
		}
	}
	slices.SortFunc(past, func(a, b Event) int { return cmp.Compare(a.ID, b.ID) })
	return past
}
