package memory

// deque is a queue in a ring that doubles and, once empty, gives a large ring
// back. The zero value works.
type deque[T any] struct {
	ring []T // holds the items; its length is a power of two, or 0
	head int // place of the first
	n    int // how many there are
}

// keepRing is the largest ring an empty deque keeps.
const keepRing = 1024

func (d *deque[T]) len() int { return d.n }

func (d *deque[T]) at(i int) T { return d.ring[(d.head+i)&(len(d.ring)-1)] }

func (d *deque[T]) push(v T) {
	if d.n == len(d.ring) {
		d.grow()
	}
	d.ring[(d.head+d.n)&(len(d.ring)-1)] = v
	d.n++
}

func (d *deque[T]) pop() T {
	var zero T
	v := d.ring[d.head]
	d.ring[d.head] = zero
	d.head = (d.head + 1) & (len(d.ring) - 1)
	d.n--
	if d.n == 0 && len(d.ring) > keepRing {
		d.ring, d.head = nil, 0
	}
	return v
}

func (d *deque[T]) grow() {
	ring := make([]T, max(16, 2*len(d.ring)))
	for i := range d.n {
		ring[i] = d.at(i)
	}
	d.ring, d.head = ring, 0
}

// clear empties it and returns what it held.
func (d *deque[T]) clear() []T {
	all := make([]T, d.n)
	for i := range all {
		all[i] = d.at(i)
	}
	d.ring, d.head, d.n = nil, 0, 0
	return all
}

// heap is a binary heap by less. The zero value with less set works.
type heap[T any] struct {
	items []T               // the smallest first
	less  func(a, b T) bool // the order
}

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) push(v T) {
	h.items = append(h.items, v)
	i := len(h.items) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h.less(h.items[i], h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

func (h *heap[T]) pop() T {
	var zero T
	top, last := h.items[0], len(h.items)-1
	h.items[0] = h.items[last]
	h.items[last] = zero
	h.items = h.items[:last]
	for i := 0; ; {
		low := 2*i + 1
		if low >= last {
			return top
		}
		if low+1 < last && h.less(h.items[low+1], h.items[low]) {
			low++
		}
		if !h.less(h.items[low], h.items[i]) {
			return top
		}
		h.items[i], h.items[low] = h.items[low], h.items[i]
		i = low
	}
}
