package sqstest

import (
	"container/heap"
	"slices"
)

// group is a message group of a FIFO queue: its messages in order, whatever
// their state. It can be received from if nothing of it is in flight and its
// first message is visible.
type group struct {
	id       string
	messages []*message
	index    int // in the heap of free groups, plus 1
}

// groups are all groups with messages; free is a heap by the age of the first
// message.
type groups struct {
	byID  map[string]*group
	free  freeHeap
	count uint64
}

func (gs *groups) add(m *message) {
	g := gs.byID[m.group]
	if g == nil {
		g = &group{id: m.group}
		gs.byID[m.group] = g
	}
	gs.count++
	m.order = gs.count
	g.messages = append(g.messages, m)
}

func (gs *groups) remove(m *message) {
	g := gs.byID[m.group]
	if g == nil {
		return
	}
	if i := slices.Index(g.messages, m); i >= 0 { // among the first few, except when it expires
		copy(g.messages[1:i+1], g.messages[:i])
		g.messages[0] = nil
		g.messages = g.messages[1:]
	}
	if len(g.messages) == 0 {
		if g.index > 0 {
			heap.Remove(&gs.free, g.index-1)
		}
		delete(gs.byID, m.group)
		return
	}
	gs.update(m.group)
}

// update finds out whether the group is free.
func (gs *groups) update(id string) {
	g := gs.byID[id]
	if g == nil {
		return
	}
	free := g.first() != nil
	switch {
	case free && g.index == 0:
		heap.Push(&gs.free, g)
	case free:
		heap.Fix(&gs.free, g.index-1)
	case g.index > 0:
		heap.Remove(&gs.free, g.index-1)
	}
}

// first returns the message that may be received next, nil if none may.
func (g *group) first() *message {
	// Those in flight are at the front: a run is taken from there, and no more
	// before all of it came back.
	for i, m := range g.messages {
		if m.state == inFlight {
			return nil
		}
		if i >= maxBatch {
			break
		}
	}
	for _, m := range g.messages {
		switch m.state {
		case visible:
			return m
		case gone: // on its way out
			continue
		case delayed, inFlight:
			return nil
		}
	}
	return nil
}

// freeHeap orders groups by their first message.
type freeHeap []*group

func (h freeHeap) Len() int           { return len(h) }
func (h freeHeap) Less(i, j int) bool { return h[i].messages[0].order < h[j].messages[0].order }
func (h freeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *freeHeap) Push(x any) {
	g, _ := x.(*group)
	*h = append(*h, g)
	g.index = len(*h)
}

func (h *freeHeap) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	g.index = 0
	return g
}
