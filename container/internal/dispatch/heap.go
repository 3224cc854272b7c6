package dispatch

// heap is a binary heap of parked items, the first due on top. Each knows its place, so
// that an operator's word can take one out of the middle.
type heap[T any] []*Item[T]

func (h *heap[T]) push(it *Item[T]) {
	*h = append(*h, it)
	h.up(len(*h)-1, it)
}

func (h *heap[T]) pop() *Item[T] {
	top := (*h)[0]
	h.remove(top)
	return top
}

func (h *heap[T]) remove(it *Item[T]) {
	q := *h
	last := len(q) - 1
	moved, at := q[last], it.pos
	q[last] = nil
	*h = q[:last]
	if at < last {
		h.down(at, moved)
		h.up(moved.pos, moved)
	}
	if last == 0 && cap(q) > most {
		*h = nil
	}
}

// up puts an item at i or as far above it as its time is earlier.
func (h heap[T]) up(i int, it *Item[T]) {
	for i > 0 {
		p := (i - 1) / 2
		if !it.due.Before(h[p].due) {
			break
		}
		h.set(i, h[p])
		i = p
	}
	h.set(i, it)
}

// down puts an item at i or as far below it as its time is later.
func (h heap[T]) down(i int, it *Item[T]) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].due.Before(h[c].due) {
			c++
		}
		if !h[c].due.Before(it.due) {
			break
		}
		h.set(i, h[c])
		i = c
	}
	h.set(i, it)
}

func (h heap[T]) set(i int, it *Item[T]) { h[i], it.pos = it, i }
